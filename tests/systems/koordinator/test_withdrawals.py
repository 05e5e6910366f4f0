"""A GPU that the pool wants back leaves the Device object before it is released, and only if no pod holds it."""

from __future__ import annotations

import asyncio
import json

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.resources import NODES, PODS
from mews.kube.deviceplugin.release import DeviceAnswer, ReleaseState, holder_record, requests_annotation
from mews.kube.deviceplugin.release import DeviceRequest as Request
from mews.systems.koordinator import names
from mews.systems.koordinator.koordlet import Koordlet
from mews.systems.koordinator.koordlet_config import KoordletConfig
from mews.systems.koordinator.names import DEVICES
from mews.systems.koordinator.withdrawals import HOLDER, SETTLE_S
from tests.systems.koordinator.node_bench import NodeBench

UUID = "GPU-four-1"


async def request(bench: NodeBench, *uuids: str, for_s: float = 600.0) -> None:
    until_s = bench.clock.now() + for_s
    note = requests_annotation(HOLDER, {uuid: Request(f"r/{uuid}", until_s) for uuid in uuids})
    await bench.kube.patch(NODES, bench.name, {"metadata": {"annotations": note}})


async def answer(bench: NodeBench, uuid: str = UUID) -> DeviceAnswer | None:
    return holder_record(await bench.kube.get(NODES, bench.name), HOLDER).answers.get(uuid)


async def healths(bench: NodeBench) -> list[bool]:
    return [device.health for device in (await bench.report()).devices]


def users(bench: NodeBench) -> list[str]:
    return [holder.key for holder in bench.hosts.hosts.host(bench.name).holders.of(UUID)]


def test_it_is_unhealthy_in_the_object_for_a_while_before_it_is_released() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            assert users(bench) == ["nvml/koordlet"]
            await request(bench, UUID)
            await asyncio.sleep(SETTLE_S - 1)
            found = await answer(bench)
            assert found is not None and found.state is ReleaseState.RELEASING
            assert await healths(bench) == [True, False, True, True]
            assert (await bench.resources())[names.CORE] == "300"
            await asyncio.sleep(3)
            found = await answer(bench)
            assert found is not None and found.state is ReleaseState.RELEASED
            assert users(bench) == []
            await bench.operate(do="remove", bdf=bench.bdf(UUID))
            await asyncio.sleep(3)
            assert [device.minor for device in (await bench.report()).devices] == [0, 2, 3]

    run_virtual(main)


def test_one_that_a_pod_holds_is_refused_by_the_pod_s_name_and_stays_healthy() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            entry = {"minor": 1, "resources": {names.CORE: "50"}}
            await bench.pod("a", allocated={"gpu": [entry]}, scheduler=names.SCHEDULER)
            await request(bench, UUID)
            await asyncio.sleep(5)
            found = await answer(bench)
            assert found is not None
            assert (found.state, found.reason) == (ReleaseState.REFUSED, "held by default/a")
            assert await healths(bench) == [True] * 4

    run_virtual(main)


def test_a_pod_that_was_placed_meanwhile_keeps_it() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            await request(bench, UUID)
            await asyncio.sleep(1)
            await bench.pod("late", allocated={"gpu": [{"minor": 1, "id": UUID}]}, scheduler=names.SCHEDULER)
            await asyncio.sleep(5)
            found = await answer(bench)
            assert found is not None
            assert (found.state, found.reason) == (ReleaseState.REFUSED, "held by default/late")
            assert await healths(bench) == [True] * 4

    run_virtual(main)


def test_an_adopted_pod_holds_its_gpu_too() -> None:
    async def main() -> None:
        bench = NodeBench("four", KoordletConfig(report_s=1.0))
        async with bench.running():
            await asyncio.sleep(2)
            bench.runs(await bench.pod("bare"), NVIDIA_VISIBLE_DEVICES=UUID)
            await asyncio.sleep(2)
            await request(bench, UUID)
            await asyncio.sleep(5)
            found = await answer(bench)
            assert found is not None and found.reason == "held by default/bare"

    run_virtual(main)


