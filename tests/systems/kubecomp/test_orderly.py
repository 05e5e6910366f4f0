"""A GPU leaves its host by the book, or stays there as it was: the steps, their refusals, and crashes between them."""

from __future__ import annotations

import asyncio

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.resources import PODS
from mews.kube.client.port import DeleteOptions
from mews.kube.system.host_steps import HostSteps
from mews.systems.kubecomp.metrics import KubeCompCounter
from mews.systems.kubecomp.records import node_report
from tests.systems.kubecomp.world import virtual, world

ON_1 = {"nodeSelector": {"kubernetes.io/hostname": "host-1"}}


def lost(w):
    return [event for _, _, event, _ in w.host_events if event in ("xid", "lost")]


@virtual
async def test_a_gpu_is_drained_and_removed_before_it_is_detached_and_looked_for_where_it_comes():
    async with world(4, 4, hosted=True) as w:
        await w.create("a", 5, **ON_1)
        await w.runs("a")
        gone = [event for event in w.on_host("host-2") if event != "node-removed"]
        assert gone == ["table", "draining", "nvml-hidden", "driver-unbound", "function-removed", "link-down"]
        assert "rescanned" in w.on_host("host-1")
        assert lost(w) == []
        assert w.device_on("host-1", w.moves()[0])["stage"] == "nvml"


@virtual
async def test_persistence_mode_is_switched_off_for_the_move():
    async with world(4, 4, hosted=True) as w:
        for gpuid in ("0-000400", "0-000500", "0-000600", "0-000700"):
            await w.operate("host-2", do="persistence", device=gpuid, on=True)
        await w.create("a", 5, **ON_1)
        await w.runs("a")
        moved = w.moves()[0]
        switched = [
            fields["on"] for _, host, event, fields in w.host_events if event == "persistence" and host == "host-2"
        ]
        assert switched == [True, True, True, True, False]
        assert lost(w) == [] and moved.startswith("0-000")


@virtual
async def test_with_removal_by_surprise_the_host_is_not_told_and_shows_it():
    async with world(4, 4, hosted=True, config={"removal": "surprise"}) as w:
        await w.create("a", 5, **ON_1)
        await w.runs("a")
        assert lost(w) == ["xid", "lost"]
        assert "draining" not in w.on_host("host-2") and "rescanned" not in w.on_host("host-1")


@virtual
async def test_a_holder_is_named_and_nothing_of_the_host_is_touched():
    async with world(4, 1, hosted=True) as w:
        await w.operate("host-2", do="hold", key="dcgm", pid=4711)
        await w.create("a", 5, **ON_1)
        await w.until(lambda: w.said("removal-refused"), "a refusal")
        await asyncio.sleep(1)
        message = "0-000400 cannot be taken from host-2: in use by dcgm (pid 4711)"
        assert await w.told("ReconfigRefused") == [message]
        assert w.metrics.counts[KubeCompCounter.REFUSED] == 1
        assert w.on_host("host-2") == ["table"]
        await w.until(lambda: announced(w, "host-2", 1), "it is announced again", 30)
        assert not w.has("detach-begun")


@virtual
async def test_the_pod_goes_on_when_the_holder_ends():
    async with world(4, 1, hosted=True) as w:
        await w.operate("host-2", do="hold", key="dcgm")
        await w.create("a", 5, **ON_1)
        await w.until(lambda: w.said("removal-refused"), "a refusal")
        await w.operate("host-2", do="release", key="dcgm")
        await w.runs("a", timeout_s=120)
        assert lost(w) == []


@virtual
async def test_a_program_that_merely_looks_is_waited_for():
    async with world(4, 1, hosted=True) as w:
        await w.operate("host-2", do="hold", key="nvidia-smi")
        await w.create("a", 5, **ON_1)
        await w.until(lambda: "0-000400" not in announced_now(w, "host-2"), "it is withdrawn")
        await asyncio.sleep(1)
        await w.operate("host-2", do="release", key="nvidia-smi")
        await w.runs("a", timeout_s=60)
        assert w.said("removal-refused") == []


@virtual
async def test_a_removal_that_blocks_is_given_up_and_what_it_takes_later_is_found_again(monkeypatch):
    async def looks_closed(self, place):
        return None

    # The last GPU of a host goes by sysfs. A program opens it between the look and the write: the write blocks.
    monkeypatch.setattr(HostSteps, "check_closed", looks_closed)
    async with world(4, 1, hosted=True) as w:
        await w.operate("host-2", do="hold", key="late")
        await w.create("a", 5, **ON_1)
        await w.until(lambda: w.said("removal-refused"), "a refusal")
        assert w.said("removal-refused")[0]["reason"] == "its removal did not end within 10 s"
        await w.kube.delete(PODS, "a", namespace="default", options=DeleteOptions(grace_period_s=1))
        await w.until(lambda: announced(w, "host-2", 1), "it is given back", 60)
        assert not w.device_on("host-2", "0-000400")["draining"]
        await w.operate("host-2", do="release", key="late")
        await w.until(lambda: w.on_host("host-2").count("function-removed"), "the write acts after all", 10)
        await w.until(lambda: w.device_on("host-2", "0-000400")["healthy"], "it is found again", 60)
        await w.until(lambda: announced(w, "host-2", 1), "and announced", 30)


