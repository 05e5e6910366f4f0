"""Attaches that do not bring a device up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.emulator.chassis.errors import LinkDownError
from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation


@dataclass(frozen=True, slots=True)
class HalfAppliedAttach:
    """The reply says ``says`` (default: done), but the device is on no port."""

    says: bool = True

    kind: ClassVar[str] = "half-applied-attach"
    on: ClassVar[tuple[str, ...]] = ("attach",)
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (5, 8)
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Leave the table alone and reply as told."""
        if operation.refusal is not None:
            return False
        operation.applies, operation.claims = False, self.says
        return True


@dataclass(frozen=True, slots=True)
class NeverTrains:
    """The device's link never comes up: each attach of it fails, after a wait of ``wait_s``."""

    wait_s: float = 11.0

    kind: ClassVar[str] = "never-trains"
    on: ClassVar[tuple[str, ...]] = ("attach",)
    count: ClassVar[int | None] = None
    may_break: ClassVar[tuple[int, ...]] = (5, 8)
    grace_s: ClassVar[float] = float("inf")

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Refuse it after the wait."""
        if operation.refusal is not None:
            return False
        operation.refuse(LinkDownError(f"device {operation.device!r}: its link does not come up"))
        operation.last(self.wait_s)
        return True
