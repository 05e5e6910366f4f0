"""What one scenario left in a kind cluster is gone before the next begins."""

import random

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.real.reset import Reset
from mews.harness.clusters.real.target import DeploymentTarget
from mews.kube.api.errors import NotFoundError
from mews.kube.api.resources import CONFIGMAPS, NODES, PODS, Resource
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store

NEVER_INSTALLED = Resource("toys.example.com", "v1", "toys", "Toy")
PLACE = DeploymentTarget(None, None, "pool", "ours:1", {"host-1": "host-1"}, ours=("host-1",))


def test_objects_of_swept_kinds_go_whoever_made_them_and_a_kind_that_is_not_there_is_passed_over():
    async def main():
        kube = InProcessKube(fresh_store(virtual_clock().now, random.Random(1)))
        await kube.create(CONFIGMAPS, {"metadata": {"name": "left"}}, namespace="default")
        reset = Reset(kube, PLACE, lambda _: None, swept=[NEVER_INSTALLED, CONFIGMAPS])
        await reset.scenario_objects()
        with pytest.raises(NotFoundError):
            await kube.get(CONFIGMAPS, "left", namespace="default")

    run_virtual(main)


def test_in_somebodys_cluster_nothing_is_swept():
    async def main():
        kube = InProcessKube(fresh_store(virtual_clock().now, random.Random(1)))
        await kube.create(CONFIGMAPS, {"metadata": {"name": "theirs"}}, namespace="default")
        target = DeploymentTarget(None, None, "pool", "ours:1", {"host-1": "host-1"})
        reset = Reset(kube, target, lambda _: None, swept=[CONFIGMAPS])
        reset.made(PODS, "mine", "default")
        await reset.scenario_objects()
        assert await kube.get(CONFIGMAPS, "theirs", namespace="default")

    run_virtual(main)


def test_notes_in_namespaces_of_others_go_and_nothing_else_there():
    async def main():
        kube = InProcessKube(fresh_store(virtual_clock().now, random.Random(1)))
        for name in ("note-a", "other"):
            await kube.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="kube-system")
        for ours in ((), ("host-1",)):
            target = DeploymentTarget(None, None, "pool", "ours:1", {"host-1": "host-1"}, ours=ours)
            await Reset(kube, target, lambda _: None, notes=[("kube-system", "note-")]).boards()
            left = {each["metadata"]["name"] for each in (await kube.list(CONFIGMAPS, namespace="kube-system")).items}
            assert ("note-a" in left, "other" in left) == (not ours, True)

    run_virtual(main)


def test_what_systems_wrote_onto_nodes_goes_and_what_the_kubelet_did_stays():
    async def main():
        kube = InProcessKube(fresh_store(virtual_clock().now, random.Random(1)))
        there = {"cpu": "4", "example.com/gpu-core": "400"}
        labels = {"example.com/model": "A100", "kubernetes.io/hostname": "host-1"}
        await kube.create(NODES, {"metadata": {"name": "host-1", "labels": labels}})
        await kube.patch(NODES, "host-1", {"status": {"capacity": there, "allocatable": there}}, subresource="status")
        await Reset(kube, PLACE, lambda _: None, on_nodes=["example.com/"]).boards()
        node = await kube.get(NODES, "host-1")
        assert node["status"]["capacity"] == node["status"]["allocatable"] == {"cpu": "4"}
        assert node["metadata"]["labels"] == {"kubernetes.io/hostname": "host-1"}

    run_virtual(main)
