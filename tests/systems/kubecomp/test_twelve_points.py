"""What the public implementation gets wrong (contract kubecomp.md section 3): one regression test, or more, a point."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mews.kube.api.resources import EVENTS, PODS
from mews.kube.client.port import DeleteOptions
from mews.kube.deviceplugin.port import PluginError
from mews.systems.kubecomp.records import DST_NODE, USE_FALCON, intents
from tests.systems.kubecomp.world import World, virtual, world

SLOW = {"attach": 13, "detach": 7, "read": 1}
"""Latencies, seconds."""


async def waits(w: World, name: str) -> None:
    """Wait until the scheduler has told what the pod lacks."""
    await w.until(lambda: _is_annotated(w, name), f"{name} annotated")


async def _is_annotated(w: World, name: str) -> bool:
    return (await w.annotations(name)).get(USE_FALCON) == "true"


@virtual
async def test_point_01_permit_does_not_block_the_cycle() -> None:
    async with world(4, 4, profile=SLOW) as w:
        await w.create("big", 6)
        await waits(w, "big")
        begun_s = asyncio.get_running_loop().time()
        await w.create("plain", 0)
        await w.create("small", 1)
        await w.runs("plain", "small")
        assert asyncio.get_running_loop().time() - begun_s < 15
        assert await w.phase("big") == "Pending"
        await w.runs("big")


@virtual
async def test_point_02_the_permit_bound_outlasts_real_hardware() -> None:
    async with world(4, 4, profile=SLOW) as w:
        await w.create("all", 8)
        await w.runs("all")
        bound_at = next(t for t, _, event, fields in w.records if event == "bound" and fields["pod"] == "default/all")
        asked_at = next(t for t, _, event, _ in w.records if event == "reconfiguration-wanted")
        assert bound_at - asked_at > 15 + 5 * 4, "longer than the public implementation waits"
        assert w.said("given-up") == []
        assert len(w.moves()) == 4


@virtual
async def test_point_03_annotations_are_cleared_and_repeated_or_replayed_events_move_nothing() -> None:
    async with world(4, 4, 4) as w:
        await w.create("a", 5)
        await w.runs("a")
        assert set(await w.annotations("a")) == {"mews.dev/duration-s"}
        assert len(w.moves()) == 1
        event = next(e for e in (await w.kube.list(EVENTS)).items if e["reason"] == "Reconfig")
        for n in range(3):
            replay = {key: value for key, value in event.items() if key != "metadata"}
            await w.kube.create(EVENTS, {**replay, "metadata": {"name": f"again-{n}"}}, namespace="default")
            await w.kube.patch(EVENTS, event["metadata"]["name"], {"count": n + 2}, namespace="default")
            await asyncio.sleep(15)
        await w.restart("reconfig-manager")
        await asyncio.sleep(30)
        assert len(w.moves()) == 1


@virtual
async def test_point_03_a_stale_annotation_says_where_but_never_how_many() -> None:
    async with world(4, 4, without=("scheduler",)) as w:
        await w.ready()
        await w.create("a", 5, annotations={USE_FALCON: "true", DST_NODE: "host-1", "demand": "4", "gpu_demand": "4"})
        await w.said_soon("reconfigured", pod="default/a")
        await asyncio.sleep(60)
        assert len(w.moves()) == 1


@virtual
@pytest.mark.parametrize("moment", ["detach-begun", "detached", "attach-begun", "attached"])
async def test_point_04_a_crash_at_any_moment_of_a_move_orphans_no_device(moment: str) -> None:
    async with world(4, 4, profile=SLOW) as w:
        await w.create("a", 5)
        await w.until(lambda: w.has(moment), moment)
        await w.kill("reconfig-manager")
        await asyncio.sleep(30)
        w.start("reconfig-manager")
        await w.runs("a")
        assert await w.counts() == {"host-1": 5, "host-2": 3}
        assert len(w.moves()) == 1
        await w.until(lambda: _journal_is_empty(w), "the journal empty")


async def _journal_is_empty(w: World) -> bool:
    return not intents(await w.config_map("reconfig-journal"))


@virtual
@pytest.mark.parametrize("moment", ["detach-begun", "detached", "attach-begun", "attached"])
async def test_point_04_closed_watches_and_an_api_that_is_away_crash_nobody(moment: str) -> None:
    async with world(4, 4, profile=SLOW) as w:
        await w.create("a", 6)
        await w.until(lambda: w.has(moment), moment)
        w.api_is_down.set()
        await asyncio.sleep(45)
        assert len(w.moves()) <= 1, "what cannot be written down is not begun"
        w.api_is_down.clear()
        await w.runs("a")
        assert await w.counts() == {"host-1": 6, "host-2": 2}
        assert len(w.moves()) == 2
        assert set(w.incarnations.values()) == {1}


@virtual
async def test_point_04_a_device_left_on_no_port_for_a_pod_that_is_gone_goes_back() -> None:
    async with world(4, 4, profile=SLOW) as w:
        await w.create("a", 5)
        await w.until(lambda: w.has("detached"), "detached")
        await w.kill("reconfig-manager")
        await w.kube.delete(PODS, "a", namespace="default")
        await asyncio.sleep(30)
        w.start("reconfig-manager")
        await w.until(lambda: _is(w.counts, {"host-1": 4, "host-2": 4}), "back on its node")


async def _is(question: Callable[[], Awaitable[Any]], answer: Any) -> bool:
    return await question() == answer


@virtual
async def test_point_05_dropped_partial_and_empty_lists_take_no_device_away() -> None:
    async with world(4, 4) as w:
        listed = len(w.said("announced"))
        for spec in (
            {"kind": "dropped-connection", "operation": "read", "count": 20},
            {"kind": "partial-list", "count": 20},
            {"kind": "partial-list", "keep": 0, "count": 60},
        ):
            await w.hardware.fault("A", spec)
            await asyncio.sleep(40)
        assert len(w.said("announced")) == listed
        assert [await w.allocatable(host) for host in ("host-1", "host-2")] == [4, 4]


@virtual
async def test_point_05_a_manager_that_starts_amid_partial_lists_waits_for_a_full_one() -> None:
    async with world(4, 4) as w:
        await w.kill("device-manager/host-1")
        await w.hardware.fault("A", {"kind": "partial-list", "keep": 3, "count": 5})
        announced = len(w.said("announced"))
        w.start("device-manager/host-1")
        await asyncio.sleep(30)
        assert [len(fields["devices"]) for fields in w.said("announced")[announced:]] == [4]


@virtual
@pytest.mark.parametrize("dialect", ["h3api", "resource-pool"])
@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "lying-result", "operation": "attach", "count": 3},
        {"kind": "lying-result", "operation": "detach"},
        {"kind": "dropped-connection", "operation": "attach", "when": "after"},
        {"kind": "dropped-connection", "operation": "detach", "when": "after"},
        {"kind": "http-error", "operation": "detach"},
    ],
    ids=lambda fault: "-".join(str(value) for value in fault.values()),
)
async def test_point_06_the_table_is_believed_not_the_reply(fault: dict[str, Any], dialect: str) -> None:
    async with world(4, 4, dialect=dialect) as w:
        await w.hardware.fault("A", fault)
        await w.create("a", 6)
        await w.runs("a")
        assert await w.counts() == {"host-1": 6, "host-2": 2}
        assert len(w.moves()) == 2


@virtual
@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "dropped-connection", "operation": "attach", "when": "before", "count": 2},
        {"kind": "half-applied-attach", "count": 2},
        {"kind": "timeout", "operation": "attach"},
        {"kind": "management-reboot", "operation": "attach", "down_s": 90},
    ],
    ids=lambda fault: str(fault["kind"]),
)
async def test_point_07_a_failed_attach_after_a_good_detach_is_tried_again(fault: dict[str, Any]) -> None:
    async with world(4, 4, profile=SLOW) as w:
        await w.hardware.fault("A", fault)
        await w.create("a", 5)
        await w.runs("a", timeout_s=900)
        assert await w.counts() == {"host-1": 5, "host-2": 3}


@virtual
async def test_point_07_a_device_that_cannot_be_attached_there_goes_back_and_another_comes() -> None:
    async with world(4, 4) as w:
        await w.hardware.fault("A", {"kind": "half-applied-attach", "device": "000400", "count": 4})
        await w.create("a", 5)
        await w.runs("a", timeout_s=900)
        ports = await w.ports()
        assert ports["0-000400"] == "2"
        assert await w.counts() == {"host-1": 5, "host-2": 3}


@virtual
async def test_point_08_holders_come_from_the_kubelet_and_no_word_from_it_means_in_use() -> None:
    async with world(4, 4) as w:
        await w.create("user", 3, nodeSelector={"kubernetes.io/hostname": "host-2"})
        await w.runs("user")
        held = set(await w.holders("host-2"))
        assert len(held) == 3
        await w.kill("kubelet/host-2")
        await asyncio.sleep(60)  # its report goes stale
        await w.create("a", 5, nodeSelector={"kubernetes.io/hostname": "host-1"})
        await waits(w, "a")
        await asyncio.sleep(30)
        assert w.moves() == []
        w.start("kubelet/host-2")
        await w.runs("a")
        assert set(w.moves()).isdisjoint(held)
        assert set(await w.holders("host-2")) == held


@virtual
async def test_point_08_a_stale_report_makes_none_of_the_nodes_devices_a_candidate() -> None:
    async with world(4, 4, 4) as w:
        await w.kill("device-manager/host-2")
        await asyncio.sleep(60)
        await w.create("a", 5, nodeSelector={"kubernetes.io/hostname": "host-1"})
        await w.runs("a")
        assert await w.counts() == {"host-1": 5, "host-2": 4, "host-3": 3}


@virtual
async def test_point_09_a_pod_that_cannot_be_served_is_looked_at_ever_more_seldom() -> None:
    async with world(4, 4, 4) as w:
        for host in ("host-2", "host-3"):
            await w.kill(f"device-manager/{host}")
        await asyncio.sleep(60)
        begun = len(w.said("reconfiguring"))
        await w.create("stuck", 5, nodeSelector={"kubernetes.io/hostname": "host-1"})
        await waits(w, "stuck")
        await asyncio.sleep(110)
        looks = len(w.said("reconfiguring")) - begun
        assert 3 <= looks <= 8
        assert w.moves() == []


@virtual
async def test_point_10_unknown_and_withdrawn_devices_are_never_handed_out() -> None:
    async with world(4, 4) as w:
        plugin = await w.machines["host-1"].folder.dial(w.config.plugin_socket)
        with pytest.raises(PluginError, match="0-000700 is unknown"):
            await plugin.allocate([["0-000700"]])
        answer = await plugin.allocate([["0-000200", "0-000000"]])
        assert answer[0].envs == {
            "DISAG_DEVICES": "0-000200,0-000000",
            "NVIDIA_VISIBLE_DEVICES": "GPU-A02,GPU-A00",
        }
        await plugin.close()


@virtual
async def test_point_10_a_device_in_use_is_never_withdrawn() -> None:
    async with world(4, 4) as w:
        await w.create("user", 4, nodeSelector={"kubernetes.io/hostname": "host-1"})
        await w.runs("user")
        announced = len(w.said("announced"))
        request = '{"0-000000":{"request":"r1","until":1e12}}'
        await w.kill("reconfig-manager")
        await w.post("withdraw-host-1", {"requests": request})
        await w.said_soon("withdrawal-refused", device="0-000000")
        assert len(w.said("announced")) == announced
        assert w.said("consented") == []


@virtual
async def test_point_11_all_containers_count() -> None:
    async with world(4, 4) as w:
        await w.create("a", 2, 1, 3)
        await w.runs("a")
        assert len(w.moves()) == 2
        assert len(await w.holders("host-1")) == 6


@virtual
async def test_point_12_no_device_moves_under_a_running_pod() -> None:
    async with world(4, 4, 4) as w:
        for name, host in (("b", "host-2"), ("c", "host-3")):
            await w.create(name, 3, nodeSelector={"kubernetes.io/hostname": host})
        await w.runs("b", "c")
        held = {**await w.holders("host-2"), **await w.holders("host-3")}
        await w.create("a", 7)
        await asyncio.sleep(120)
        assert w.moves() == []
        assert "Pod a requires 7 GPU but only 6 GPU in the pool." in "".join(await w.told("FailedScheduling"))
        await w.create("d", 6)
        await w.runs("d")
        assert sorted(w.moves()) == sorted(
            set(await w.ports()) - set(held) - {g for g in await w.ports() if g < "0-000400"}
        )
        assert {**await w.holders("host-2"), **await w.holders("host-3")} == held
        await w.kube.delete(PODS, "b", namespace="default", options=DeleteOptions(grace_period_s=1))
        await w.kube.delete(PODS, "d", namespace="default", options=DeleteOptions(grace_period_s=1))
        await w.runs("a")
