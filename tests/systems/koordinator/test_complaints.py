"""What users complained of, by its public number: each holds here, and fails where the part that it is about is faulty.

koordinator.sh: 1186, 1289, 2718, 1963, 1613; HAMi: 2622; KAI-Scheduler: 416, 1188.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from mews.kube.api.errors import ConflictError
from mews.kube.api.objects import annotations_of
from mews.kube.scheduling.framework import SUCCESS
from mews.kube.scheduling.handle import ProfileHandle
from mews.kube.scheduling.podinfo import pod_info
from mews.systems.koordinator import plugin, policy
from mews.systems.koordinator.allocations import DeviceAllocation, allocations_text
from mews.systems.koordinator.cache import NodeDeviceCache
from mews.systems.koordinator.devices import NodeDeviceReport, as_object
from mews.systems.koordinator.names import ALLOCATED, DEVICES
from mews.systems.koordinator.plugin import DeviceShare
from mews.systems.koordinator.pod_notes import DeviceNotes
from mews.systems.koordinator.requests import DeviceDemand
from mews.systems.koordinator.usage import NodeUse, PodUse, gpu_resources
from tests.systems.koordinator.cluster import GIB, DeviceWorld, a_while, gpus, play

GPU, CORE, MEMORY, RATIO = (f"koordinator.sh/{name}" for name in ("gpu", "gpu-core", "gpu-memory", "gpu-memory-ratio"))
Story = Callable[[DeviceWorld], Awaitable[None]]


def holds(story: Any) -> bool:
    """Whether the story goes as it should."""
    try:
        play(story)
    except AssertionError:
        return False
    return True


# koordinator 1186: a Device is deleted and comes again, and its devices are given a second time


async def device_deleted(world: DeviceWorld) -> None:
    await world.node_with(NodeDeviceReport("n", gpus("n", 1)))
    await world.koordinator()
    await world.ask("a", {GPU: 100})
    await world.until_bound("a")
    await world.kube.delete(DEVICES, "n")
    await a_while()
    await world.ask("b", {GPU: 100})
    await a_while()
    await world.kube.create(DEVICES, as_object(NodeDeviceReport("n", gpus("n", 1))))
    await a_while(30)
    assert await world.node_of("b") == ""
    assert await world.over_full() == []


def test_koordinator_1186_a_deleted_device_is_not_given_twice() -> None:
    assert holds(device_deleted)


def test_koordinator_1186_fails_where_a_deleted_device_takes_its_use_along(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetting(self: NodeDeviceCache, node: str) -> None:
        self._nodes.pop(node, None)

    monkeypatch.setattr(NodeDeviceCache, "remove_device", forgetting)
    assert not holds(device_deleted)


# koordinator 1289: the leader changes while a binding is under way, and its devices are given a second time


async def leader_changed(world: DeviceWorld) -> None:
    await world.node_with(NodeDeviceReport("n", gpus("n", 1)))
    sent, release = asyncio.Event(), asyncio.Event()
    bind = world.kube.bind

    async def late(*arguments: Any, **options: Any) -> None:
        """The binding of the first leader is on its way for a while."""
        sent.set()
        await release.wait()
        await bind(*arguments, **options)

    world.kube.bind = late  # type: ignore[method-assign]
    await world.priority("high", 1000)
    await world.koordinator()
    await world.ask("a", {GPU: 100})
    await sent.wait()
    flying = asyncio.create_task(_as_sent(world, bind))
    await world.kill()
    world.kube.bind = bind  # type: ignore[method-assign]
    await world.ask("b", {GPU: 100}, priorityClassName="high")
    await world.koordinator()
    release.set()
    await asyncio.wait([flying])
    await a_while(30)
    assert await world.over_full() == []
    assert sorted(await world.nodes_of("a", "b")) == ["", "n"]


async def _as_sent(world: DeviceWorld, bind: Any) -> None:
    """The request itself, which outlives its sender: for the version that the first leader bound."""
    version = (await world.get("a"))["metadata"]["resourceVersion"]
    uid = (await world.get("a"))["metadata"]["uid"]
    await asyncio.sleep(2.0)
    options = {"uid": uid} if DeviceNotes.bind is unversioned else {"uid": uid, "resource_version": version}
    with suppress(ConflictError):
        await bind("default", "a", "n", **options)


async def unversioned(self: DeviceNotes, pod: Any, node: str) -> None:
    await self._kube.bind(pod.namespace, pod.name, node, uid=pod.uid)


def test_koordinator_1289_a_binding_of_the_last_leader_is_refused_or_counts() -> None:
    assert holds(leader_changed)


def test_koordinator_1289_fails_where_pods_are_bound_at_any_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceNotes, "bind", unversioned)
    assert not holds(leader_changed)


def test_koordinator_1289_fails_where_annotations_of_bound_pods_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 1)))
        await world.koordinator()
        await world.ask("a", {GPU: 100})
        await world.until_bound("a")
        await world.kill()
        await world.koordinator()
        await world.ask("b", {GPU: 100})
        await a_while(30)
        assert await world.over_full() == []

    assert holds(story)
    monkeypatch.setattr(NodeDeviceCache, "set_pod", lambda self, pod: None)
    assert not holds(story)


# koordinator 2718: a pod that has an annotation and no node holds devices for ever


async def unassigned(world: DeviceWorld) -> None:
    await world.node_with(NodeDeviceReport("n", gpus("n", 1)))
    await world.koordinator()
    text = allocations_text((DeviceAllocation("gpu", 0, gpu_resources(8 * GIB), "GPU-n-0"),))
    await world.ask("left", {GPU: 100}, {ALLOCATED: text}, schedulingGates=[{"name": "example.com/wait"}])
    await a_while()
    await world.ask("a", {GPU: 100})
    await world.until_bound("a", within_s=60)
    assert ALLOCATED not in annotations_of(await world.get("left"))


def test_koordinator_2718_an_annotation_without_a_node_holds_nothing() -> None:
    assert holds(unassigned)


def test_koordinator_2718_fails_where_an_annotation_counts_without_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: NodeDeviceCache, pod: Any) -> None:
        if ALLOCATED in annotations_of(pod):
            from mews.systems.koordinator.allocations import allocations_of

            self._put("n", PodUse(pod["metadata"]["uid"], "x", allocations_of(pod)))

    monkeypatch.setattr(NodeDeviceCache, "set_pod", careless)
    assert not holds(unassigned)


# koordinator 1963: a pod for which room was made finds its devices given to another


async def nominated(world: DeviceWorld) -> None:
    await world.node_with(NodeDeviceReport("n", gpus("n", 2)))
    await world.priority("high", 1000)
    await world.koordinator(device_choice="minor")
    for name in ("weak", "weak-too"):
        await world.ask(name, {GPU: 100}, terminationGracePeriodSeconds=30)
        await world.until_bound(name)
    await world.ask("strong", {"nvidia.com/gpu": 2}, priorityClassName="high")
    await a_while(1)
    assert (await world.get("strong"))["status"].get("nominatedNodeName") == "n"
    assert (await world.get("weak"))["metadata"].get("deletionTimestamp")
    await world.ask("thief", {GPU: 50})
    await world.remove("weak")
    await a_while(20)
    await world.remove("weak-too")
    await world.until_bound("strong", within_s=60)
    assert await world.node_of("thief") == ""
    assert await world.over_full() == []


def test_koordinator_1963_devices_are_kept_for_the_pod_that_room_was_made_for() -> None:
    assert holds(nominated)


def test_koordinator_1963_fails_where_a_pod_that_waits_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceShare, "_with", lambda self, use, other, node: use)
    assert not holds(nominated)


def test_koordinator_1963_a_pod_that_has_its_devices_and_is_nominated_still_keeps_those(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found by a sequence with a stale watch: its devices were taken for free, as if it were to get others."""

    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 2)))
        await world.koordinator(device_choice="minor")
        await world.ask("first", {GPU: 100})
        await world.until_bound("first")
        first = pod_info(await world.get("first"))
        monkeypatch.setattr(ProfileHandle, "nominated", lambda self, node: [first])
        await world.ask("second", {GPU: 60})
        await world.until_bound("second")
        assert (await world.given("first"), await world.given("second")) == ([0], [1])

    play(story)


