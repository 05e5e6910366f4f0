"""The gRPC face of the device plugin: its list, and what a kubelet asks of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from mews.kube.deviceplugin.port import Allocation, PluginDevice, PluginOptions

OPTIONS = PluginOptions(preferred_allocation_available=True)

Prefer = Callable[[Sequence[str], Sequence[str], int], Awaitable[tuple[str, ...]]]
Allocate = Callable[[Sequence[str]], Awaitable[Allocation]]


class SlicePlugin:
    """A DevicePlugin of memory slices; ``prefer`` and ``allocate`` decide for one container each."""

    def __init__(self, prefer: Prefer, allocate: Allocate) -> None:
        self._prefer = prefer
        self._allocate = allocate
        self._devices: tuple[PluginDevice, ...] = ()
        self._number = 0
        self._changed = asyncio.Condition()

    async def publish(self, devices: tuple[PluginDevice, ...]) -> None:
        """Announce this list from now on."""
        async with self._changed:
            self._devices = devices
            self._number += 1
            self._changed.notify_all()

    async def options(self) -> PluginOptions:
        """It wants to be asked which slices."""
        return OPTIONS

    async def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        """Yield the list, again at each change."""
        sent = 0
        while True:
            async with self._changed:
                while self._number == sent:
                    await self._changed.wait()
                sent, devices = self._number, self._devices
            yield devices

    async def preferred_allocation(
        self, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        """Slices of the GPU that was decided on."""
        return await self._prefer(available, must_include, size)

    async def allocate(self, requests: Sequence[Sequence[str]]) -> tuple[Allocation, ...]:
        """Return what each container gets."""
        return tuple([await self._allocate(ids) for ids in requests])

    async def pre_start(self, devices: Sequence[str]) -> None:
        """Nothing is to be done."""
