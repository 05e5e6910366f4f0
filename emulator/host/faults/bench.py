"""What a fault may do to the host it sits in, and the shapes of faults."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from mews.emulator.host.function import Function


class HostHandle(Protocol):
    """What an armed fault may do to the host it sits in."""

    def fire(self, after_s: float) -> None:
        """Have ``happen`` called after that time, if the fault is still there."""
        ...

    def xid(self, device: str, xid: int, mig_device: int | None = None) -> None:
        """Report an XID of a device, or of one of its MIG devices by its number."""
        ...

    def fall(self, device: str) -> None:
        """Let a device fall off the bus."""
        ...

    def revive(self, device: str) -> None:
        """Take a fallen device away and find it again."""
        ...

    def ecc(self, device: str, corrected: int, uncorrected: int) -> None:
        """Add memory errors to a device's counters."""
        ...

    def fail(self, function: Function, for_s: float) -> None:
        """Let NVML answer "unknown error" about a device for ``for_s`` emulated seconds."""
        ...

    def recover(self) -> None:
        """Let NVML answer about every device again."""
        ...

    def retry(self) -> None:
        """Let every device try to come up again."""
        ...


@runtime_checkable
class BlockingFault(Protocol):
    """A fault that keeps a layer from coming up."""

    def cuts(self, function: Function, arrow: str) -> bool:
        """Return whether the fault keeps this device from crossing this arrow now."""
        ...


@runtime_checkable
class DelayingFault(Protocol):
    """A fault that makes a layer come up later."""

    def slows(self, function: Function, arrow: str) -> float:
        """Return by how many seconds the arrow takes longer; 0 if it does not."""
        ...


@runtime_checkable
class ArrivalFault(Protocol):
    """A fault that strikes when a device has come up."""

    def tops(self, function: Function, bench: HostHandle) -> bool:
        """Strike the device; False if there was nothing to do."""
        ...


@runtime_checkable
class TimedHostFault(Protocol):
    """A fault that happens at a time of its own."""

    def arm(self, bench: HostHandle) -> None:
        """Ask ``fire`` for the time at which the fault is to happen."""
        ...

    def happen(self, bench: HostHandle) -> None:
        """Do the fault's damage: its time has come."""
        ...


@runtime_checkable
class UndoableHostFault(Protocol):
    """A fault that has something to take back when it is cleared."""

    def undo(self, bench: HostHandle) -> None:
        """Take back what still shows."""
        ...
