"""What a fault may do to the chassis it sits in, and the shapes of faults."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

from mews.emulator.chassis.events import ChassisEvent
from mews.emulator.chassis.operation import Operation
from mews.emulator.chassis.table import DeviceRow


class ChassisHandle(Protocol):
    """What an armed fault may do to the chassis it sits in."""

    rng: random.Random

    @property
    def now_s(self) -> float:
        """The time now, in emulated seconds."""
        ...

    def fire(self, after_s: float) -> None:
        """Have ``happen`` called after that time, if the fault is still there."""
        ...

    def edit(self, device: str, port: str | None) -> None:
        """Change the table at once; what the chassis refuses does not happen."""
        ...

    def set_link(self, device: str, up: bool) -> None:
        """Take a device's link down or up."""
        ...

    def set_uuid(self, device: str, uuid: str | None) -> None:
        """Show another UUID; None shows the device's own."""
        ...

    def reboot(self, after_s: float, down_s: float) -> None:
        """Restart the management CPU after a time; it then answers nothing for ``down_s`` emulated seconds."""
        ...

    def come_back(self) -> None:
        """End a restart of the management CPU before its time."""
        ...

    def rewound(self, age_s: float) -> tuple[DeviceRow, ...]:
        """Return the listing as it was ``age_s`` emulated seconds ago."""
        ...

    def devices(self) -> tuple[str, ...]:
        """Return the IDs of all devices in the chassis."""
        ...

    def add_at(self, at_s: float, spec: Mapping[str, Any]) -> None:
        """Add another fault, given by its spec, at an emulated time."""
        ...


class ChassisFault(Protocol):
    """What the chassis needs to know of every fault."""

    kind: ClassVar[str]
    on: ClassVar[tuple[str, ...]]
    count: ClassVar[int | None]
    may_break: ClassVar[tuple[int, ...]]

    @property
    def grace_s(self) -> float:
        """How long its effect lasts; infinite: until it is cleared."""
        ...


@runtime_checkable
class OperationFault(Protocol):
    """Changes operations as they begin."""

    def strike(self, operation: Operation, bench: ChassisHandle) -> bool:
        """Write on the operation what goes wrong with it; False if this is none to strike."""
        ...


@runtime_checkable
class TimedChassisFault(Protocol):
    """Happens at a time of its own."""

    def arm(self, bench: ChassisHandle) -> None:
        """Ask ``fire`` for the time at which the fault is to happen."""
        ...

    def happen(self, bench: ChassisHandle) -> None:
        """Do the fault's damage: its time has come."""
        ...


@runtime_checkable
class Delays(Protocol):
    """A fault that holds back events of the chassis."""

    def delay(self, event: ChassisEvent) -> float | None:
        """Return for how many seconds; None lets it pass."""
        ...


@runtime_checkable
class UndoableChassisFault(Protocol):
    """Has something to take back."""

    def undo(self, bench: ChassisHandle) -> None:
        """Take back what still shows."""
        ...