@pytest.mark.parametrize("moment", ["draining", "driver-unbound", "function-removed"])
def test_what_a_crashed_device_manager_was_taking_out_is_given_back_and_announced(moment):
    async def play():
        async with world(4, 4, hosted=True) as w:
            w.cut_at[("host-2", moment)] = "device-manager/host-2"
            await w.create("a", 5, **ON_1)
            await w.until(lambda: moment in w.on_host("host-2"), moment)
            await w.kill("device-manager/host-2")
            await w.kube.delete(PODS, "a", namespace="default", options=DeleteOptions(grace_period_s=1))
            await asyncio.sleep(60)
            assert not w.has("detach-begun")
            w.start("device-manager/host-2")
            await w.until(lambda: all_there(w), "all four are healthy", 60)
            await w.until(lambda: announced(w, "host-2", 4), "and announced", 60)
            await asyncio.sleep(15)
            report = node_report(await w.config_map("node-host-2"))
            assert report is not None and not report.removing
            assert lost(w) == []

    def all_there(w):
        rows = [w.device_on("host-2", f"0-000{n}00") for n in (4, 5, 6, 7)]
        return all(row["healthy"] and not row["draining"] for row in rows)

    run_virtual(play)


@virtual
async def test_a_device_manager_that_dies_while_it_removes_finishes_the_removal_when_it_is_still_wanted():
    async with world(4, 4, hosted=True, host_profile={"drain": 1, "remove": 1}) as w:
        await w.create("a", 5, **ON_1)
        await w.until(lambda: "draining" in w.on_host("host-2"), "the drain")
        await w.restart("device-manager/host-2")
        await w.runs("a", timeout_s=120)
        assert lost(w) == []
        await w.until(lambda: announced(w, "host-2", 3), "three are left", 30)


@virtual
async def test_what_was_taken_out_and_is_asked_back_is_given_back_with_its_persistence_mode():
    async with world(4, 1, hosted=True, host_profile={"drain": 1, "remove": 1}) as w:
        await w.operate("host-2", do="persistence", device="0-000400", on=True)
        await w.create("a", 5, **ON_1)
        await w.until(lambda: "function-removed" in w.on_host("host-2") or w.has("detach-begun"), "the removal")
        await w.kill("reconfig-manager")
        if w.has("detach-begun"):
            return  # It was faster than the crash.
        await w.kube.delete(PODS, "a", namespace="default", options=DeleteOptions(grace_period_s=1))
        w.start("reconfig-manager")
        await w.until(lambda: announced(w, "host-2", 1), "it is announced again", 60)
        assert w.device_on("host-2", "0-000400")["persistence"]


@virtual
async def test_what_was_given_back_is_taken_off_the_host_again_before_it_goes_the_next_time():
    async with world(3, 3, hosted=True) as w:
        await w.create("a", 6, **ON_1)
        await w.until(lambda: announced(w, "host-2", 0), "the withdrawal")
        await w.kube.delete(PODS, "a", namespace="default", options=DeleteOptions(grace_period_s=0))
        await w.until(lambda: announced(w, "host-2", 3), "they are announced again", 60)
        await w.create("b", 5, **ON_1)
        await w.runs("b")
        assert lost(w) == []
        assert w.on_host("host-2").count("function-removed") == 3 + 2


@virtual
async def test_a_rescan_for_what_comes_does_not_bring_back_what_goes():
    slow = {"detach": 7, "attach": 13, "read": 0.1}
    async with world(4, 4, 1, hosted=True, profile=slow, host_profile={"pciehp": False}) as w:
        await w.kill("device-manager/host-3")
        await w.create("a", 5, **ON_1)
        await w.until(lambda: "function-removed" in w.on_host("host-2"), "the removal")
        await w.hardware.edit("A", "000800", "2")
        await w.runs("a", timeout_s=120)
        assert {host for _, host, event, _ in w.host_events if event == "lost"} == {"host-3"}
        await w.until(lambda: announced(w, "host-2", 4), "the one that came is announced", 60)
        came = [(host, fields["gpuid"]) for _, host, event, fields in w.host_events if event == "function-added"]
        assert came == [("host-2", "0-000800"), ("host-1", "0-000400")]


def announced_now(w, host):
    found = [fields["devices"] for _, who, event, fields in w.records if event == "announced" and who.endswith(host)]
    return found[-1] if found else {}


def announced(w, host, count):
    return len(announced_now(w, host)) == count
