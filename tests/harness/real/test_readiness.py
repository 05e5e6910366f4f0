"""When a scenario may begin on a real cluster."""

import asyncio
import random

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.real.readiness import Readiness
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.ports.cluster import ComponentsCrashedError
from mews.kube.api.resources import NODES
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store

GPU = "falcon.com/gpu"


async def nodes(others=False):
    kube = InProcessKube(fresh_store(virtual_clock().now, random.Random(1)))
    journal = Journal(asyncio.get_running_loop().time)
    journal.write("kubelet", "kubelet/host-1", "registered", resource=GPU)
    journal.write("kubelet", "kubelet/host-1", "devices", resource=GPU)
    await kube.create(NODES, {"metadata": {"name": "box"}})
    status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {GPU: "2"}}
    await kube.patch(NODES, "box", {"status": status}, subresource="status")
    hosts = {"box": "host-1"}
    made = Readiness(kube, journal, Journal(lambda: 0.0), hosts=hosts, managed={"host-1"}, others=others)
    return kube, journal, made


async def fine():
    pass


@pytest.mark.parametrize(("others", "event"), [(False, "registered"), (True, "devices")])
def test_what_was_told_before_this_run_does_not_count(others, event):
    async def main():
        _, journal, readiness = await nodes(others)
        waiting = asyncio.create_task(readiness.reached({"box": {GPU: 2}}, fine, lambda _: None))
        await asyncio.sleep(10)
        assert not waiting.done()
        journal.write("kubelet", "kubelet/host-1", event, resource=GPU)
        await waiting

    run_virtual(main)


def test_of_somebody_elses_device_manager_without_devices_nothing_is_awaited():
    async def main():
        kube, _, readiness = await nodes(others=True)
        await kube.patch(NODES, "box", {"status": {"allocatable": {GPU: "0"}}}, subresource="status")
        await readiness.reached({"box": {GPU: 0}}, fine, lambda _: None)

    run_virtual(main)


def test_what_is_late_is_named_and_a_known_reason_comes_first():
    async def crashed():
        raise ComponentsCrashedError("device-manager/host-1 exited with code 1: no")

    async def main():
        _, _, readiness = await nodes()
        with pytest.raises(ComponentsCrashedError, match="exited with code 1"):
            await readiness.reached({"box": {GPU: 2}}, crashed, lambda _: None)
        with pytest.raises(RequirementError, match="not ready within 90 s: box to hear of its device manager"):
            await readiness.reached({"box": {GPU: 3}}, fine, lambda _: None)

    run_virtual(main)
