"""Whatever happens to the scheduler, the Devices and the pods: of no device is more given than there is."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mews.kube.api.errors import AlreadyExistsError, NotFoundError
from mews.kube.api.objects import is_terminal, node_name_of
from mews.kube.api.resources import NODES as NODES_KIND
from mews.kube.api.resources import PODS
from mews.systems.koordinator.allocations import allocations_of
from mews.systems.koordinator.cache import NodeDeviceCache
from mews.systems.koordinator.devices import CheckpointEntry, NodeDeviceReport, as_object, parse
from mews.systems.koordinator.names import DEVICES, HINT, MIN_AVAILABLE, POD_GROUP
from mews.systems.koordinator.usage import node_sums
from tests.systems.koordinator.cluster import DeviceWorld, StaleKube, a_while, gpus, play

NODES = ("m", "n")
ASKS = (
    {"koordinator.sh/gpu": 30},
    {"koordinator.sh/gpu": 70},
    {"koordinator.sh/gpu-memory": "3Gi"},
    {"nvidia.com/gpu": 1},
    {"nvidia.com/gpu": 2},
    {"koordinator.sh/gpu-core": 20, "koordinator.sh/gpu-memory-ratio": 60},
    {"koordinator.sh/gpu.shared": 2, "koordinator.sh/gpu-memory-ratio": 100},
)
STEPS = (
    *("pod", "pod", "pod", "gang", "exclusive", "urgent", "remove", "finish"),
    *("crash", "leader", "stale", "fresh", "device-gone", "device-back", "sick", "held", "kubelet", "wait"),
)


class Chance:
    """One sequence of events, drawn from a seed."""

    def __init__(self, world: DeviceWorld, seed: int) -> None:
        self.world, self.rng = world, random.Random(seed)
        self.count = 0
        self.held: dict[str, tuple[CheckpointEntry, ...]] = {}
        self.sick: dict[str, list[int]] = {node: [] for node in NODES}
        self.old: dict[str, str] = {}
        self.elected = bool(seed % 2)

    def report(self, node: str) -> NodeDeviceReport:
        return NodeDeviceReport(node, gpus(node, 3, unhealthy=self.sick[node]), held=self.held.get(node, ()))

    async def begin(self) -> None:
        for node in NODES:
            await self.world.node_with(self.report(node))
        await self.world.priority("high", 1000)
        await self.begin_scheduler()
        if self.elected:
            await self.world.stand()

    async def begin_scheduler(self) -> None:
        await (self.world.stand() if self.elected else self.world.koordinator())

    def caches(self) -> list[NodeDeviceCache]:
        """The books of whoever schedules."""
        return [each.scheduler.cache for each in self.world.candidates] if self.elected else [self.world.cache]

    # Complex: one branch for each drawn act.
    async def step(self, what: str) -> None:  # noqa: C901
        node = self.rng.choice(NODES)
        match what:
            case "pod" | "exclusive" | "urgent":
                hint = {HINT: '{"gpu":{"exclusivePolicy":"DeviceLevel"}}'} if what == "exclusive" else None
                more = {"priorityClassName": "high"} if what == "urgent" else {}
                await self.ask(self.rng.choice(ASKS), hint, **more)
            case "gang":
                labels = {POD_GROUP: f"g{self.count}", MIN_AVAILABLE: "2"}
                for _ in range(2):
                    await self.ask(self.rng.choice(ASKS[:5]), None, labels=labels)
            case "remove" | "finish":
                pods = (await self.world.kube.list(PODS)).items
                if pods:
                    pod = self.rng.choice(pods)["metadata"]["name"]
                    with suppress(NotFoundError):  # a more urgent one may have taken its place meanwhile
                        await (self.world.remove(pod) if what == "remove" else self.world.finish(pod))
            case "crash":
                await self.crash()
            case "leader":
                await self.change_leader()
            case "stale":
                self.watched_by().stale.add(self.rng.choice((DEVICES, PODS)))
            case "fresh":
                self.watched_by().refresh()
            case "kubelet":
                await self.restart_kubelet(node)
            case "device-gone":
                with suppress(NotFoundError):
                    await self.world.kube.delete(DEVICES, node)
            case "device-back":
                with suppress(AlreadyExistsError):
                    await self.world.kube.create(DEVICES, as_object(self.report(node)))
            case "sick":
                minor = self.rng.randrange(3)
                self.sick[node] = [m for m in self.sick[node] if m != minor] if minor in self.sick[node] else [minor]
                await self.publish(node)
            case "held":
                await self.hold(node)
            case _:
                await a_while(self.rng.choice((0.5, 5.0, 15.0)))

    def watched_by(self) -> StaleKube:
        """How the scheduler sees the API, or any of the candidates does."""
        return self.rng.choice(self.world.candidates).kube if self.elected else self.world.stale_kube

    async def crash(self) -> None:
        """The scheduler dies and starts anew."""
        if not self.elected:
            await self.world.kill()
            self.world.stale_kube.refresh()
        else:
            dead = self.world.leader() or self.world.candidates[0]
            self.world.candidates.remove(dead)
            await dead.kill()
        await self.begin_scheduler()

    async def change_leader(self) -> None:
        """Whoever leads dies, or cannot reach the API for a while, and another one leads."""
        leader = self.world.leader() if self.elected else None
        if leader is None:
            await self.crash()
        elif self.rng.random() < 0.5:
            leader.kube.silent = True
            await a_while(self.rng.choice((8.0, 14.0, 30.0)))
            leader.kube.silent = False
        else:
            await self.crash()
            await a_while(20.0)

    async def restart_kubelet(self, node: str) -> None:
        """It says that its node has no devices any more, until koordlet has seen it."""
        for amount in ("0", "300"):
            names = {f"koordinator.sh/{each}": amount for each in ("gpu", "gpu-core", "gpu-memory-ratio")}
            status = {"capacity": names, "allocatable": names}
            await self.world.kube.patch(NODES_KIND, node, {"status": status}, subresource="status")
            await a_while(self.rng.choice((0.0, 1.0)))

    async def ask(self, asked: dict[str, int | str], hint: dict[str, str] | None, **more: object) -> None:
        self.count += 1
        await self.world.ask(f"p{self.count}", asked, hint, terminationGracePeriodSeconds=0, **more)
        await a_while(self.rng.choice((0.0, 0.0, 0.2)))

    async def publish(self, node: str) -> None:
        with suppress(NotFoundError):
            await self.world.report(self.report(node))

    async def hold(self, node: str) -> None:
        """The kubelet gives a pod of another scheduler a GPU that nobody has."""
        taken = {uid for each in self.held.values() for entry in each for uid in entry.ids}
        for pod in (await self.world.kube.list(PODS)).items:
            taken |= {each.id for each in allocations_of(pod)}
        free = [gpu.id for gpu in self.report(node).devices if gpu.id not in taken]
        if not free or await self.pending():
            return
        self.count += 1
        pod = await self.world.add(f"old{self.count}", nodeName=node)
        entry = CheckpointEntry(pod["metadata"]["uid"], "c", "nvidia.com/gpu", (free[0],))
        self.old[pod["metadata"]["uid"]] = f"old{self.count}"
        self.held[node] = (*self.held.get(node, ()), entry)
        await self.publish(node)
        await a_while(1.0)

    async def pending(self) -> bool:
        """Whether the scheduler may be about to give something."""
        return any(not node_name_of(pod) for pod in (await self.world.kube.list(PODS)).items)

    async def check(self) -> None:
        assert await self.world.over_full() == []
        pods = {pod["metadata"]["uid"]: pod for pod in (await self.world.kube.list(PODS)).items}
        live = {
            uid for uid, pod in pods.items() if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        }
        held = {one for each in self.held.values() for entry in each if entry.pod_uid in live for one in entry.ids}
        for uid, pod in pods.items():
            if uid in live and node_name_of(pod):
                assert not {each.id for each in allocations_of(pod)} & held, pod["metadata"]["name"]
        for cache in self.caches():
            for use in cache.nodes.values():
                assert all(all(value >= 0 for value in amounts.values()) for amounts in use.used.values())


def happens(seed: int, steps: list[str]) -> None:
    async def story(world: DeviceWorld) -> None:
        chance = Chance(world, seed)
        await chance.begin()
        for what in steps:
            await chance.step(what)
            await chance.check()
        for kube in (world.stale_kube, *(each.kube for each in world.candidates)):
            kube.refresh()
        await a_while(60)
        await chance.check()
        leader = world.leader()
        books = leader.scheduler.cache if leader is not None else world.cache
        counted = {use.report.node: set(use.pods) for use in books.nodes.values()}
        for pod in (await world.kube.list(PODS)).items:
            if node_name_of(pod) and allocations_of(pod) and not is_terminal(pod):
                assert pod["metadata"]["uid"] in counted[node_name_of(pod)]

    play(story)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**16), st.lists(st.sampled_from(STEPS), min_size=5, max_size=25))
def test_no_device_is_given_over_its_sum_whatever_happens(seed: int, steps: list[str]) -> None:
    happens(seed, steps)


def test_what_a_device_says_is_what_its_node_offers() -> None:
    assert node_sums(parse(as_object(NodeDeviceReport("n", gpus("n", 2, unhealthy=[1])))).devices) == {
        "koordinator.sh/gpu-core": 100,
        "koordinator.sh/gpu-memory": 8 * 2**30,
        "koordinator.sh/gpu-memory-ratio": 100,
        "koordinator.sh/gpu": 100,
    }


def test_the_sequences_find_a_scheduler_that_forgets_with_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeDeviceCache, "remove_device", lambda self, node: self._nodes.pop(node, None))
    steps = ["pod", "pod", "pod", "pod", "wait", "device-gone", "device-gone", "wait", "device-back", "device-back"]
    with pytest.raises(AssertionError):
        for seed in range(20):
            happens(seed, [*steps, "wait", "pod", "pod", "pod", "wait"])


def test_pods_of_a_gang_do_not_wake_each_other_for_ever_while_what_is_seen_is_old() -> None:
    steps = "gang pod device-back stale sick pod pod gang pod wait leader pod"
    happens(158, steps.split())
