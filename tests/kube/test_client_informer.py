from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

import mews.kube.client.informer
from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.errors import UnavailableError
from mews.kube.api.objects import Object, name_of
from mews.kube.api.resources import CONFIGMAPS, Resource
from mews.kube.client.informer import Informer
from mews.kube.client.port import ObjectList, WatchEvent
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.store.store import Store


class Flaky(InProcessKube):
    """Every watch breaks after so many events."""

    def __init__(self, store: Store, lasts: int) -> None:
        super().__init__(store)
        self.lasts = lasts

    async def watch(self, *arguments: Any, **options: Any) -> AsyncIterator[WatchEvent]:  # type: ignore[override]
        left = self.lasts
        async for event in super().watch(*arguments, **options):
            yield event
            left -= 1
            if left == 0:
                raise UnavailableError("the line broke")


def run(check: Callable[[Store], Awaitable[None]]) -> None:
    async def main() -> None:
        await check(fresh_store(virtual_clock().now, random.Random(1)))

    run_virtual(main)


def test_a_broken_watch_goes_on_where_it_broke_and_replays_nothing() -> None:
    async def check(store: Store) -> None:
        kube = InProcessKube(store)
        informer = Informer(Flaky(store, lasts=3), CONFIGMAPS)
        told: list[tuple[str | None, str | None]] = []

        def on_change(old: Object | None, new: Object | None) -> None:
            told.append((old and name_of(old), new and name_of(new)))

        informer.on_change(on_change)
        task = asyncio.create_task(informer.run())
        await informer.synced()
        for name in ("a", "b"):
            await kube.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="default")
        await kube.delete(CONFIGMAPS, "a", namespace="default")
        await kube.create(CONFIGMAPS, {"metadata": {"name": "c"}}, namespace="default")
        await asyncio.sleep(5)
        assert told == [(None, "a"), (None, "b"), ("a", None), (None, "c")]
        assert [name_of(obj) for obj in informer.items()] == ["b", "c"]
        task.cancel()

    run(check)


def test_an_object_replaced_while_nobody_watched_is_told_as_gone_and_new() -> None:
    async def check(store: Store) -> None:
        kube = InProcessKube(store)
        await kube.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
        informer = Informer(kube, CONFIGMAPS)
        task = asyncio.create_task(informer.run())
        await informer.synced()
        told: list[tuple[bool, bool]] = []
        informer.on_change(lambda old, new: told.append((old is not None, new is not None)))
        await asyncio.sleep(1)
        # Three writes and the loss of history, before the informer gets its turn.
        store.disconnect()
        await kube.delete(CONFIGMAPS, "a", namespace="default")
        await kube.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="default")
        store.compact()
        await asyncio.sleep(5)
        assert told[0] == (False, True)
        assert told[1:] == [(True, False), (False, True)]
        task.cancel()

    run(check)


def test_a_lean_informer_leaves_the_owners_out_and_who_replaces_from_it_keeps_them() -> None:
    async def check(store: Store) -> None:
        store.keeps_owners = True
        kube = InProcessKube(store)
        made = await kube.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}}, namespace="default")
        informer = Informer(kube, CONFIGMAPS, lean=True)
        running = asyncio.create_task(informer.run())
        await informer.synced()
        cached = informer.get("a", "default")
        assert cached is not None and "managedFields" not in cached["metadata"]
        assert made["metadata"]["managedFields"]
        await kube.replace(CONFIGMAPS, {**cached, "data": {"x": "2"}}, namespace="default", field_manager="other")
        stored = await kube.get(CONFIGMAPS, "a", namespace="default")
        managers = {entry["manager"] for entry in stored["metadata"]["managedFields"]}
        assert managers == {made["metadata"]["managedFields"][0]["manager"], "other"}
        running.cancel()

    run(check)


def test_a_list_in_pages_is_believed_once_all_of_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mews.kube.client.informer, "_PAGE", 2)

    class Breaking(InProcessKube):
        """The second page does not come the first time; the pages of one list are of one moment."""

        pages = 0

        async def list(self, resource: Resource, **options: Any) -> ObjectList:  # type: ignore[override]
            self.pages += 1
            if self.pages == 2:
                raise UnavailableError("the line broke")
            return await super().list(resource, **options)

    async def check(store: Store) -> None:
        kube = InProcessKube(store)
        for number in range(5):
            await kube.create(CONFIGMAPS, {"metadata": {"name": f"c{number}"}}, namespace="default")
        breaking = Breaking(store)
        informer = Informer(breaking, CONFIGMAPS)
        told: list[str] = []
        informer.on_change(lambda old, new: told.append(name_of(new or {})))
        task = asyncio.create_task(informer.run())
        await informer.synced()
        assert breaking.pages == 1 + 1 + 3
        assert told == ["c0", "c1", "c2", "c3", "c4"]
        await kube.create(CONFIGMAPS, {"metadata": {"name": "c5"}}, namespace="default")
        await asyncio.sleep(1)
        assert told == ["c0", "c1", "c2", "c3", "c4", "c5"]
        task.cancel()

    run(check)


def test_objects_are_in_order_of_their_keys_whatever_came_and_went() -> None:
    async def check(store: Store) -> None:
        kube = InProcessKube(store)
        informer = Informer(kube, CONFIGMAPS)
        task = asyncio.create_task(informer.run())
        await informer.synced()
        for name in ("b", "c", "a"):
            await kube.create(CONFIGMAPS, {"metadata": {"name": name}}, namespace="default")
            await asyncio.sleep(1)
        assert [name_of(obj) for obj in informer.items()] == ["a", "b", "c"]
        await kube.delete(CONFIGMAPS, "b", namespace="default")
        await asyncio.sleep(1)
        assert [name_of(obj) for obj in informer.items()] == ["a", "c"]
        task.cancel()

    run(check)
