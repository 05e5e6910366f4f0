"""Each fault of the published implementation, by itself: what comes of it, and that without it none of that does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from statistics import fmean
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.resources import EVENTS, PODS
from mews.kube.chassis.port import DeviceRecord, Listing
from mews.kube.deviceplugin.port import PluginError
from mews.systems.kubecomp import published
from mews.systems.kubecomp.config import PERMIT_BOUND
from mews.systems.kubecomp.config_file import as_document
from mews.systems.kubecomp.faults import ALL_FAULTS, KubeCompFault, chosen_faults
from mews.systems.kubecomp.options import KubeCompOptions
from tests.systems.kubecomp.world import World, config_of, hardware, world

SLOW = {"attach": 13, "detach": 7, "read": 1}
"""Latencies, seconds."""

F = KubeCompFault


def seen(
    story: Callable[[World], Awaitable[Any]],
    *faults: KubeCompFault,
    at: tuple[int, ...] = (4, 4),
    bound: str = PERMIT_BOUND,
    **more: Any,
):
    """What the story shows in a cluster with these faults alone."""
    config: dict[str, Any] = {}
    if faults:
        config = {"mode": "public", "faults": tuple(faults), "removal": "surprise", "partial": True}
        config["permit_bound"] = bound

    async def run_it() -> Any:
        async with world(*at, **{"profile": SLOW, **more}, config=config) as w:
            return await story(w)

    return run_virtual(run_it)


async def _annotated(w: World, name: str) -> None:
    async def is_it() -> bool:
        return "dst_node" in await w.annotations(name)

    await w.until(is_it, f"{name} annotated")


def test_01_a_blocking_permit_lets_nobody_pass_and_sees_devices_come() -> None:
    async def story(w: World) -> tuple[bool, bool]:
        await w.create("big", 6)
        await _annotated(w, "big")
        await w.create("plain", 0)
        await asyncio.sleep(20)
        passed = await w.phase("plain") == "Running"
        await w.runs("plain")
        return passed, bool(w.said("given-up"))

    assert seen(story, F.BLOCKING_PERMIT) == (False, False)
    assert seen(story) == (True, False)


def test_01_a_blocking_permit_does_not_see_what_a_job_frees() -> None:
    here = {"nodeSelector": {"kubernetes.io/hostname": "host-1"}}

    async def story(w: World) -> bool:
        await w.create("first", 2, **here)
        await w.runs("first")
        await w.create("big", 4, **here)
        await _annotated(w, "big")
        await w.kube.delete(PODS, "first", namespace="default")
        await asyncio.sleep(8)
        return await w.phase("big") == "Running"

    assert not seen(story, F.BLOCKING_PERMIT)
    assert seen(story)


def test_01_a_blocking_permit_looks_once_a_second() -> None:
    async def story(w: World) -> float:
        await w.create("big", 6)
        await w.said_soon("reconfiguration-wanted")
        began_s = w.clock.now()
        await w.said_soon("devices-there")
        return (w.clock.now() - began_s) % published.LOOK_S

    assert seen(story, F.BLOCKING_PERMIT) == pytest.approx(0, abs=0.1)


def test_02_a_short_permit_gives_up_before_the_devices_come() -> None:
    async def story(w: World) -> int:
        await w.create("a", 6)
        await w.runs("a")
        return len(w.said("given-up"))

    assert seen(story, F.SHORT_PERMIT, bound="15+5n") >= 1
    assert seen(story, F.SHORT_PERMIT, bound="10+30n") == 0
    assert seen(story) == 0


def test_05_a_pool_below_zero_is_too_small_for_a_pod_that_asks_for_no_device() -> None:
    async def story(w: World) -> list[str]:
        await w.create("first", 5)
        await w.until(lambda: w.has("detached"), "detached")
        await w.create("second", 3, nodeName="host-2")
        await asyncio.sleep(12)  # the kubelet's tick
        await w.create("plain", 0)
        await asyncio.sleep(1)
        return [said for said in await w.told("FailedScheduling") if "Pod plain" in said]

    slow = {"attach": 60, "detach": 7, "read": 1}
    (said, *_) = seen(story, F.ADVERTISED_IS_ALL, profile=slow)
    assert "Pod plain requires 0 GPU but only -1 GPU in the pool." in said
    assert seen(story, profile=slow) == []


def test_03_a_replayed_event_moves_what_the_stale_annotation_says_once_more() -> None:
    async def story(w: World) -> tuple[int, bool]:
        await w.create("a", 5)
        await w.runs("a")
        await w.restart("reconfig-manager")
        await asyncio.sleep(60)
        return len(w.moves()), "gpu_demand" in await w.annotations("a")

    assert seen(story, F.STALE_DEMAND) == (2, True)
    assert seen(story) == (1, False)


def test_03_a_repeated_event_is_served_again() -> None:
    async def story(w: World) -> int:
        await w.create("a", 5)
        await w.runs("a")
        event = next(e for e in (await w.kube.list(EVENTS)).items if e["reason"] == "Reconfig")
        await w.kube.patch(EVENTS, event["metadata"]["name"], {"count": 2}, namespace="default")
        await asyncio.sleep(60)
        return len(w.moves())

    assert (seen(story, F.STALE_DEMAND), seen(story)) == (2, 1)


def test_04_without_a_journal_a_crash_leaves_the_device_of_a_pod_that_went_on_no_port() -> None:
    async def story(w: World) -> int:
        await w.create("a", 5)
        await w.until(lambda: w.has("detached"), "detached")
        await w.kill("reconfig-manager")
        await w.kube.delete(PODS, "a", namespace="default")
        await asyncio.sleep(30)
        w.start("reconfig-manager")
        await asyncio.sleep(120)
        return (await w.counts()).get(None, 0)

    assert (seen(story, F.NO_JOURNAL), seen(story)) == (1, 0)


def test_05_a_dropped_connection_takes_all_devices_away() -> None:
    async def story(w: World) -> int:
        await w.hardware.fault("A", {"kind": "dropped-connection", "operation": "read", "count": 8})
        await asyncio.sleep(20)
        return min(len(fields["devices"]) for fields in w.said("announced"))

    assert (seen(story, F.ADVERTISED_IS_ALL), seen(story)) == (0, 4)


def test_05_a_device_in_flight_is_gone_for_the_scheduler() -> None:
    async def story(w: World) -> bool:
        await w.create("a", 5)
        await w.until(lambda: w.has("detached"), "detached")
        await asyncio.sleep(12)  # the kubelet's tick
        await w.create("b", 3)
        await asyncio.sleep(1)
        return any("Pod b requires 3 GPU" in message for message in await w.told("FailedScheduling"))

    slow = {"attach": 60, "detach": 7, "read": 1}
    assert seen(story, F.ADVERTISED_IS_ALL, profile=slow)
    assert not seen(story, profile=slow)


@pytest.mark.parametrize(("fault", "lost"), [((F.REPLY_BELIEVED,), 1), ((), 0)])
def test_06_an_answered_attach_is_taken_to_have_happened(fault: tuple[KubeCompFault, ...], lost: int) -> None:
    async def story(w: World) -> int:
        await w.hardware.fault("A", {"kind": "half-applied-attach", "count": 1})
        await w.create("a", 5)
        await w.said_soon("move-ended", end="moved")
        return (await w.counts()).get(None, 0)

    assert seen(story, *fault) == lost


def test_07_a_failed_attach_is_tried_once_and_the_device_stays_on_no_port() -> None:
    async def story(w: World) -> tuple[int, int]:
        await w.hardware.fault("A", {"kind": "half-applied-attach", "device": "000400", "count": 1})
        await w.create("a", 5)
        await w.runs("a", timeout_s=900)
        await asyncio.sleep(120)
        return sum(event == "attach-begun" for event, _ in w.happened), (await w.counts()).get(None, 0)

    assert seen(story, F.NO_RETRY) == (2, 1), "another device came in its place"
    assert seen(story) == (2, 0), "the same one, at the second try"


def test_08_the_devices_of_a_pod_that_could_not_be_asked_count_as_free_for_ever() -> None:
    cache = published.ExecCache()
    held = {"0-000000": "default/a", "0-000100": "default/b"}
    assert cache.look({"default/a": True, "default/b": False}, held)
    assert set(cache.holdings().held) == {"0-000000"}, "the exec into b failed"
    assert not cache.look({"default/a": True, "default/b": True}, held)
    assert set(cache.holdings().held) == {"0-000000"}, "and it is never asked again"
    cache.look({"default/a": True}, held)
    cache.look({"default/a": True, "default/b": True}, held)
    assert set(cache.holdings().held) == set(held), "another pod of that name is"


def test_09_a_bound_pod_that_stays_pending_lets_nothing_else_be_served() -> None:
    async def story(w: World) -> int:
        await w.kill("kubelet/host-2")
        await w.create("stuck", 1, nodeName="host-2")
        await w.create("a", 5, nodeSelector={"kubernetes.io/hostname": "host-1"})
        await _annotated(w, "a")
        await asyncio.sleep(25)
        return len(w.said("planned"))

    assert seen(story, F.PENDING_SPIN) == 0
    assert seen(story) > 0


def test_10_an_unknown_id_is_handed_out_with_an_empty_uuid() -> None:
    async def story(w: World) -> str:
        plugin = await w.machines["host-1"].folder.dial(w.config.plugin_socket)
        try:
            answer = await plugin.allocate([["0-000700"]])
        except PluginError:
            return "refused"
        finally:
            await plugin.close()
        return str(answer[0].envs["NVIDIA_VISIBLE_DEVICES"])

    assert (seen(story, F.UNKNOWN_ID), seen(story)) == ("", "refused")


def test_11_what_the_second_container_asks_for_is_not_moved() -> None:
    async def story(w: World) -> tuple[int, str]:
        await w.create("a", 4, 2)
        await asyncio.sleep(120)
        return len(w.moves()), await w.phase("a")

    assert seen(story, F.FIRST_CONTAINER) == (0, "Failed"), "bound, and refused by the kubelet"
    assert seen(story) == (2, "Running")


def test_12_a_device_moves_under_the_pod_that_was_bound_meanwhile() -> None:
    async def story(w: World) -> int:
        await w.create("a", 6, nodeSelector={"kubernetes.io/hostname": "host-1"})
        await w.until(lambda: w.has("detach-begun"), "detach begun")
        await w.create("b", 3, nodeName="host-2")
        await w.until(lambda: w.said("allocated"), "allocated")
        held = set(await w.holders("host-2"))
        await asyncio.sleep(120)
        return len(held & set(w.moves()))

    assert seen(story, F.UNASKED_MOVE) >= 1
    assert seen(story) == 0


def test_all_twelve_together_still_serve_a_pod() -> None:
    async def story(w: World) -> str:
        await w.create("a", 5)
        await w.runs("a", timeout_s=900)
        return await w.node_of("a")

    assert seen(story, *KubeCompFault) == "host-1"


# Values in, values out


@pytest.mark.parametrize(("bound", "waits_s"), [("15+5n", [20.0, 25.0, 35.0]), ("10+30n", [40.0, 70.0, 130.0])])
def test_permit_waits_for_its_bound(bound: str, waits_s: list[float]) -> None:
    assert [published.permit_bound_s(n, bound) for n in (1, 2, 4)] == waits_s


def test_a_listing_is_all_there_is_and_none_is_nothing() -> None:
    one = DeviceRecord("000100", "GPU-1", "48")
    assert set(published.believed(Listing((one,)), kind="GPU").devices) == {"000100"}
    assert published.believed(None, kind="GPU").devices == {}


def test_the_update_of_availability_takes_what_was_measured() -> None:
    rng = random.Random(1)
    drawn = [published.update_s(rng) for _ in range(20_000)]
    assert fmean(drawn) == pytest.approx(3.27, rel=0.05)
    assert max(drawn) <= 26.2


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, ALL_FAULTS),
        (["short-permit", "blocking-permit"], ("blocking-permit", "short-permit")),
        ({"short-permit": False}, tuple(name for name in ALL_FAULTS if name != "short-permit")),
    ],
)
def test_faults_are_all_or_those_named_or_all_but_those_switched_off(given: Any, found: tuple[str, ...]) -> None:
    assert chosen_faults(given) == found


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"mode": "public", "faults": ["fast-permit"]}, "'fast-permit': must be one of blocking-permit"),
        ({"mode": "public", "faults": ["no-retry", "no-retry"]}, "must be named once"),
        ({"mode": "public", "faults": []}, "the list is empty"),
        ({"mode": "public", "faults": dict.fromkeys(ALL_FAULTS, False)}, "the list is empty"),
        ({"mode": "corrected", "faults": ["no-retry"]}, "mode: corrected has none"),
        ({"faults": ["no-retry"]}, "mode: corrected has none"),
        ({"mode": "public", "removal": "orderly"}, "must be surprise, or left out"),
        ({"mode": "repaired"}, "corrected"),
    ],
)
def test_modes_and_faults_that_make_no_sense_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        KubeCompOptions.model_validate(options)


def test_public_implies_surprise_and_takes_what_there_is() -> None:
    config, _ = KubeCompOptions.model_validate({"mode": "public"}).changes()
    assert config == {"mode": "public", "faults": ALL_FAULTS, "removal": "surprise", "partial": True}
    assert KubeCompOptions.model_validate({}).changes() == ({}, {})


def test_the_configuration_file_keeps_mode_and_faults() -> None:
    document = as_document(config_of(hardware(4, 4), mode="public", faults=("no-retry",), removal="surprise"))
    assert (document["mode"], document["faults"], document["scoring"]) == ("public", ["no-retry"], "profile")
