"""Preemption as measured (data/scheduler-1.34/preemption.json)."""

from __future__ import annotations

import asyncio

import pytest

from mews.kube.api.objects import condition_of
from mews.kube.scheduling.config import SchedulerProfile
from mews.kube.scheduling.framework import CycleState, Handle, Status, unschedulable
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.podinfo import PodInfo, pod_info
from mews.kube.scheduling.preemption import Candidate, candidates_wanted, pick, spare
from tests.kube.scheduling.world import World, live, pod

TERMINATING = (
    "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: "
    "not eligible due to a terminating pod on the nominated node."
)


async def full(world: World) -> None:
    """Two nodes of two GPUs, each with two unimportant pods."""
    await world.priority("low", 10)
    await world.priority("high", 1000)
    for name in ("p0", "p1"):
        await world.add_node(name, gpus=2)
    world.scheduler()
    for number in range(4):
        await world.add(f"low{number}", gpus=1, priorityClassName="low")
        await asyncio.sleep(0.01)


def test_the_preemptor_is_nominated_waits_for_its_victims_and_takes_their_room() -> None:
    async def story(world: World) -> None:
        await full(world)
        hungry = await world.add("hungry", gpus=2, priorityClassName="high")
        await asyncio.sleep(0.5)
        status = (await world.get("hungry"))["status"]
        node = status["nominatedNodeName"]
        assert await world.message("hungry") == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
        victims = [f"low{n}" for n in range(4) if (await world.get(f"low{n}"))["metadata"].get("deletionTimestamp")]
        assert await world.nodes_of(*victims) == [node, node]
        for victim in victims:
            gone = await world.get(victim)
            assert gone["metadata"]["deletionGracePeriodSeconds"] == 30
            condition = condition_of(gone, "DisruptionTarget")
            assert condition is not None
            assert (
                condition["status"],
                condition["reason"],
                condition["message"],
                condition["observedGeneration"],
            ) == (
                "True",
                "PreemptionByScheduler",
                "default-scheduler: preempting to accommodate a higher priority pod",
                1,
            )
            event = (await world.events(victim))[-1]
            assert (event["reason"], event["action"], event["type"]) == ("Preempted", "Preempting", "Normal")
            assert event["note"] == f"Preempted by pod {hungry['metadata']['uid']} on node {node}"
            assert event["related"]["uid"] == hungry["metadata"]["uid"]
        await world.remove(victims[0])
        await asyncio.sleep(0.5)
        assert await world.message("hungry") == TERMINATING
        await world.remove(victims[1])
        await world.until_bound("hungry", within_s=0.1)
        assert await world.node_of("hungry") == node
        assert await world.notes("hungry") == [
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
            TERMINATING,
            f"Successfully assigned default/hungry to {node}",
        ]

    live(story)


def test_a_polite_pod_preempts_nobody() -> None:
    async def story(world: World) -> None:
        await full(world)
        await world.priority("polite", 1000, preemptionPolicy="Never")
        await world.add("polite", gpus=1, priorityClassName="polite")
        await asyncio.sleep(0.5)
        assert await world.message("polite") == (
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: "
            "not eligible due to preemptionPolicy=Never."
        )

    live(story)


def test_the_room_that_victims_leave_is_not_taken_by_a_less_important_pod() -> None:
    async def story(world: World) -> None:
        await full(world)
        await world.add("hungry", gpus=2, priorityClassName="high")
        await asyncio.sleep(0.5)
        await world.add("thief", gpus=1, priorityClassName="low")
        await asyncio.sleep(0.5)
        node = (await world.get("hungry"))["status"]["nominatedNodeName"]
        victims = [f"low{n}" for n in range(4) if (await world.get(f"low{n}"))["metadata"].get("deletionTimestamp")]
        await world.remove(victims[0])
        await asyncio.sleep(0.5)
        assert await world.node_of("thief") == ""
        await world.remove(victims[1])
        await asyncio.sleep(0.5)
        assert await world.nodes_of("hungry", "thief") == [node, ""]

    live(story)


