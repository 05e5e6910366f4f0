"""Reconfigurations end to end: which devices move, how many, and what happens when the world does not hold still."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.resources import CONFIGMAPS, PODS, PRIORITY_CLASSES
from mews.kube.client.port import DeleteOptions
from mews.systems.kubecomp.config import Timing
from mews.systems.kubecomp.metrics import KubeCompCounter, Phase
from mews.systems.kubecomp.records import intents, node_report, pool_state, withdraw_requests
from tests.systems.kubecomp.world import World, virtual, world

SLOW = {"attach": 13, "detach": 7, "read": 1}


def on(host: str) -> dict[str, Any]:
    """The part of a pod's spec that sends it there."""
    return {"nodeSelector": {"kubernetes.io/hostname": host}}


async def deleted(w: World, *names: str) -> None:
    for name in names:
        await w.kube.delete(PODS, name, namespace="default", options=DeleteOptions(grace_period_s=1))


async def nothing_is_left(w: World, *hosts: str) -> None:
    """No intent and no request for withdrawal stands."""
    assert not intents(await w.config_map("reconfig-journal"))
    for found in (await w.kube.list(CONFIGMAPS, namespace=w.config.namespace)).items:
        if found["metadata"]["name"].startswith("withdraw-"):
            assert withdraw_requests(found) == {}


@virtual
@pytest.mark.parametrize("dialect", ["h3api", "resource-pool"])
async def test_a_pod_asks_for_five_and_exactly_one_moves(dialect: str) -> None:
    async with world(4, 4, 4, dialect=dialect) as w:
        await w.create("a", 5)
        await w.runs("a")
        assert w.moves() == ["0-000400"]
        assert await w.node_of("a") == "host-1"
        held = await w.holders("host-1")
        table = await w.ports()
        assert sorted(held) == sorted(gpuid for gpuid, port in table.items() if port == "1")
        assert await w.told("Reconfig") == ["Pod a needs reconfiguration"]
        await nothing_is_left(w)
        pool = pool_state(await w.config_map("pool-pool-0"))
        assert pool is not None
        assert (len(pool.devices), pool.free) == (12, 7)
        assert w.metrics.counts[KubeCompCounter.MOVED] == 1
        assert w.metrics.counts[KubeCompCounter.RECONFIGURATIONS] == 1
        assert {phase: len(values) for phase, values in w.metrics.durations.items()} == dict.fromkeys(Phase, 1)


@virtual
async def test_devices_that_the_host_has_no_cable_to_are_no_help() -> None:
    async with world(1, 4, chassis=2, uncabled={("B", "host-1")}) as w:  # of host-2's four two lie in B
        await w.create("more-than-its-cables-bring", 4, **on("host-1"))
        await w.said_soon("reconfiguration-wanted")
        await asyncio.sleep(300)
        assert w.moves() == []
        assert not [text for text in await w.told("Reconfig") if "refused" in text]
        await deleted(w, "more-than-its-cables-bring")
        await w.create("as-many", 3, **on("host-1"))
        await w.runs("as-many")
        assert [move[0] for move in w.moves()] == ["0", "0"]
        await nothing_is_left(w)


@virtual
async def test_the_annotations_are_the_papers_while_the_pod_waits() -> None:
    async with world(2, 4, profile=SLOW) as w:
        await w.create("p", 4, **on("host-1"))
        await w.said_soon("reconfiguration-wanted")
        await asyncio.sleep(1)
        found = await w.annotations("p")
        assert {key: found[key] for key in ("use_falcon", "dst_node", "gpu_demand", "demand")} == {
            "use_falcon": "true",
            "dst_node": "host-1",
            "gpu_demand": "2",
            "demand": "2",
        }
        await w.runs("p")


@virtual
async def test_two_pods_race_for_the_last_devices_and_one_gets_them() -> None:
    async with world(4, 4) as w:
        await w.create("user", 2, **on("host-2"))
        await w.runs("user")
        await w.create("a", 5)
        await w.create("b", 5)
        await w.until(lambda: w.has("attached"), "a move")
        await asyncio.sleep(60)
        phases = sorted([await w.phase("a"), await w.phase("b")])
        assert phases == ["Pending", "Running"]
        assert len(w.moves()) == 1


@virtual
async def test_two_pods_served_at_once_never_share_a_device_and_move_only_what_is_lacking() -> None:
    async with world(4, 4, 4, 4, profile=SLOW) as w:
        await w.create("a", 6, **on("host-1"))
        await w.create("b", 6, **on("host-2"))
        await w.runs("a", "b")
        assert len(w.moves()) == len(set(w.moves())) == 4
        assert await w.counts() == {"host-1": 6, "host-2": 6, "host-4": 4}, "the rest of host-3 were fragments"


