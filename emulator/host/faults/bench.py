"""What a fault may do to the host it sits in, and the shapes of faults."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from mews.emulator.host.function import Function


class Bench(Protocol):
    """One armed fault's hands on its host."""

    def fire(self, after_s: float) -> None:
        """Have ``happen`` called after that time, if the fault is still there."""
        ...

    def xid(self, device: str, xid: int) -> None:
        """Report an XID of a device."""
        ...

    def fall(self, device: str) -> None:
        """Let a device fall off the bus."""
        ...

    def revive(self, device: str) -> None:
        """Take a fallen device away and find it again."""
        ...

    def ecc(self, device: str, corrected: int, uncorrected: int) -> None:
        """Count memory errors."""
        ...

    def fail(self, function: Function, for_s: float) -> None:
        """Let NVML answer "unknown error" about it for that long."""
        ...

    def recover(self) -> None:
        """End all of that now."""
        ...

    def retry(self) -> None:
        """Let every device try to come up again."""
        ...


@runtime_checkable
class Cuts(Protocol):
    """Keeps a layer from coming up."""

    def cuts(self, function: Function, arrow: str) -> bool:
        """Whether it does so now."""
        ...


@runtime_checkable
class Slows(Protocol):
    """Makes a layer come up later."""

    def slows(self, function: Function, arrow: str) -> float:
        """By how many seconds; 0: not at all."""
        ...


@runtime_checkable
class Tops(Protocol):
    """Strikes when a device has come up."""

    def tops(self, function: Function, bench: Bench) -> bool:
        """Do it; False if there was nothing to do."""
        ...


@runtime_checkable
class Arms(Protocol):
    """Happens at a time of its own."""

    def arm(self, bench: Bench) -> None:
        """Set the time."""
        ...

    def happen(self, bench: Bench) -> None:
        """The time has come."""
        ...


@runtime_checkable
class Undoes(Protocol):
    """Has something to take back."""

    def undo(self, bench: Bench) -> None:
        """Take back what still shows."""
        ...
