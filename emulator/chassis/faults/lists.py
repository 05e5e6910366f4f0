"""Listings that are not the table: partial ones and stale ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation
from mews.emulator.chassis.table import DeviceRow


@dataclass(frozen=True, slots=True)
class PartialList:
    """Some devices are missing from the listing: all but ``keep`` (default: half of them), chosen by chance.

    Measured on Falcon 4005: 2 of 4 and 2 of 5 devices, right after an EOF.
    """

    keep: int | None = None

    kind: ClassVar[str] = "partial-list"
    on: ClassVar[tuple[str, ...]] = ("read",)
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 5, 8)
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Shorten the listing when it is taken."""

        def shorten(rows: tuple[DeviceRow, ...]) -> tuple[DeviceRow, ...]:
            keep = len(rows) // 2 if self.keep is None else min(self.keep, len(rows))
            kept = sorted(bench.rng.sample(range(len(rows)), keep))
            return tuple(rows[i] for i in kept)

        operation.views.append(shorten)
        return True


@dataclass(frozen=True, slots=True)
class StaleList:
    """The listing is that of ``age_s`` ago."""

    age_s: float = 30.0

    kind: ClassVar[str] = "stale-list"
    on: ClassVar[tuple[str, ...]] = ("read",)
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 5, 8)
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Rewind the listing when it is taken."""
        operation.views.append(lambda rows: bench.rewound(self.age_s))
        return True