@virtual
async def test_a_pod_that_comes_while_a_device_is_withdrawn_does_not_lose_it() -> None:
    async with world(4, 4, 4, profile=SLOW) as w:
        await w.create("a", 5)
        await w.said_soon("withdrawal-asked", node="host-2")
        await w.create("b", 5, **on("host-2"))
        await w.runs("a", "b")
        assert w.moves() == ["0-000800", "0-000900"], "both of host-3, which nobody needs"
        await nothing_is_left(w)


@virtual
async def test_two_pods_on_one_node_move_what_both_lack_together() -> None:
    async with world(4, 4, 4, profile=SLOW) as w:
        await w.create("a", 3, **on("host-1"))
        await w.create("b", 3, **on("host-1"))
        await w.create("c", 2, **on("host-1"))
        await w.runs("a", "b", "c")
        assert len(w.moves()) == 4


@virtual
async def test_unattached_devices_are_used_first_and_only_attached() -> None:
    async with world(4, 4, free=1) as w:
        await w.create("a", 6)
        await w.runs("a")
        assert w.moves() == ["0-000800", "0-000400"]
        assert await w.counts() == {"host-1": 6, "host-2": 3}


@virtual
async def test_devices_come_from_the_node_with_fewest_free_ones() -> None:
    async with world(4, 4, 4) as w:
        await w.create("user", 3, **on("host-3"))
        await w.runs("user")
        held = set(await w.holders("host-3"))
        await w.create("a", 5, **on("host-1"))
        await w.runs("a")
        (moved,) = w.moves()
        assert moved not in held
        assert (await w.counts())["host-3"] == 3


@virtual
async def test_what_can_never_fit_is_told_and_nothing_moves() -> None:
    async with world(4, 4) as w:
        await w.create("a", 9)
        await asyncio.sleep(60)
        assert await w.phase("a") == "Pending"
        assert any(
            "Pod a requires 9 GPU but only 8 GPU in the pool." in text for text in await w.told("FailedScheduling")
        )
        assert w.moves() == []


@virtual
async def test_a_pod_waits_for_an_exhausted_pool_and_runs_once_it_is_freed() -> None:
    async with world(4, 4) as w:
        await w.create("first", 4, **on("host-1"), seconds=100)
        await w.create("second", 4, **on("host-2"))
        await w.runs("first", "second")
        await w.create("third", 3)
        await asyncio.sleep(30)
        assert await w.phase("third") == "Pending"
        await w.runs("third", timeout_s=120)
        assert w.moves() == []


@virtual
async def test_too_few_candidates_move_none_and_the_pod_is_served_later() -> None:
    async with world(4, 4, 4) as w:
        await w.kill("device-manager/host-3")
        await asyncio.sleep(60)
        await w.create("a", 12)
        await w.said_soon("planned", moves=[])
        await asyncio.sleep(20)
        assert w.moves() == []
        w.start("device-manager/host-3")
        await w.runs("a")
        assert len(w.moves()) == 8


@virtual
async def test_with_partial_what_there_is_moves_at_once() -> None:
    async with world(4, 4, 4, config={"partial": True}) as w:
        await w.kill("device-manager/host-3")
        await asyncio.sleep(60)
        await w.create("a", 12)
        await w.until(lambda: len(w.moves()) == 4, "four moves")
        w.start("device-manager/host-3")
        await w.runs("a")
        assert len(w.moves()) == 8


@virtual
async def test_a_more_important_pod_may_have_the_devices_of_a_less_important_one() -> None:
    async with world(4, 4) as w:
        body = {"metadata": {"name": "high"}, "value": 1000}
        await w.kube.create(PRIORITY_CLASSES, body)
        await w.create("low", 6)
        await w.runs("low")
        await w.create("high", 4, priorityClassName="high")
        await w.runs("high")
        assert [pod["metadata"]["name"] for pod in (await w.kube.list(PODS)).items] == ["high"]


@virtual
@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        ("both", ["host-2", "host-1", "host-3"]),  # exactly enough; three of four used; exactly enough
        ("best-fit", ["host-2", "host-1", "host-3"]),
    ],
)
async def test_the_fullest_node_that_has_enough_is_chosen(policy: str, nodes: list[str]) -> None:
    async with world(4, 2, 8, scheduler={"policy": policy}) as w:
        for name, gpus in (("a", 2), ("b", 3), ("c", 8)):
            await w.create(name, gpus)
            await w.runs(name)
        assert [await w.node_of(name) for name in "abc"] == nodes
        assert w.moves() == []


