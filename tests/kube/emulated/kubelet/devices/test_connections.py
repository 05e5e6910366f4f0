"""Streams of plugins by resource: who is heard of first, who is closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from mews.harness.clock import run_virtual
from mews.kube.deviceplugin.port import PluginDevice
from mews.kube.emulated.kubelet.devices.connections import Connections
from tests.kube.emulated.kubelet.devices.stand import FakePlugin


class Wire(FakePlugin):
    """A connection whose list ends after a while, which it may be known to before the end is read."""

    def __init__(self, name: str, *, ends_s: float, connected: bool) -> None:
        super().__init__([name])
        self._ends_s = ends_s
        self._connected = connected
        self.closed_at: float | None = None

    def is_connected(self) -> bool:
        return self._connected

    async def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        yield self.devices
        await asyncio.sleep(self._ends_s)

    async def close(self) -> None:
        self.closed_at = asyncio.get_running_loop().time()


async def two(first: Wire, second: Wire) -> list[tuple[str, float]]:
    """Register the second at 0.1 s; what is heard, until 60 s."""
    loop, heard = asyncio.get_running_loop(), []
    connections = Connections(
        lambda resource, devices: heard.append((devices[0].id, loop.time())),
        lambda resource: heard.append(("gone", loop.time())),
        logging.getLogger("test"),
    )
    await connections.open("r", first)
    await asyncio.sleep(0.1)
    await connections.open("r", second)
    await asyncio.sleep(60.0)
    await connections.close()
    return heard


def test_the_unread_end_of_a_plugin_that_is_gone_comes_before_its_successor():
    first = Wire("first", ends_s=0.5, connected=False)
    second = Wire("second", ends_s=100.0, connected=True)
    assert run_virtual(lambda: two(first, second)) == [("first", 0.0), ("gone", 0.5), ("second", 0.5)]
    assert (first.closed_at, second.closed_at) == (0.5, 60.5)


def test_the_end_of_a_plugin_that_lived_on_closes_its_successor():
    first = Wire("first", ends_s=20.0, connected=True)
    second = Wire("second", ends_s=100.0, connected=True)
    assert run_virtual(lambda: two(first, second)) == [("first", 0.0), ("second", 0.1), ("gone", 20.0)]
    assert (first.closed_at, second.closed_at) == (20.0, 20.0)


def test_an_end_that_is_never_read_holds_a_registration_up_for_a_second_at_most():
    first = Wire("first", ends_s=1000.0, connected=False)
    second = Wire("second", ends_s=1000.0, connected=True)
    assert run_virtual(lambda: two(first, second)) == [("first", 0.0), ("second", 1.1)]