# koordinator 1613: a score of 186 out of 100


async def scores(world: DeviceWorld) -> None:
    await world.node_with(NodeDeviceReport("m", gpus("m", 2)))
    await world.node_with(NodeDeviceReport("n", gpus("n", 2)))
    await world.koordinator()
    for name in ("a", "b"):
        await world.ask(name, {GPU: 100})
        await world.until_bound(name)
    await world.report(NodeDeviceReport("n", gpus("n", 2, unhealthy=[0])))
    await world.report(NodeDeviceReport("m", gpus("m", 2, memory=4 * GIB)))
    await a_while()
    await world.ask("c", {GPU: 50})
    await world.until_bound("c", within_s=60)


def test_koordinator_1613_no_score_is_above_100_whatever_a_device_lost() -> None:
    assert holds(scores)


def test_koordinator_1613_fails_where_a_score_is_not_held_against_what_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def naive(ask: Any, use: NodeUse, **_: Any) -> int:
        total = sum(d.resources[MEMORY] for d in use.report.devices)
        return 186 if total else 0

    monkeypatch.setattr(policy, "node_score", naive)
    monkeypatch.setattr(plugin.DeviceShare, "normalize", lambda self, state, pod, found: found)
    assert not holds(scores)


# HAMi 2622: the number of slots is undercounted. KAI-Scheduler 416: 24 pods of 2000 MiB on a GPU of 46068 MiB


