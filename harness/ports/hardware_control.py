"""The back door to emulated chassis that run in process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.emulator.chassis.errors import Refusal
from mews.harness.ports.chassis import LocalFleet


class LocalHardwareControl:
    """HardwareControl over a ``LocalFleet``."""

    def __init__(self, fleet: LocalFleet) -> None:
        self._fleet = fleet

    async def table(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Chassis -> device -> row; see ``mews.emulator.chassis.fleet.Fleet.table``."""
        return self._fleet.fleet.table(self._fleet.pace.now())

    async def edit(self, chassis: str, device: str, port: str | None) -> None:
        """Change the table at once.

        Raises ValueError where the chassis refuses.
        """
        try:
            self._fleet.fleet.box(chassis).edit(device, port, self._fleet.pace.now())
        except Refusal as refusal:
            raise ValueError(str(refusal)) from refusal
        self._fleet.stirred(chassis)

    async def fault(self, chassis: str, spec: Mapping[str, Any]) -> None:
        """Add a fault.

        Raises ValueError naming what is allowed.
        """
        self._fleet.fleet.box(chassis).faults.add(spec, self._fleet.pace.now())
        self._fleet.stirred(chassis)

    async def clear(self, chassis: str | None = None) -> None:
        """Undo all faults that were added."""
        for name in self._fleet.fleet.boxes if chassis is None else [chassis]:
            self._fleet.fleet.box(name).faults.clear(self._fleet.pace.now())
            self._fleet.stirred(name)

    async def reset(self) -> None:
        """The table, the faults and the operations as they were at the start."""
        for name, box in self._fleet.fleet.boxes.items():
            box.reset(self._fleet.pace.now())
            self._fleet.stirred(name)
