"""Order and back-off of the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from mews.harness.clock import EPOCH_S, run_virtual
from mews.kube.api.resources import NODES, PODS
from mews.kube.scheduling.config import SchedulerConfig
from mews.kube.scheduling.framework import SUCCESS, Action, Wake
from mews.kube.scheduling.podinfo import PodInfo, pod_info
from mews.kube.scheduling.queue import Queue, QueuePlace, backoff_s
from mews.kube.scheduling.wake import EXTENDER
from tests.kube.scheduling.world import default_profile, pod

CONFIG = SchedulerConfig((default_profile(),))


def info(name: str, priority: int = 0) -> PodInfo:
    raw = pod(name, priority=priority)
    raw["metadata"]["uid"] = name
    return pod_info(raw)


def with_queue(story: Callable[[Queue], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        queue = Queue(
            CONFIG,
            now=lambda: EPOCH_S + loop.time(),
            sort_key=lambda queued: (-queued.pod.priority, queued.entered_s),
            may_queue=lambda pod: SUCCESS,
            wakes={("default-scheduler", "Fit"): (Wake(NODES, Action.ADD | Action.UPDATE),)},
        )
        await story(queue)

    run_virtual(main)


async def order(queue: Queue, count: int) -> list[str]:
    return [(await queue.pop()).pod.name for _ in range(count)]


def test_pods_come_by_priority_then_by_time_of_entering() -> None:
    async def story(queue: Queue) -> None:
        for name, priority in (("o1", 0), ("o2", 10), ("o3", 1000), ("o4", 0), ("o5", 1000), ("o6", 10)):
            queue.add(info(name, priority))
        assert await order(queue, 6) == ["o3", "o5", "o2", "o6", "o1", "o4"]

    with_queue(story)


def test_a_woken_pod_backs_off_only_while_others_are_queued() -> None:
    async def story(queue: Queue) -> None:
        queue.add(info("refused", priority=5))
        queue.refuse(await queue.pop(), ["Fit"])
        queue.add(info("other"))
        queue.change(NODES, None, {})
        assert await order(queue, 2) == ["other", "refused"]
        assert asyncio.get_running_loop().time() == 0

    with_queue(story)


def test_a_pod_in_error_waits_its_back_off_out_even_when_nothing_else_is_queued() -> None:
    async def story(queue: Queue) -> None:
        queue.add(info("p"))
        times = []
        for _ in range(6):
            queue.fail(await queue.pop())
            times.append(asyncio.get_running_loop().time())
        assert times == [0, 1, 3, 7, 15, 25]

    with_queue(story)


def test_a_change_that_nobody_named_wakes_nobody() -> None:
    async def story(queue: Queue) -> None:
        queue.add(info("p"))
        queue.refuse(await queue.pop(), ["Fit"])
        queue.change(PODS, {}, None)
        queue.change(NODES, {}, None)
        await queue.pop()
        assert asyncio.get_running_loop().time() == CONFIG.leftover_s

    with_queue(story)


def test_a_removed_pod_is_not_popped_and_leaves_no_timer() -> None:
    async def story(queue: Queue) -> None:
        for name in ("a", "b", "c"):
            queue.add(info(name))
        queue.refuse(await queue.pop(), ["Fit"])
        queue.remove("a")
        queue.remove("b")
        assert await order(queue, 1) == ["c"]
        queue.add(info("d"))
        queue.remove("c")
        assert await order(queue, 1) == ["d"]
        assert len(queue) == 1

    with_queue(story)


def test_a_pod_activated_while_it_is_away_is_retried_after_its_back_off() -> None:
    async def story(queue: Queue) -> None:
        queue.add(info("p"))
        entry = await queue.pop()
        queue.activate(["p"])
        queue.refuse(entry, ["Fit"])
        await queue.pop()
        assert asyncio.get_running_loop().time() == 1

    with_queue(story)


def test_pods_that_wake_each_other_while_no_time_passes_wait_for_their_back_off_after_all() -> None:
    async def story(queue: Queue) -> None:
        queue.add(info("a"))
        queue.add(info("b"))
        now, tried = asyncio.get_running_loop().time, 0
        while now() == 0:
            entry = await queue.pop()
            tried += 1
            assert tried < 100, "it goes round and round"
            queue.refuse(entry, ["Gang"])
            queue.activate(["a" if entry.pod.uid == "b" else "b"])
        assert tried > 20, "a plugin may let a pod be tried again at once, more than once"
        assert now() == 10, "the back-off of so many refusals"

    with_queue(story)


def test_the_back_off_doubles_from_one_to_ten_seconds() -> None:
    assert [backoff_s(count, CONFIG) for count in range(7)] == [0, 1, 2, 4, 8, 10, 10]
    assert backoff_s(10_000, CONFIG) == 10


def annotated(name: str, text: str) -> PodInfo:
    raw = pod(name)
    raw["metadata"] |= {"uid": name, "annotations": {"a": text}}
    return pod_info(raw)


def test_its_own_annotations_wake_a_pod_that_an_extender_refused_and_no_other() -> None:
    async def story(queue: Queue) -> None:
        for name, refused_by in (("sent", [EXTENDER, "Fit"]), ("kept", ["Fit"])):
            queue.add(annotated(name, "1"))
            queue.refuse(await queue.pop(), refused_by)
        queue.add(annotated("kept", "2"))
        queue.add(annotated("sent", "2"))
        assert await order(queue, 1) == ["sent"]
        queue.add(annotated("sent", "3"))  # while it is decided
        queue.refuse(queue.get("sent"), [EXTENDER])
        assert queue.get("sent").place is QueuePlace.BACKOFF
        assert queue.get("kept").place is QueuePlace.UNSCHEDULABLE

    with_queue(story)
