"""Errors of the emulated hardware.

EmulatorError
├── HardwareError        a hardware file that cannot be used (one line)
├── StoreFailed          the table could not be stored; nothing changed
└── Refusal              the chassis will not do it; ``code`` is its stable name
    ├── UnknownDevice    no such device in this chassis
    ├── AlreadyAttached  it is on a host port; detach it first
    ├── MissingPort      no host port was named
    ├── UnknownPort      this chassis has no such host port
    ├── UncabledPort     the host port exists, but no host is cabled to it
    ├── SlotsFull        every slot holds a device
    ├── DuplicateDevice  a device of that ID is in the chassis already
    ├── Cancelled        whoever asked for it has given it up
    ├── Busy             the manager works for another client
    ├── LinkDown         the device's link did not come up
    └── NotStored        the table could not be stored (disk full); nothing changed
"""

from __future__ import annotations

from typing import ClassVar


class EmulatorError(Exception):
    """Every error of the emulator is one of these."""


class HardwareError(EmulatorError):
    """A hardware file that cannot be used: one line naming file, place, value and what is allowed."""


class StoreFailed(EmulatorError):
    """The table store refused a write; the table is as it was."""


class Refusal(EmulatorError):
    """The chassis will not do what was asked. ``code`` is stable, the text is for people."""

    code: ClassVar[str] = "refused"


class UnknownDevice(Refusal):
    """No such device in this chassis."""

    code = "unknown-device"


class AlreadyAttached(Refusal):
    """The device is on a host port: detach it first."""

    code = "already-attached"


class MissingPort(Refusal):
    """No host port was named."""

    code = "missing-port"


class UnknownPort(Refusal):
    """The chassis has no such host port."""

    code = "unknown-port"


class UncabledPort(Refusal):
    """The host port exists, but no host is cabled to it."""

    code = "uncabled-port"


class SlotsFull(Refusal):
    """Every slot holds a device."""

    code = "slots-full"


class DuplicateDevice(Refusal):
    """A device of that ID is in the chassis already."""

    code = "duplicate-device"


class LinkDown(Refusal):
    """The device's link did not come up."""

    code = "link-down"


class Cancelled(Refusal):
    """Whoever asked for it has given it up."""

    code = "cancelled"


class Busy(Refusal):
    """The manager works for another client, and takes no move until it is done."""

    code = "busy"


class NotStored(Refusal):
    """The table could not be stored; nothing changed."""

    code = "not-stored"
