"""A reply whose boolean is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation
from mews.emulator.hardware.latency import Latency


@dataclass(frozen=True, slots=True)
class LyingResult:
    """The reply says the opposite of what happened; with ``says``, only where that is the lie.

    Measured on Falcon 4005: 250 of 361 attach replies said ``false`` though attached, and took longer (``latency``).
    """

    says: bool | None = None
    latency: Latency | None = None

    kind: ClassVar[str] = "lying-result"
    on: ClassVar[tuple[str, ...]] = ("attach", "detach")
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = 0.0

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Let the reply say something else than what happens to the operation."""
        if self.says is not None and self.says is (operation.refusal is None):
            return False
        operation.lies, operation.says = True, self.says
        if self.latency is not None and operation.refusal is None:
            operation.last(self.latency.draw(bench.rng))
        return True
