"""The kind tier: one real cluster for all of its tests. It runs when asked for (``make test-kind``)."""

import pytest

from mews.harness.errors import Lacks


def pytest_collection_modifyitems(config, items):
    if "kind" in (config.option.markexpr or ""):
        return
    skip = pytest.mark.skip(reason="runs with make test-kind")
    for item in items:
        if item.get_closest_marker("kind"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def shared():
    """A kind cluster that all scenarios share; skipped with the reason where none can be had."""
    from mews.harness.clusters.kind.tools import needed
    from mews.harness.clusters.shared import Shared

    try:
        needed()
    except Lacks as error:
        pytest.skip(str(error))
    with Shared() as shared:
        yield shared
