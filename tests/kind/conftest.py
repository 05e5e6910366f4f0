"""The kind tier: one real cluster for all of its tests. It runs when asked for (``make test-kind``)."""

import pytest

from mews.harness.errors import Lacks


@pytest.fixture(scope="session")
def state(tmp_path_factory):
    """Where the tests' clusters are written down: not where the user's are. Skipped with the reason where there can be
    none; in the end none is left."""
    from mews.harness.clusters.kind.tools import needed
    from mews.harness.leftovers import sweep_kind

    try:
        needed()
    except Lacks as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("state")
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield folder
        sweep_kind()


@pytest.fixture(scope="session")
def shared(state):
    """A kind cluster that all scenarios share."""
    from mews.harness.clusters.session import ClusterSession

    with ClusterSession() as shared:
        yield shared