@virtual
async def test_the_node_that_lacks_least_is_chosen_when_none_has_enough() -> None:
    async with world(2, 4, 3) as w:
        await w.create("a", 5)
        await w.runs("a")
        assert await w.node_of("a") == "host-2"
        assert len(w.moves()) == 1


@virtual
@pytest.mark.parametrize("age_s", [5, 20])
async def test_stale_lists_move_nothing_twice_and_nothing_in_use(age_s: float) -> None:
    async with world(4, 4, 4) as w:
        await w.create("user", 3, **on("host-3"))
        await w.runs("user")
        held = set(await w.holders("host-3"))
        await w.hardware.fault("A", {"kind": "stale-list", "age_s": age_s, "count": 6})
        await w.create("a", 6, **on("host-1"))
        await w.runs("a")
        assert held.isdisjoint(w.moves())
        assert (await w.counts())["host-1"] == 6
        await nothing_is_left(w)


@virtual
async def test_pools_do_not_mix() -> None:
    async with world(2, 4, 2, 4, pools=("pool-0", "pool-1")) as w:
        await w.create("a", 4)
        await w.runs("a")
        assert await w.node_of("a") == "host-2", "the least demand is none"
        await w.create("b", 4, **on("host-1"))
        await w.runs("b")
        assert await w.counts() == {"host-1": 4, "host-2": 4, "host-4": 4}
        await w.create("c", 5)
        await asyncio.sleep(30)
        assert any("Pod c requires 5 GPU but only 4 GPU in the pool." in t for t in await w.told("FailedScheduling"))


@virtual
async def test_an_fpga_is_pooled_with_unchanged_code() -> None:
    changes = {
        "resource": "example.com/fpga",
        "device_kind": "FPGA",
        "device_env": "POOL_DEVICES",
        "uuid_env": "FPGA_UUIDS",
        "plugin_socket": "fpga.sock",
        "scheduler_name": "fpga-scheduler",
        "namespace": "fpga-pool",
    }
    async with world(2, 2, kind="FPGA", config=changes) as w:
        await w.create("a", 3)
        await w.runs("a")
        assert await w.counts() == {"host-1": 3, "host-2": 1}
        assert await w.allocatable("host-1") == 3


@virtual
async def test_a_pod_deleted_midway_leaves_no_device_on_no_port_and_no_more_moves() -> None:
    async with world(4, 4, profile=SLOW) as w:
        await w.create("a", 7)
        await w.until(lambda: w.has("detached"), "a detach")
        await deleted(w, "a")
        await asyncio.sleep(120)
        assert None not in await w.counts()
        assert len(w.moves()) == 1
        await nothing_is_left(w)
        await w.create("b", 4, **on("host-2"))
        await w.runs("b")


@virtual
async def test_a_detach_that_is_answered_late_takes_no_device_from_its_node() -> None:
    async with world(4, 4, profile=SLOW) as w:
        await w.hardware.fault("A", {"kind": "slow-operation", "operation": "detach", "extra_s": 90, "count": 1})
        await w.create("a", 5)
        await w.until(lambda: w.has("detach-begun"), "a detach")
        await deleted(w, "a")
        await w.said_soon("move-ended")
        gone = w.moves() or [gpuid for event, gpuid in w.happened if event == "detached"]
        assert gone, "the move was open until the chassis had answered"
        await asyncio.sleep(60)
        assert await w.counts() == {"host-1": 4, "host-2": 4}
        assert await w.allocatable("host-2") == 4
        await nothing_is_left(w)


@virtual
async def test_another_editor_is_tolerated_and_planned_around() -> None:
    async with world(4, 4, 4, profile=SLOW) as w:
        await w.create("a", 6)
        await w.until(lambda: w.has("detached"), "a detach")
        await w.hardware.edit("A", w.happened[-1][1].partition("-")[2], "3")
        await w.runs("a")
        assert (await w.counts())["host-1"] == 6
        await nothing_is_left(w)


@virtual
async def test_what_a_reading_before_a_move_finds_is_published() -> None:
    async with world(0, 2, 0, chassis=2, profile=SLOW) as w:
        await w.create("a", 2, **on("host-1"))
        await w.until(lambda: ("attach-begun", "0-000000") in w.happened, "the first device's attach")
        await w.hardware.edit("B", "000000", "3")
        await w.until(lambda: ("detach-begun", "1-000000") in w.happened, "the second one's detach")
        published = pool_state(await w.config_map("pool-pool-0"))
        assert published is not None
        assert [device.node for device in published.devices if device.chassis == "B"] == ["host-3"]
        await w.runs("a")