def packed(asked: Mapping[str, int], memory_mib: int) -> int:
    """How many pods of one kind a GPU takes."""
    from mews.kube.api.quantities import whole
    from mews.systems.koordinator.requests import ask_of

    use = NodeUse.of(NodeDeviceReport("n", gpus("n", 1, memory=memory_mib * 2**20)))
    ask = ask_of({name: whole(value) for name, value in asked.items()}, {})
    assert ask is not None
    count = 0
    while not isinstance(given := policy.allocate(ask, use), policy.NoDevices):
        use, count = use.plus(PodUse(f"u{count}", "x", given)), count + 1
    return count


def test_hami_2622_as_many_share_a_gpu_as_their_memory_says() -> None:
    assert packed({MEMORY: 1000 * 2**20}, 81920) == 81
    assert packed({GPU: 10}, 81920) == 10
    assert packed({GPU: 3}, 46068) == 33


def test_hami_2622_fails_where_ratios_are_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from mews.systems.koordinator import requests

    monkeypatch.setattr(requests, "ratio_of", lambda memory, whole: -(-memory * 100 // whole))
    assert packed({MEMORY: 1000 * 2**20}, 81920) < 81


def test_kai_416_bytes_decide_and_not_their_truncated_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    assert packed({MEMORY: 2000 * 2**20}, 46068) == 23
    by_ratio = DeviceDemand.on

    def ratio_only(self: DeviceDemand, device: Any) -> Any:
        return {RATIO: (by_ratio(self, device) or {})[RATIO]}

    monkeypatch.setattr(DeviceDemand, "on", ratio_only)
    assert packed({MEMORY: 2000 * 2**20}, 46068) == 25, "24 are 48000 MiB"


# KAI-Scheduler 1188: 33 of 32 GPUs allocated


async def many(world: DeviceWorld) -> None:
    for node in "abcd":
        await world.node_with(NodeDeviceReport(node, gpus(node, 8)))
    await world.koordinator()
    names = [f"p{i}" for i in range(40)]
    for name in names:
        await world.ask(name, {"nvidia.com/gpu": 1})
    await a_while(60)
    assert sum(bool(node) for node in await world.nodes_of(*names)) == 32
    assert await world.over_full() == []


def test_kai_1188_of_32_gpus_32_are_given() -> None:
    assert holds(many)


def test_kai_1188_fails_where_what_is_reserved_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unchecked(self: DeviceShare, state: Any, pod: Any, node: str) -> Any:
        use = NodeUse.of(self._cache.nodes[node].report)
        ask = self._ask_of(pod)
        assert ask is not None
        given = policy.allocate(ask, use)
        assert not isinstance(given, policy.NoDevices)
        await self._notes.write(pod, allocations_text(given))
        return SUCCESS

    monkeypatch.setattr(DeviceShare, "pre_bind", unchecked)
    assert not holds(many)
