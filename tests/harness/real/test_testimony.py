"""What a failure on a real cluster keeps of the components' own words."""

import asyncio
from types import SimpleNamespace

import pytest

from mews.harness.clusters.real.cluster import RealCluster
from mews.harness.clusters.real.target import DeploymentTarget

POD = {
    "metadata": {"name": "chassis-1", "namespace": "mews-1"},
    "status": {"containerStatuses": [{"name": "chassis"}]},
}


class Kube:
    async def list(self, resource, *, namespace):
        return SimpleNamespace(items=[POD] if namespace == "mews-1" else [])

    async def log(self, namespace, pod, *, container):
        yield f"{namespace} {pod} {container}\n".encode()


class ClusterAdmin:
    async def logs(self):
        return {"logs/kubelet_host-1.log": "a kubelet\n"}


@pytest.mark.parametrize(
    ("namespaces", "more"),
    [
        ({"default": "mews-1-scenario"}, {"logs/mews-1_chassis-1_chassis.log": "mews-1 chassis-1 chassis\n"}),
        ({}, {}),  # there the scenario's view shows all pods, and their logs are kept with it
    ],
)
def test_in_somebodys_cluster_the_components_logs_are_kept_though_the_scenario_sees_none(namespaces, more):
    cluster = RealCluster.__new__(RealCluster)
    cluster._cluster_admin = ClusterAdmin()
    cluster._admin = Kube()
    cluster._target = DeploymentTarget(None, None, "mews-1", "image", {}, namespaces=namespaces)
    assert asyncio.run(cluster.artefacts()) == {"logs/kubelet_host-1.log": "a kubelet\n", **more}