@virtual
async def test_a_device_that_never_trains_holds_nobody_up() -> None:
    quick = Timing(read_back_bound_s=5.0, retries=2)
    async with world(4, 4, 4, timing=quick) as w:
        await w.hardware.fault("A", {"kind": "never-trains", "device": "000400"})
        await w.create("a", 5)
        await w.runs("a", timeout_s=300)
        assert (await w.ports())["0-000400"] is None
        assert "0-000400" in intents(await w.config_map("reconfig-journal")), "an operation is pending"
        await w.create("b", 5, **on("host-2"))
        await w.runs("b", timeout_s=300)
        await w.hardware.clear()
        await w.until(lambda: _has_a_port(w, "0-000400"), "the device back on a port", 300)
        await asyncio.sleep(30)
        await nothing_is_left(w)


async def _has_a_port(w: World, gpuid: str) -> bool:
    return (await w.ports())[gpuid] is not None


@virtual
async def test_a_node_that_does_not_answer_keeps_its_devices_and_they_are_announced_again() -> None:
    async with world(4, 4, 4) as w:
        await w.kill("device-manager/host-2")
        await w.create("a", 5, **on("host-1"))
        await w.said_soon("withdrawal-timeout")
        await w.runs("a")
        assert await w.counts() == {"host-1": 5, "host-2": 4, "host-3": 3}
        w.start("device-manager/host-2")
        await w.until(lambda: _reports(w, "host-2", 4), "four announced again", 60)
        await nothing_is_left(w)


async def _reports(w: World, host: str, count: int) -> bool:
    report = node_report(await w.config_map(f"node-{host}"))
    return report is not None and len(report.announced) == count


@virtual
async def test_a_request_that_nobody_renews_lapses_and_the_device_is_announced_again() -> None:
    async with world(4, 4, without=("reconfig-manager", "scheduler")) as w:
        await w.until(lambda: _reported(w, "host-1"), "a report", 60)
        until = w.clock.now() + 30
        await w.post("withdraw-host-1", {"requests": f'{{"0-000000":{{"request":"r1","until":{until}}}}}'})
        await w.said_soon("consented", device="0-000000")
        assert await _reports(w, "host-1", 3)
        await asyncio.sleep(40)
        assert await _reports(w, "host-1", 4)


async def _reported(w: World, host: str) -> bool:
    maps = await w.kube.list(CONFIGMAPS)
    return any(found["metadata"]["name"] == f"node-{host}" and (node_report(found) or 0) for found in maps.items)


@virtual
async def test_a_withdrawn_device_is_refused_to_containers() -> None:
    async with world(4, 4) as w:
        await w.kill("reconfig-manager")
        await w.post("withdraw-host-1", {"requests": '{"0-000000":{"request":"r1","until":1e12}}'})
        await w.said_soon("consented", device="0-000000")
        plugin = await w.machines["host-1"].folder.dial(w.config.plugin_socket)
        with pytest.raises(Exception, match=r"falcon\.com/gpu device 0-000000 is withdrawn"):
            await plugin.allocate([["0-000000"]])
        await plugin.close()


@virtual
async def test_a_plugin_killed_and_back_announces_the_same_devices_again() -> None:
    async with world(4, 4) as w:
        await w.create("a", 3)
        await w.runs("a")
        held = await w.holders("host-1")
        await w.kill("device-manager/host-1")
        await w.until(lambda: _shows(w, "host-1", 0), "no healthy device", 60)
        w.start("device-manager/host-1")
        await w.until(lambda: _shows(w, "host-1", 4), "four again", 60)
        assert await w.holders("host-1") == held


async def _shows(w: World, host: str, count: int) -> bool:
    return await w.allocatable(host) == count


@virtual
async def test_a_kubelet_restart_is_followed_by_a_new_registration() -> None:
    async with world(4, 4) as w:
        await w.create("a", 3)
        await w.runs("a")
        held = await w.holders("host-1")
        await w.restart("kubelet/host-1")
        await asyncio.sleep(30)
        assert await w.allocatable("host-1") == 4
        assert await w.holders("host-1") == held
        assert w.said("consented") == []


