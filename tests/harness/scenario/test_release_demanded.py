"""What a scenario says of the release of Kubernetes, where the cluster is somebody else's."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from mews.harness.scenario.errors import CapabilityError
from mews.harness.scenario.loader import parse_scenario
from mews.harness.scenario.requirements import demand
from mews.kube.clock import Pace


class Kube:
    """One of whose nodes is older than the other."""

    def __init__(self, *versions: str) -> None:
        self._nodes = [{"status": {"nodeInfo": {"kubeletVersion": version}}} for version in versions]

    async def list(self, _: object) -> SimpleNamespace:
        return SimpleNamespace(items=self._nodes)


def demanded(stack: str, *versions: str, cluster: str = "kind") -> str:
    """Why the scenario is skipped, "" where it is not."""
    head = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: one}\nhardware: demo\n"
    scenario = parse_scenario(f"{head}stack: {stack}\nsteps: [{{sleep: 1}}]\n", Path("one.yaml"))
    there = SimpleNamespace(name=cluster, time="wall", dialect="h3api", kube=Kube(*versions), pace=Pace(1.0))
    try:
        asyncio.run(demand(scenario, there))
    except CapabilityError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("cluster", ["kind", "kubeconfig"])
def test_a_later_release_than_the_nodes_is_not_had(cluster: str) -> None:
    reason = demanded('{kubernetes: "1.37"}', "v1.37.1", "v1.34.2", cluster=cluster)
    assert reason == "stack.kubernetes: 1.37: the cluster's nodes run v1.34.2"


@pytest.mark.parametrize(
    ("stack", "versions"),
    [
        ('{kubernetes: "1.34"}', ("v1.34.2", "v1.36.0")),
        ("{}", ("v1.31.0",)),  # nobody asked for one
        ('{kubernetes: "1.37"}', ("v1.37.0-rc.0", "")),
    ],
)
def test_the_same_release_or_none_asked_for_is_had(stack: str, versions: tuple[str, ...]) -> None:
    assert demanded(stack, *versions) == ""


@pytest.mark.parametrize("cluster", ["embedded", "control-plane"])
def test_clusters_of_ours_are_of_the_release_that_is_asked_for(cluster: str) -> None:
    assert demanded('{kubernetes: "1.37"}', "v1.34.2", cluster=cluster) == ""
