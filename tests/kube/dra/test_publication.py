"""One slice of the node's pool, whenever a watch shows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.objects import name_of
from mews.kube.api.resources import NODES, RESOURCE_SLICES
from mews.kube.client.port import KubeApi, WatchEvent
from mews.kube.clock import rest
from mews.kube.component import Context
from tests.kube.emulated.kubelet.dra_node import DRIVER, NODE, Node


class HeldWatches:
    """An API whose watches show nothing until ``shown`` is set."""

    def __init__(self, kube: KubeApi) -> None:
        self._kube = kube
        self.shown = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kube, name)

    async def watch(self, *args: Any, **options: Any) -> AsyncIterator[WatchEvent]:
        await self.shown.wait()
        async for event in self._kube.watch(*args, **options):
            await self.shown.wait()
            yield event


class Late(Node):
    """A node whose driver hears late of what happens."""

    def __init__(self) -> None:
        super().__init__()
        self.held = HeldWatches(self.kube)  # type: ignore[assignment,method-assign]

    def context(self, name: str) -> Context:
        context = super().context(name)
        return Context(cast(KubeApi, self.held), context.clock, context.rng, context.log)

    async def slices(self) -> list[list[str]]:
        items = (await self.kube.list(RESOURCE_SLICES)).items
        return [[each["name"] for each in item["spec"]["devices"]] for item in items]

    async def begin(self, poll_s: float | None = 1.0) -> None:
        await self.kube.create(NODES, {"metadata": {"name": NODE}})
        self.poll_s = poll_s
        self.start_driver()


def test_a_slice_that_no_watch_shows_yet_is_not_written_again() -> None:
    async def main() -> None:
        node = Late()
        await node.begin()
        await rest(30)
        assert await node.slices() == [["fan-0", "fan-1"]]
        node.fans.count = 3
        await rest(5)
        assert await node.slices() == [["fan-0", "fan-1", "fan-2"]]
        node.fans.count = 1
        await rest(5)
        assert await node.slices() == [["fan-0"]]
        await node.stop("driver")

    run_virtual(main)


def test_what_a_watch_shows_late_does_not_undo_a_change() -> None:
    async def main() -> None:
        node = Late()
        node.held.shown.set()
        await node.begin()
        await rest(5)
        node.held.shown.clear()
        for count in (3, 4):
            node.fans.count = count
            await rest(5)
        assert await node.slices() == [["fan-0", "fan-1", "fan-2", "fan-3"]]
        await node.stop("driver")

    run_virtual(main)


def test_a_slice_seen_deleted_is_there_again_within_seconds() -> None:
    async def main() -> None:
        node = Late()
        node.held.shown.set()
        await node.begin()
        await rest(5)
        (written,) = (await node.kube.list(RESOURCE_SLICES)).items
        await node.kube.delete(RESOURCE_SLICES, name_of(written))
        await rest(5)
        assert await node.slices() == [["fan-0", "fan-1"]]
        await node.stop("driver")

    run_virtual(main)


@pytest.mark.parametrize("poll_s", [1.0, None])
def test_a_slice_deleted_unseen_is_there_again_after_a_minute(poll_s: float | None) -> None:
    async def main() -> None:
        node = Late()
        await node.begin(poll_s)
        await rest(5)
        (written,) = (await node.kube.list(RESOURCE_SLICES)).items
        await node.kube.delete(RESOURCE_SLICES, name_of(written))
        await rest(40)
        assert await node.slices() == []
        await rest(20)
        assert await node.slices() == [["fan-0", "fan-1"]]
        await node.stop("driver")

    run_virtual(main)


def test_a_slice_deleted_before_it_is_changed_is_written_anew() -> None:
    async def main() -> None:
        node = Late()
        await node.begin()
        await rest(5)
        (written,) = (await node.kube.list(RESOURCE_SLICES)).items
        await node.kube.delete(RESOURCE_SLICES, name_of(written))
        node.fans.count = 3
        await rest(5)
        assert await node.slices() == [["fan-0", "fan-1", "fan-2"]]
        await node.stop("driver")

    run_virtual(main)


def test_of_two_slices_one_is_left() -> None:
    """As an incarnation leaves them that listed old data and wrote one more."""

    async def main() -> None:
        node = Late()
        node.held.shown.set()
        await node.begin(poll_s=None)
        await rest(5)
        (written,) = (await node.kube.list(RESOURCE_SLICES)).items
        copy = {"metadata": {"generateName": f"{NODE}-{DRIVER}-"}, "spec": written["spec"]}
        await node.kube.create(RESOURCE_SLICES, copy)
        await rest(5)
        assert await node.slices() == [["fan-0", "fan-1"]]
        await node.stop("driver")
        await node.kube.create(RESOURCE_SLICES, copy)
        node.start_driver()
        await rest(5)
        assert await node.slices() == [["fan-0", "fan-1"]]
        await node.stop("driver")

    run_virtual(main)
