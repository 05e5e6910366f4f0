"""A GPU that reports errors, or is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.emulator.host.faults.bench import HostHandle
from mews.emulator.host.function import Function

FELL_OFF = 79


@dataclass(frozen=True, slots=True)
class Xid:
    """The driver reports ``xid`` of ``device`` after ``after_s``; 79 means that it has fallen off the bus.

    ``mig_device`` limits any other to the MIG device of that number. Clearing it finds a fallen GPU again.
    """

    device: str
    xid: int = FELL_OFF
    after_s: float = 0.0
    mig_device: int | None = None

    kind: ClassVar[str] = "xid"
    on: ClassVar[tuple[str, ...]] = ()
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 8)
    grace_s: ClassVar[float] = float("inf")

    def arm(self, bench: HostHandle) -> None:
        """Set the time."""
        bench.fire(self.after_s)

    def happen(self, bench: HostHandle) -> None:
        """Report it."""
        if self.xid == FELL_OFF:
            bench.fall(self.device)
        else:
            bench.xid(self.device, self.xid, self.mig_device)

    def undo(self, bench: HostHandle) -> None:
        """It comes back."""
        bench.revive(self.device)


@dataclass(frozen=True, slots=True)
class FallenOffBus:
    """``device`` falls off the bus after ``after_s``: XID 79, its configuration space reads as ones, NVML says lost.

    The chassis knows nothing of it. Clearing the fault finds it again.
    """

    device: str
    after_s: float = 0.0

    kind: ClassVar[str] = "fallen-off-bus"
    on: ClassVar[tuple[str, ...]] = ()
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 8)
    grace_s: ClassVar[float] = float("inf")

    def arm(self, bench: HostHandle) -> None:
        """Set the time."""
        bench.fire(self.after_s)

    def happen(self, bench: HostHandle) -> None:
        """It falls."""
        bench.fall(self.device)

    def undo(self, bench: HostHandle) -> None:
        """It comes back."""
        bench.revive(self.device)


@dataclass(frozen=True, slots=True)
class EccErrors:
    """``corrected`` single-bit and ``uncorrected`` double-bit errors of ``device`` after ``after_s``; a double-bit one
    is XID 48 too."""

    device: str
    corrected: int = 1
    uncorrected: int = 0
    after_s: float = 0.0

    kind: ClassVar[str] = "ecc-errors"
    on: ClassVar[tuple[str, ...]] = ()
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = 0.0

    def arm(self, bench: HostHandle) -> None:
        """Set the time."""
        bench.fire(self.after_s)

    def happen(self, bench: HostHandle) -> None:
        """Count them."""
        bench.ecc(self.device, self.corrected, self.uncorrected)


@dataclass(frozen=True, slots=True)
class NvmlUnknownError:
    """After a hot-plug NVML answers "unknown error" about the device for ``for_s`` (contract chassis.md 2)."""

    for_s: float = 10.0

    kind: ClassVar[str] = "nvml-unknown-error"
    on: ClassVar[tuple[str, ...]] = ("nvml",)
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 8)

    @property
    def grace_s(self) -> float:
        """While NVML does not know."""
        return self.for_s

    def tops(self, function: Function, bench: HostHandle) -> bool:
        """It fails from the start on."""
        if not function.is_gpu:
            return False
        bench.fail(function, self.for_s)
        return True

    def undo(self, bench: HostHandle) -> None:
        """NVML is well again."""
        bench.recover()
