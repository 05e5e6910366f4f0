"""A scheduler's watch may be ahead of the extender's: nothing is refused by what was, and nobody waits for a flush."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from mews.kube.api.resources import PODS
from mews.kube.client.port import DeleteOptions
from mews.systems.gpushare import names
from tests.systems.gpushare.test_extender import Bench, on


class Late:
    """An API whose watches of pods tell everything so much later."""

    def __init__(self, kube: Any, late_s: float) -> None:
        self.kube, self.late_s = kube, late_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kube, name)

    async def watch(self, resource: Any, **options: Any) -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        due: asyncio.Queue[tuple[float, Any]] = asyncio.Queue()

        async def fill() -> None:
            async for event in self.kube.watch(resource, **options):
                due.put_nowait((loop.time() + (self.late_s if resource == PODS else 0.0), event))

        filling = asyncio.create_task(fill())
        try:
            while True:
                at, event = await due.get()
                await asyncio.sleep(max(at - loop.time(), 0.0))
                yield event
        finally:
            filling.cancel()


async def full_node(bench: Bench, kube: Any) -> dict[str, Any]:
    """Node a is full of pod p, and all know it; q waits."""
    await bench.node("a", 8)
    await bench.replica(kube)
    await bench.pod("p", 8)
    assert await bench.bind("p", "a") == (200, {"Error": ""})
    waiting = await bench.pod("q", 5)
    await asyncio.sleep(10.0)
    return waiting


async def ended(bench: Bench) -> None:
    await bench.kube.delete(PODS, "p", namespace="default", options=DeleteOptions(grace_period_s=0))


async def filtered(bench: Bench, pod: Any) -> list[str]:
    _, answer = await bench.call("POST", "/filter", {"Pod": pod, "NodeNames": ["a"]})
    return list(answer["NodeNames"])


def test_a_pod_is_not_refused_for_one_that_has_just_ended() -> None:
    async def work(bench: Bench) -> None:
        waiting = await full_node(bench, Late(bench.kube, 0.5))
        assert await filtered(bench, waiting) == []
        await ended(bench)
        assert await filtered(bench, waiting) == ["a"]

    on(work)


def test_a_bind_is_not_refused_for_one_that_has_just_ended() -> None:
    async def work(bench: Bench) -> None:
        await full_node(bench, Late(bench.kube, 0.5))
        await ended(bench)
        assert await bench.bind("q", "a") == (200, {"Error": ""})

    on(work)


async def room_seen(bench: Bench) -> str | None:
    pod = await bench.kube.get(PODS, "q", namespace="default")
    found = (pod["metadata"].get("annotations") or {}).get(names.ROOM)
    return None if found is None else str(found).split()[0]


def test_a_pod_that_was_refused_too_early_is_asked_about_again() -> None:
    async def work(bench: Bench) -> None:
        waiting = await full_node(bench, Late(bench.kube, 3.0))
        await ended(bench)
        assert await filtered(bench, waiting) == []  # the watch is later than a call waits
        assert await room_seen(bench) is None
        await asyncio.sleep(5.0)
        assert await room_seen(bench) == "a"

    on(work)


def test_nobody_is_called_who_has_been_asked_about_since_or_for_whom_there_is_no_room() -> None:
    async def work(bench: Bench) -> None:
        waiting = await full_node(bench, bench.kube)
        assert await filtered(bench, waiting) == []
        large = await bench.pod("large", 9)
        assert await filtered(bench, large) == []
        await ended(bench)
        assert await filtered(bench, waiting) == ["a"]
        before = await bench.kube.list(PODS)
        await asyncio.sleep(10.0)
        assert await room_seen(bench) is None
        assert (await bench.kube.list(PODS)).items == before.items

    on(work)


def test_a_replica_that_starts_calls_those_that_were_refused_before_it() -> None:
    async def work(bench: Bench) -> None:
        await bench.node("a", 8)
        await bench.pod("q", 5)
        refused = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
        await bench.kube.patch(
            PODS, "q", {"status": {"conditions": refused}}, namespace="default", subresource="status"
        )
        await bench.pod("new", 5)
        await bench.replica()
        await asyncio.sleep(2.0)
        assert await room_seen(bench) == "a"
        new = await bench.kube.get(PODS, "new", namespace="default")
        assert "annotations" not in new["metadata"]

    on(work)
