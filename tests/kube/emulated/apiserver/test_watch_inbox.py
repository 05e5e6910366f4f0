"""Waiting for the events of a watch until some time."""

import asyncio

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.resources import NAMESPACES
from mews.kube.client.port import EventType, WatchEvent
from mews.kube.emulated.core.store.kinds import Registry
from mews.kube.emulated.core.store.released_kinds import standard_kinds
from mews.kube.emulated.core.store.selection import select
from mews.kube.emulated.core.store.shelf import ResourceShelf


def inbox():
    return ResourceShelf().subscribe(select(Registry(standard_kinds()).of(NAMESPACES)), 1)


EVENT = WatchEvent(EventType.ADDED, {"metadata": {"name": "a"}})


def test_nothing_by_the_time_is_a_timeout_at_that_time_whatever_was_asked_before():
    async def main():
        loop, waiting = asyncio.get_running_loop(), inbox()
        began_s = loop.time()
        loop.call_later(3, waiting.push, EVENT)
        assert await waiting.next_by(began_s + 100) == EVENT
        with pytest.raises(TimeoutError):
            await waiting.next_by(began_s + 10)
        assert loop.time() - began_s == pytest.approx(10)
        with pytest.raises(TimeoutError):
            await waiting.next_by(began_s + 200)
        assert loop.time() - began_s == pytest.approx(200)
        waiting.close()

    run_virtual(main)


def test_the_end_of_the_watch_ends_the_wait():
    async def main():
        loop, waiting = asyncio.get_running_loop(), inbox()
        loop.call_later(3, waiting.end)
        assert await waiting.next_by(loop.time() + 100) is None

    run_virtual(main)
