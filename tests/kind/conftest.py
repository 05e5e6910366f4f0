"""The kind tier: one real cluster for all of its tests. It runs when asked for (``make test-kind``)."""

import os
import tempfile
from pathlib import Path

import pytest

from mews.harness.errors import RequirementError
from mews.own_files import make_own_folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """What this machine lacks, the next test lacks, too: creating a cluster fails after minutes."""
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(RequirementError):
        item.session.shouldfail = f"no kind cluster: {call.excinfo.value}"
    return report


@pytest.fixture(scope="session")
def state():
    """Where the tests' clusters are written down: not where the user's are, and the same in each run, so that what a
    killed one left is deleted before it starves this one. Skipped with the reason where there can be none; in the end
    none is left."""
    from mews.harness.clusters.kind.tools import needed
    from mews.harness.leftovers import sweep_kind

    try:
        needed()
    except RequirementError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        folder = Path(tempfile.gettempdir()) / f"mews-kind-tests-{os.getuid()}"
        make_own_folder(folder)
        patch.setenv("XDG_STATE_HOME", str(folder))
        sweep_kind()
        yield folder
        sweep_kind()


@pytest.fixture(scope="session")
def shared(state):
    """A kind cluster that all scenarios share."""
    from mews.harness.clusters.session import ClusterSession

    with ClusterSession() as shared:
        yield shared
