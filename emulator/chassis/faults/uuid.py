"""A GPU UUID that is wrong or missing after an attach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.emulator.chassis.faults.bench import ChassisHandle
from mews.emulator.chassis.operation import Operation


@dataclass(frozen=True, slots=True)
class WrongUuid:
    """From the attach on, the listing shows ``uuid`` ("" = missing) for the device; null makes one up. Its host cannot
    be asked to give up what nobody can name."""

    uuid: str | None = None

    kind: ClassVar[str] = "wrong-uuid"
    on: ClassVar[tuple[str, ...]] = ("attach",)
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (1, 2, 6, 8, 10)
    grace_s: ClassVar[float] = float("inf")

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Change what is shown once the device is attached."""
        if operation.refusal is not None:
            return False
        uuid = _made_up(bench) if self.uuid is None else self.uuid
        operation.after.append(lambda: bench.set_uuid(operation.device, uuid))
        return True

    def undo(self, bench: ChassisHandle) -> None:
        """Every device shows its own again."""
        for device in bench.devices():
            bench.set_uuid(device, None)


def _made_up(bench: ChassisHandle) -> str:
    digits = f"{bench.rng.getrandbits(128):032x}"
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
