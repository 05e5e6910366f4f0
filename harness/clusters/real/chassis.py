"""The chassis in a real cluster's pod, as the harness reaches it: back door and event feed through the API server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp

from mews.emulator.hardware.inventory import Hardware
from mews.harness.chassis_feed import ChassisFeed
from mews.harness.clusters.real.hosts import PodHosts
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.ports.hardware_http import HttpHardwareControl
from mews.kube.clock import rest

_ANSWER_S = 60.0
_AGAIN_S = 0.2
_BROKEN = (aiohttp.ClientError, TimeoutError, RuntimeError, OSError)


class PodHardware:
    """HardwareControl of the chassis in the cluster, and of the hosts that its nodes show."""

    def __init__(
        self, control: HttpHardwareControl, hosts: PodHosts, users_known: Callable[[], Awaitable[None]]
    ) -> None:
        self._control = control
        self._hosts = hosts
        self._users_known = users_known

    async def table(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return the device lookup tables."""
        return await self._control.table()

    async def edit(self, chassis: str, device: str, port: str | None) -> None:
        """Change a table at once. Raises ValueError."""
        await self._control.edit(chassis, device, port)

    async def fault(self, chassis: str, spec: Mapping[str, Any]) -> None:
        """Add a fault. Raises ValueError."""
        await self._control.fault(chassis, spec)

    async def clear(self, name: str | None = None) -> None:
        """Undo all faults, or those of one chassis or host."""
        await self._hosts.clear(name)
        if name not in self._hosts.names:
            await self._control.clear(name)

    async def faults(self) -> dict[str, list[dict[str, Any]]]:
        """Return what is in place, by chassis and host."""
        return {**await self._control.faults(), **await self._hosts.faults()}

    async def hosts(self) -> dict[str, dict[str, Any]]:
        """Return what each host sees. Raises CapabilityError."""
        await self._users_known()
        return await self._hosts.view()

    async def host_fault(self, host: str, spec: Mapping[str, Any]) -> None:
        """Add a fault to a host. Raises ValueError, CapabilityError."""
        await self._hosts.fault(host, spec)

    async def operate(self, host: str, action: Mapping[str, Any], wait_s: float = 0.0) -> str:
        """Return what an operator does there. Raises ValueError, CapabilityError."""
        return await self._hosts.operate(host, action, wait_s)

    async def telemetry(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return what every board shows now."""
        return await self._control.telemetry()

    async def set_telemetry(self, chassis: str, device: str, values: Mapping[str, Any]) -> None:
        """Set values of boards. Raises ValueError."""
        await self._control.set_telemetry(chassis, device, values)

    async def reset(self) -> None:
        """As at the start."""
        await self._hosts.clear()
        await self._control.reset()


class PodChassis:
    """All chassis of an inventory, served by one pod. ``control`` is its back door."""

    def __init__(self, control: HttpHardwareControl, hardware: Hardware, journal: Journal) -> None:
        self.control = control
        self._hardware = hardware
        self._journal = journal
        self._feeds: dict[str, ChassisFeed] = {}
        self._feeding: asyncio.Task[None] | None = None
        self._alive = asyncio.Event()
        self._last = 0

    async def answers(self) -> None:
        """Wait until the back door answers.

        Raises RequirementError where it does not in time.
        """
        loop = asyncio.get_running_loop()
        deadline, seen = loop.time() + _ANSWER_S, ""
        while loop.time() < deadline:
            try:
                await self.control.table()
                return
            except _BROKEN as error:
                seen = f"{type(error).__name__}: {error}"
            await rest(_AGAIN_S)
        raise RequirementError(f"the chassis did not answer within {_ANSWER_S:g} s: {seen}")

    async def open(self, *, speed: float) -> None:
        """The table and faults as at the start; then hear every event. Nothing else may change it meanwhile."""
        await self.answers()
        await self.control.clear()
        await self.control.reset()
        await self.control.speed(speed)
        self._last = await self.control.seq()
        tables = await self.control.table()
        for spec in self._hardware.chassis:
            self._feeds[spec.name] = ChassisFeed(self._journal, spec, _rows(tables[spec.name]))
        for feed in self._feeds.values():
            feed.begin(None)
        self._alive.set()
        self._feeding = asyncio.create_task(self._feed(), name="chassis-feed")

    def killed(self) -> None:
        """Its process is dead."""
        self._alive.clear()
        self._last = 0

    async def started(self) -> None:
        """Its process was started again: it counts its events from 1."""
        await self.answers()
        self._alive.set()

    async def _feed(self) -> None:
        while True:
            await self._alive.wait()
            with contextlib.suppress(*_BROKEN):
                async for event in self.control.events(self._last):
                    self._last = event["seq"]
                    fields = {k: v for k, v in event.items() if k not in ("seq", "number", "t", "chassis", "event")}
                    self._feeds[event["chassis"]].on_event(event["number"], event["event"], fields)
            await rest(_AGAIN_S)

    async def close(self) -> None:
        """Stop hearing."""
        if self._feeding is not None:
            self._feeding.cancel()
            await asyncio.gather(self._feeding, return_exceptions=True)
        await self.control.close()


def _rows(table: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {device: {"uuid": row["uuid"], "port": row["port"]} for device, row in table.items()}
