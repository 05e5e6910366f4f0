"""Listings with more in them than the table has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation
from mews.emulator.chassis.table import DeviceRow

STRANGE_PORT = "65535"
"""A host port that no hardware file of a sensible size has."""


@dataclass(frozen=True, slots=True)
class ListedTwice:
    """A device, chosen by chance, stands in the listing twice."""

    kind: ClassVar[str] = "listed-twice"
    on: ClassVar[tuple[str, ...]] = ("read",)
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Repeat one row when the listing is taken."""

        def repeat(rows: tuple[DeviceRow, ...]) -> tuple[DeviceRow, ...]:
            return (*rows, rows[bench.rng.randrange(len(rows))]) if rows else rows

        operation.views.append(repeat)
        return True


@dataclass(frozen=True, slots=True)
class UnknownHost:
    """The listing has one device more, on a host port whose host nobody knows."""

    kind: ClassVar[str] = "unknown-host"
    on: ClassVar[tuple[str, ...]] = ("read",)
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Add a row when the listing is taken."""
        strange = DeviceRow("FFFF00", "GPU-00000000-0000-4000-8000-00000000ffff", STRANGE_PORT, "GPU")
        operation.views.append(lambda rows: (*rows, strange))
        return True
