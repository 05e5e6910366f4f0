"""Permit beside the cycle: waiting holds the room and blocks nobody."""

from __future__ import annotations

import asyncio

from mews.kube.scheduling.config import SchedulerProfile
from mews.kube.scheduling.framework import CycleState, Handle, Status, unschedulable, wait
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.podinfo import PodInfo
from tests.kube.scheduling.world import World, live


class Gatekeeper:
    """Holds the pods whose name begins with ``held``; refuses ``unwanted`` ones; keeps a diary."""

    name = "Gatekeeper"

    def __init__(self, handle: Handle, timeout_s: float = 60.0) -> None:
        self.handle = handle
        self.timeout_s = timeout_s
        self.diary: list[str] = []

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        self.diary.append(f"reserve {pod.name}")
        return Status()

    async def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        self.diary.append(f"permit {pod.name}")
        await asyncio.sleep(0.5)
        if pod.name.startswith("unwanted"):
            return unschedulable("not today")
        return wait(self.timeout_s) if pod.name.startswith("held") else Status()

    async def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        await asyncio.sleep(0.25)
        self.diary.append(f"unreserve {pod.name}")

    async def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.diary.append(f"post-bind {pod.name}")


def gated(world: World, keepers: list[Gatekeeper], timeout_s: float = 60.0) -> None:
    def make(handle: Handle) -> Gatekeeper:
        keepers.append(Gatekeeper(handle, timeout_s))
        return keepers[-1]

    world.scheduler(SchedulerProfile("default-scheduler", (*default_plugins(), make)))


def test_a_waiting_pod_holds_its_room_and_does_not_hold_up_others() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=2)
        keepers: list[Gatekeeper] = []
        gated(world, keepers)
        await world.add("held", gpus=1)
        await world.add("free", gpus=1)
        await world.add("late", gpus=1)
        await asyncio.sleep(10)
        assert await world.nodes_of("held", "free", "late") == ["", "n", ""]
        handle = keepers[0].handle
        (waiting,) = handle.waiting()
        assert (waiting.pod.name, waiting.node, list(waiting.held_by)) == ("held", "n", ["Gatekeeper"])
        assert handle.nodes["n"].available("nvidia.com/gpu") == 0
        assert handle.nodes["n"].available("nvidia.com/gpu", besides=waiting.pod.uid) == 1
        waiting.allow("Gatekeeper")
        await asyncio.sleep(0)
        await world.until_bound("held", within_s=0.05)
        assert keepers[0].diary[-1] == "post-bind held"
        assert handle.waiting() == []

    live(story)


def test_an_answer_that_comes_before_the_hold_counts() -> None:
    async def story(world: World) -> None:
        await world.add_node("n")
        keepers: list[Gatekeeper] = []
        gated(world, keepers)
        created = await world.add("held")
        await asyncio.sleep(0.1)
        waiting = keepers[0].handle.waiting_pod(created["metadata"]["uid"])
        assert waiting is not None
        waiting.allow("Gatekeeper")
        await world.until_bound("held", within_s=1)

    live(story)


def test_when_time_is_up_the_room_is_given_back_and_others_are_woken() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=1)
        keepers: list[Gatekeeper] = []
        gated(world, keepers, timeout_s=90.0)
        await world.add("held", gpus=1)
        await asyncio.sleep(1)
        await world.add("other", gpus=1)
        assert await world.until_bound("other") == 91.25
        assert "unreserve held" in keepers[0].diary
        assert await world.message("held") == (
            "0/1 nodes are available: 1 rejected due to timeout after waiting 1m30s at plugin Gatekeeper."
        )

    live(story)


def test_a_pod_refused_at_permit_is_queued_again_only_after_unreserve() -> None:
    async def story(world: World) -> None:
        await world.add_node("n")
        keepers: list[Gatekeeper] = []
        gated(world, keepers)
        await world.add("unwanted")
        await asyncio.sleep(299)
        assert keepers[0].diary == ["reserve unwanted", "permit unwanted", "unreserve unwanted"]
        assert await world.message("unwanted") == "0/1 nodes are available: 1 not today."

    live(story)


def test_a_change_that_came_while_the_pod_was_at_permit_is_not_missed() -> None:
    async def story(world: World) -> None:
        await world.add_node("n")
        keepers: list[Gatekeeper] = []
        gated(world, keepers)
        await world.add("unwanted")
        await asyncio.sleep(0.2)
        await world.add_node("m")
        await asyncio.sleep(3)
        assert keepers[0].diary.count("permit unwanted") == 2

    live(story)


def test_a_pod_deleted_while_waiting_gives_its_room_back() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=1)
        keepers: list[Gatekeeper] = []
        gated(world, keepers)
        await world.add("held", gpus=1)
        await asyncio.sleep(1)
        await world.add("other", gpus=1)
        await asyncio.sleep(1)
        await world.remove("held")
        await world.until_bound("other", within_s=2)
        assert keepers[0].diary.count("unreserve held") == 1

    live(story)


def test_a_pod_replaced_under_its_name_while_waiting_is_a_new_pod() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=1)
        keepers: list[Gatekeeper] = []
        gated(world, keepers)
        old = await world.add("held", gpus=1)
        await asyncio.sleep(1)
        await world.remove("held")
        new = await world.add("held", gpus=1)
        await asyncio.sleep(5)
        (waiting,) = keepers[0].handle.waiting()
        assert waiting.pod.uid == new["metadata"]["uid"] != old["metadata"]["uid"]
        waiting.allow("Gatekeeper")
        await world.until_bound("held", within_s=0.1)

    live(story)


def test_a_restarted_scheduler_takes_up_the_pod_that_was_waiting() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=1)
        keepers: list[Gatekeeper] = []
        gated(world, keepers)
        await world.add("held", gpus=1)
        await asyncio.sleep(5)
        await world.kill()
        assert "unreserve held" not in keepers[0].diary
        gated(world, keepers)
        await asyncio.sleep(5)
        (waiting,) = keepers[1].handle.waiting()
        waiting.allow("Gatekeeper")
        await world.until_bound("held", within_s=0.1)

    live(story)


def test_a_waiting_victim_of_preemption_is_rejected_and_not_deleted() -> None:
    async def story(world: World) -> None:
        await world.priority("high", 1000)
        await world.add_node("n", gpus=1)
        keepers: list[Gatekeeper] = []
        gated(world, keepers)
        await world.add("held", gpus=1)
        await asyncio.sleep(1)
        await world.add("lord", gpus=1, priorityClassName="high")
        await world.until_bound("lord", within_s=3)
        assert "deletionTimestamp" not in (await world.get("held"))["metadata"]
        assert keepers[0].handle.waiting() == []

    live(story)


def test_a_pod_deleted_right_after_the_decision_is_not_waited_for() -> None:
    async def story(world: World) -> None:
        await world.add_node("n", gpus=1)
        keepers: list[Gatekeeper] = []
        gated(world, keepers)
        await asyncio.sleep(1)
        for hops in range(6):
            await world.add(f"held-{hops}", gpus=1)
            for _ in range(hops):
                await asyncio.sleep(0)
            await world.remove(f"held-{hops}")
            await asyncio.sleep(2)
            assert keepers[0].handle.nodes["n"].available("nvidia.com/gpu") == 1
            assert keepers[0].handle.waiting() == []

    live(story)