@virtual
async def test_a_device_in_use_that_falls_off_is_unhealthy_and_healthy_again_without_a_restart() -> None:
    async with world(4, 4) as w:
        await w.create("a", 1)
        await w.runs("a")
        (held,) = await w.holders(await w.node_of("a"))
        await w.hardware.fault("A", {"kind": "link-down", "device": held.partition("-")[2]})
        await w.said_soon("announced", timeout_s=60, devices=_devices(w, held, "Unhealthy"))
        await w.hardware.clear()
        await w.said_soon("announced", timeout_s=60, devices=_devices(w, held, "Healthy"))
        assert w.incarnations["device-manager/host-1"] == 1


def _devices(w: World, held: str, health: str) -> dict[str, str]:
    return {f"0-{slot:04}00": health if f"0-{slot:04}00" == held else "Healthy" for slot in range(4)}


@virtual
async def test_a_device_is_announced_only_once_the_host_confirms_it() -> None:
    seen: set[str] = set()

    async def confirm(devices: Any) -> Any:
        return [device for device in devices if device.gpuid in seen or device.gpuid != "0-000400"]

    async with world(4, 4, without=("reconfig-manager",), confirm=confirm) as w:
        await w.until(lambda: _reported(w, "host-2"), "a report", 60)
        await asyncio.sleep(20)
        assert await w.allocatable("host-2") == 3
        seen.add("0-000400")
        await w.until(lambda: _shows(w, "host-2", 4), "confirmed", 60)


@virtual
async def test_a_crashed_scheduler_leaves_no_demand_behind() -> None:
    async with world(4, 4, 4, profile=SLOW) as w:
        await w.create("a", 6)
        await w.said_soon("reconfiguration-wanted")
        await w.kill("scheduler")
        await w.create("hog", 7, scheduler="other")
        await w.kube.bind("default", "hog", "host-3")  # what makes the pod fit nowhere any more
        w.start("scheduler")
        await w.until(lambda: _is_not_annotated(w, "a"), "annotations cleared", 60)
        assert await w.phase("a") == "Pending"


async def _is_not_annotated(w: World, name: str) -> bool:
    return "use_falcon" not in await w.annotations(name)


@virtual
async def test_permit_gives_up_at_its_bound_clears_the_annotations_and_tries_again() -> None:
    async with world(4, 4) as w:
        await w.kill("reconfig-manager")
        await w.create("a", 6)
        await w.said_soon("reconfiguration-wanted")
        await asyncio.sleep(179)
        assert not await _is_not_annotated(w, "a")
        await w.said_soon("given-up", timeout_s=5)
        await w.until(lambda: _is_not_annotated(w, "a"), "annotations cleared", 5)
        w.start("reconfig-manager")
        await w.runs("a", timeout_s=120)


@virtual
async def test_with_strict_order_no_job_starts_before_an_earlier_one() -> None:
    async with world(4, 4, scheduler={"strict_fcfs": True}) as w:
        await w.create("first", 8, seconds=100)
        await w.runs("first")
        await w.create("second", 5)
        await w.create("third", 1)
        await w.create("fourth", 0)
        await asyncio.sleep(50)
        assert [await w.phase(name) for name in ("second", "third", "fourth")] == ["Pending"] * 3
        await w.runs("second", "third", "fourth", timeout_s=200)
        bound = [fields["pod"].partition("/")[2] for fields in w.said("bound")]
        assert bound == ["first", "second", "third", "fourth"]


@virtual
async def test_without_it_a_later_pod_passes_one_that_cannot_be_placed() -> None:
    async with world(4, 4) as w:
        await w.create("first", 8)
        await w.runs("first")
        await w.create("second", 5)
        await w.create("third", 0)
        await w.runs("third")
        assert await w.phase("second") == "Pending"


def test_the_same_seed_writes_the_same_records() -> None:
    first = run_virtual(lambda: _records(7))
    assert first == run_virtual(lambda: _records(7))
    assert len(first) > 50


async def _records(seed: int) -> list[str]:
    async with world(4, 4, 4, profile="falcon-4005", seed=seed) as w:
        await w.create("a", 6)
        await w.create("b", 5)
        await w.runs("b", timeout_s=900)
        return [f"{t:.6f} {who} {event} {dict(fields)}" for t, who, event, fields in w.records]


@virtual
async def test_a_move_whose_demand_has_gone_is_turned_back() -> None:
    async with world(4, 4, profile={"attach": 13, "detach": 7, "read": 1}) as w:
        await w.create("a", 5)
        await w.until(lambda: w.has("detach-begun"), "detach begun")
        await w.kube.delete(PODS, "a", namespace="default")
        await w.said_soon("move-ended", end="returned")
        assert await w.counts() == {"host-1": 4, "host-2": 4}
