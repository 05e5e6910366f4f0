"""CoHDI's three programs, unchanged, in pods of a real cluster: Kubernetes' own scheduler, controllers and kubelets.
Nodes need a containerd that knows CDI. The cluster has feature gates and provider IDs of its own, so that it is no
cluster of other tests."""

from pathlib import Path

import pytest

from mews.harness.clusters.session import ClusterSession
from mews.harness.scenario.loader import find_scenarios
from tests.kind.with_claims import passes
from tests.systems.cohdi.playing import FOLDER, programs

pytestmark = [pytest.mark.kind, pytest.mark.nightly]


@pytest.fixture(scope="module")
def cluster(state):
    """One for all scenarios in which the operator speaks the same dialect."""
    with ClusterSession() as session:
        yield session


@pytest.mark.parametrize("path", find_scenarios([FOLDER]), ids=lambda path: path.stem)
def test_the_programs_do_on_real_nodes_what_they_do_on_emulated_ones(path: Path, cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("MEWS_COHDI_PROGRAMS", str(programs(tmp_path)))
    passes(path, cluster, tmp_path)
