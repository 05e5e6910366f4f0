"""The back door to emulated chassis that run in process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mews.emulator.chassis.errors import RefusalError
from mews.emulator.host import act
from mews.emulator.host.errors import HostRefusalError
from mews.emulator.telemetry.settings import ALL
from mews.harness.ports.chassis import LocalFleet
from mews.harness.ports.hosts import LocalHosts


class LocalHardwareControl:
    """HardwareControl over a ``LocalFleet`` and, where there are any, its hosts."""

    def __init__(self, fleet: LocalFleet, hosts: LocalHosts | None = None) -> None:
        self._fleet = fleet
        self._hosts = hosts

    async def table(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Chassis -> device -> row; see ``mews.emulator.chassis.fleet.Fleet.table``."""
        return self._fleet.fleet.table(self._fleet.pace.now())

    async def edit(self, chassis: str, device: str, port: str | None) -> None:
        """Change the table at once.

        Raises ValueError where the chassis refuses.
        """
        try:
            self._fleet.fleet.box(chassis).edits.edit(device, port, self._fleet.pace.now())
        except RefusalError as refusal:
            raise ValueError(str(refusal)) from refusal
        self._fleet.stirred(chassis)

    async def fault(self, chassis: str, spec: Mapping[str, Any]) -> None:
        """Add a fault.

        Raises ValueError naming what is allowed, and for a chassis that is down: its start would forget the fault.
        """
        box = self._fleet.fleet.box(chassis)
        if not self._fleet.alive(chassis):
            raise ValueError(f"chassis {chassis} is down and would forget the fault as it starts: start it first")
        box.faults.add(spec, self._fleet.pace.now())
        self._fleet.stirred(chassis)

    async def clear(self, name: str | None = None) -> None:
        """Undo all faults that were added, or those of one chassis or host."""
        if self._hosts is not None and name in (None, *self._hosts.hosts.hosts):
            self._hosts.hosts.clear(self._fleet.pace.now(), name)
            self._hosts.stirred()
            if name is not None:
                return
        for chassis in self._fleet.fleet.boxes if name is None else [name]:
            self._fleet.fleet.box(chassis).faults.clear(self._fleet.pace.now())
            self._fleet.stirred(chassis)

    async def faults(self) -> dict[str, list[dict[str, Any]]]:
        """Return what is in place, by chassis and host."""
        hosts = {} if self._hosts is None else self._hosts.hosts.hosts
        for box in self._fleet.fleet.boxes.values():
            box.settle(self._fleet.pace.now())  # some may have expired
        return {
            **{f"chassis/{name}": box.faults.listed() for name, box in self._fleet.fleet.boxes.items()},
            **{f"host/{name}": host.faults.listed() for name, host in hosts.items()},
        }

    async def telemetry(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return what every board shows now."""
        now_s = self._fleet.pace.now()
        for box in self._fleet.fleet.boxes.values():
            box.settle(now_s)
        return {name: box.telemetry.shown(now_s) for name, box in self._fleet.fleet.boxes.items()}

    async def set_telemetry(self, chassis: str, device: str, values: Mapping[str, Any]) -> None:
        """Set values of boards. Raises ValueError."""
        fleet, now_s = self._fleet.fleet, self._fleet.pace.now()
        boxes = list(fleet.boxes.values()) if chassis == ALL else [fleet.box(chassis)]
        for box in boxes:
            box.telemetry.check(device, values)
        for box in boxes:
            box.settle(now_s)
            box.telemetry.set(device, values, now_s)

    async def reset(self) -> None:
        """The table, the faults and the operations as they were at the start."""
        if self._hosts is not None:
            self._hosts.hosts.clear(self._fleet.pace.now())
        for name, box in self._fleet.fleet.boxes.items():
            box.reset(self._fleet.pace.now())
            self._fleet.stirred(name)

    async def hosts(self) -> dict[str, dict[str, Any]]:
        """Return what each host sees; {} without hosts."""
        if self._hosts is None:
            return {}
        return {name: host.view() for name, host in self._hosts.hosts.hosts.items()}

    async def host_fault(self, host: str, spec: Mapping[str, Any]) -> None:
        """Add a fault to a host.

        Raises ValueError naming what is allowed.
        """
        hosts = self._there()
        hosts.hosts.host(host).faults.add(spec, self._fleet.pace.now())
        hosts.stirred()

    async def operate(self, host: str, action: Mapping[str, Any], wait_s: float = 0.0) -> str:
        """Return what an operator does there; see ``HardwareControl``."""
        hosts = self._there()
        hosts.hosts.host(host)
        try:
            pending = act.begin(hosts.trees[host], action, self._fleet.pace.now())
            async with asyncio.timeout(self._fleet.pace.loop_s(wait_s)):
                await hosts.done(pending)
        except HostRefusalError as refusal:
            return refusal.code
        except TimeoutError:
            return "waiting"
        except OSError as error:
            raise ValueError(f"{action.get('path')}: {type(error).__name__}") from error
        finally:
            hosts.stirred()
        return "done"

    def _there(self) -> LocalHosts:
        if self._hosts is None:
            raise ValueError("this session has no emulated hosts")
        return self._hosts