def test_a_restarted_scheduler_keeps_the_nomination() -> None:
    async def story(world: World) -> None:
        await full(world)
        await world.add("hungry", gpus=2, priorityClassName="high")
        await asyncio.sleep(0.5)
        node = (await world.get("hungry"))["status"]["nominatedNodeName"]
        await world.kill()
        world.scheduler()
        await world.add("thief", gpus=1, priorityClassName="low")
        await asyncio.sleep(0.5)
        for number in range(4):
            if (await world.get(f"low{number}"))["metadata"].get("deletionTimestamp"):
                await world.remove(f"low{number}")
        await world.until_bound("hungry", within_s=0.5)
        assert await world.nodes_of("hungry", "thief") == [node, ""]

    live(story)


def info(name: str, priority: int, started: str = "2026-01-01T00:00:00Z") -> PodInfo:
    raw = pod(name, priority=priority)
    raw["metadata"]["uid"] = name
    raw["status"] = {"startTime": started}
    return pod_info(raw)


def test_the_node_is_picked_where_preemption_hurts_least() -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
    table = [
        (
            "lowest highest priority",
            [Candidate("a", (info("x", 5),)), Candidate("b", (info("y", 4), info("z", 4)))],
            "b",
        ),
        (
            "smallest sum",
            [Candidate("a", (info("x", 5), info("y", 4))), Candidate("b", (info("z", 5), info("w", 3)))],
            "b",
        ),
        ("fewest victims", [Candidate("a", (info("x", 5), info("y", -(2**31)))), Candidate("b", (info("z", 5),))], "b"),
        ("latest started", [Candidate("a", (info("x", 5, early),)), Candidate("b", (info("y", 5, late),))], "b"),
        ("the first", [Candidate("a", (info("x", 5),)), Candidate("b", (info("y", 5),))], "a"),
    ]
    for rule, candidates, expected in table:
        assert pick(candidates).node == expected, rule


def test_the_most_important_victims_are_spared_first() -> None:
    room = 2

    def fits_with(victim: PodInfo) -> bool:
        nonlocal room
        room -= 1
        return room >= 0

    gone = spare([info("a", 1), info("b", 3), info("c", 2), info("d", 3, "2025-01-01T00:00:00Z")], fits_with)
    assert [victim.name for victim in gone] == ["c", "a"]


def test_the_search_for_candidates_ends_after_a_tenth_of_the_nodes_but_not_before_a_hundred() -> None:
    assert [candidates_wanted(n) for n in (7, 100, 500, 5000)] == [7, 100, 100, 500]


class Budget:
    """At most two pods on the whole cluster."""

    name = "Budget"

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        state.data[self.name] = sum(len(node.pods) for node in self._handle.nodes.values())
        return unschedulable("the budget is spent") if state.data[self.name] >= 2 else Status()

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return unschedulable("no budget") if state.data[self.name] >= 2 else Status()

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        state.data[self.name] += 1

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        state.data[self.name] -= 1


@pytest.mark.parametrize("first", [False, True])
def test_preemption_helps_against_a_refusal_before_the_nodes_too(first: bool) -> None:
    async def story(world: World) -> None:
        await world.priority("high", 1000)
        await world.add_node("n")
        plugins = (Budget, *default_plugins()) if first else (*default_plugins(), Budget)
        world.scheduler(SchedulerProfile("default-scheduler", plugins))
        for number in range(2):
            await world.add(f"low{number}")
        await asyncio.sleep(0.1)
        await world.add("lord", priorityClassName="high")
        await asyncio.sleep(0.1)
        assert await world.message("lord") == "0/1 nodes are available: the budget is spent."
        gone = [n for n in ("low0", "low1") if (await world.get(n))["metadata"].get("deletionTimestamp")]
        assert gone == ["low1"]
        await world.remove("low1")
        await world.until_bound("lord", within_s=0.1)

    live(story)
