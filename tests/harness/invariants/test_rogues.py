"""Tests of the tests on the whole embedded cluster: somebody breaks an invariant for real, through the front doors."""

import asyncio

import pytest

from mews.harness.catalogue.files import shipped
from mews.harness.clock import run_virtual
from mews.harness.clusters import open_cluster
from mews.harness.invariants import Bounds, Oracle
from mews.harness.scenario.loader import parse_scenario
from mews.kube.api.objects import phase_of
from mews.kube.api.resources import PODS

EMPTY = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: rogue}\nhardware: demo\n"


def a_pod(name, gpus=1, **spec):
    container = {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": {"falcon.com/gpu": str(gpus)}}}
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": "kubecomp-scheduler", "containers": [container], **spec},
    }


async def running(cluster, name):
    for _ in range(300):
        if phase_of(await cluster.kube.get(PODS, name, namespace="default")) == "Running":
            return
        await asyncio.sleep(1)
    raise TimeoutError(name)


def violations(play, **bounds):
    """What the oracle finds when this is played after a pod with one GPU runs."""

    async def main():
        scenario = parse_scenario(EMPTY, shipped("hardware", "demo").parent / "rogue.yaml")
        cluster = await open_cluster(scenario, seed=1)
        try:
            oracle = Oracle(cluster, bounds=Bounds(**bounds))
            await oracle.start()
            await cluster.kube.create(PODS, a_pod("honest"), namespace="default")
            await running(cluster, "honest")
            [allocated] = cluster.journal.find("kubelet", "allocated")
            [device] = allocated.fields["devices"]
            await play(cluster, device.partition("-")[2])
            return await oracle.finish()
        finally:
            await cluster.close()

    return run_virtual(main)


def test_an_honest_run_has_none():
    async def nothing(cluster, device):
        await asyncio.sleep(60)

    assert violations(nothing) == []


def test_a_client_that_detaches_a_device_in_use_is_found():
    async def steal(cluster, device):
        chassis = cluster.ports.chassis.client("A", "h3api", timeout_s=60.0)
        await chassis.detach(device)
        await asyncio.sleep(5)

    found = violations(steal)
    stolen = [violation for violation in found if violation.invariant == 2]
    assert len(stolen) == 1
    assert stolen[0].first.event == "detached"


def test_another_editor_who_does_the_same_is_excused():
    async def edit(cluster, device):
        await cluster.hardware.edit("A", device, None)
        await asyncio.sleep(5)

    assert violations(edit) == []


@pytest.mark.parametrize("bound_s", [100.0, None])
def test_a_device_that_a_client_leaves_unattached_is_found_unless_nobody_asks(bound_s):
    async def orphan(cluster, device):
        chassis = cluster.ports.chassis.client("A", "h3api", timeout_s=60.0)
        rows = (await cluster.hardware.table())["A"]
        free = next(d for d, row in sorted(rows.items()) if d != device and row["host"] == rows[device]["host"])
        await chassis.detach(free)
        await asyncio.sleep(150)

    # Nobody prepared the host either: it reports an XID, and a device lost.
    found = [v.invariant for v in violations(orphan, unattached_s=bound_s)]
    assert found == [10, 10, *([5] if bound_s else [])]


def test_a_kubelet_that_lost_its_checkpoint_gives_a_device_twice_and_is_found():
    """As a real one does (contract kubelet.md section 6): running pods keep their devices, and they count as free."""

    async def forget(cluster, device):
        cluster.ports.kubelets.checkpoint("host-1").spoil()
        await cluster.kill("kubelet/host-1")
        await cluster.start("kubelet/host-1")
        await asyncio.sleep(60)
        await cluster.kube.create(PODS, a_pod("greedy", 4, nodeName="host-1"), namespace="default")
        await asyncio.sleep(60)

    assert 3 in [violation.invariant for violation in violations(forget)]