def test_a_request_that_lapses_gives_the_gpu_back() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            await request(bench, UUID, for_s=10.0)
            await asyncio.sleep(8)
            assert users(bench) == []
            await asyncio.sleep(6)
            assert await healths(bench) == [True] * 4
            assert await answer(bench) is None
            assert users(bench) == ["nvml/koordlet"]

    run_virtual(main)


def test_a_koordlet_that_comes_back_does_not_open_nvml_on_a_gpu_that_was_released() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            await request(bench, UUID)
            await asyncio.sleep(6)
        async with bench.running():
            await asyncio.sleep(5)
            assert users(bench) == []
            assert await healths(bench) == [True, False, True, True]

    run_virtual(main)


async def chosen(bench: NodeBench, name: str, scheduler: str = names.SCHEDULER) -> None:
    """A pod with a device on it and without a node: its scheduler is about to bind it."""
    notes = {names.ALLOCATED: json.dumps({"gpu": [{"minor": 1, "id": UUID, "resources": {names.CORE: "50"}}]})}
    spec = {"containers": [{"name": "main", "image": "busybox"}], "schedulerName": scheduler}
    await bench.kube.create(PODS, {"metadata": {"name": name, "annotations": notes}, "spec": spec}, namespace="default")


async def state(bench: NodeBench) -> tuple[ReleaseState, str]:
    found = await answer(bench)
    assert found is not None
    return found.state, found.reason


def test_it_is_not_released_while_a_pod_that_has_it_may_be_bound_yet() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            await chosen(bench, "slow")
            await request(bench, UUID)
            await asyncio.sleep(20)
            assert await state(bench) == (ReleaseState.RELEASING, "")
            await bench.kube.bind("default", "slow", bench.name)
            await asyncio.sleep(3)
            assert await state(bench) == (ReleaseState.REFUSED, "held by default/slow")
            assert await healths(bench) == [True] * 4

    run_virtual(main)


def test_it_is_released_once_that_pod_is_given_up() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            await chosen(bench, "slow")
            await chosen(bench, "theirs", scheduler="default-scheduler")
            await request(bench, UUID)
            await asyncio.sleep(20)
            assert await state(bench) == (ReleaseState.RELEASING, "")
            body = {"metadata": {"annotations": {names.ALLOCATED: None}}}
            await bench.kube.patch(PODS, "slow", body, namespace="default")
            await asyncio.sleep(3)
            assert await state(bench) == (ReleaseState.RELEASED, "")

    run_virtual(main)


def test_one_that_a_pod_claims_for_ever_is_refused_by_its_name() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            await chosen(bench, "slow")
            await request(bench, UUID)
            await asyncio.sleep(70)
            assert await state(bench) == (ReleaseState.REFUSED, "claimed by default/slow")
            assert await healths(bench) == [True] * 4

    run_virtual(main)


def test_it_is_not_released_while_somebody_has_the_device_object_offer_it() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            await request(bench, UUID)
            await asyncio.sleep(1)
            offered = (await bench.device())["spec"]["devices"]
            for device in offered:
                device["health"] = True
            for _ in range(40):  # faster than it is put right
                await bench.kube.patch(DEVICES, bench.name, {"spec": {"devices": offered}})
                await asyncio.sleep(0.25)
                assert (await state(bench))[0] is ReleaseState.RELEASING
            await asyncio.sleep(25)
            assert await state(bench) == (ReleaseState.RELEASED, "")

    run_virtual(main)


def test_without_that_look_it_would_be_released_under_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody(*_: object) -> list[str]:
        return []

    monkeypatch.setattr(Koordlet, "claims", nobody)

    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            await chosen(bench, "slow")
            await request(bench, UUID)
            await asyncio.sleep(20)
            assert await state(bench) == (ReleaseState.RELEASED, "")

    run_virtual(main)
