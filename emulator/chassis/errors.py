"""Errors of the emulated hardware.

EmulatorError
├── HardwareError        a hardware file that cannot be used (one line)
├── StoreError          the table could not be stored; nothing changed
└── Refusal              the chassis will not do it; ``code`` is its stable name
    ├── UnknownDeviceError    no such device in this chassis
    ├── AlreadyAttachedError  it is on a host port; detach it first
    ├── MissingPortError      no host port was named
    ├── UnknownPortError      this chassis has no such host port
    ├── UncabledPortError     the host port exists, but no host is cabled to it
    ├── SlotsFullError        every slot holds a device
    ├── DuplicateDeviceError  a device of that ID is in the chassis already
    ├── Cancelled        whoever asked for it has given it up
    ├── Busy             the manager works for another client
    ├── LinkDownError         the device's link did not come up
    └── NotStoredError        the table could not be stored (disk full); nothing changed
"""

from __future__ import annotations

from typing import ClassVar


class EmulatorError(Exception):
    """Every error of the emulator is one of these."""


class HardwareError(EmulatorError):
    """A hardware file that cannot be used: one line naming file, place, value and what is allowed."""


class StoreError(EmulatorError):
    """The table store refused a write; the table is as it was."""


class RefusalError(EmulatorError):
    """The chassis will not do what was asked. ``code`` is stable, the text is for people."""

    code: ClassVar[str] = "refused"


class UnknownDeviceError(RefusalError):
    """No such device in this chassis."""

    code = "unknown-device"


class AlreadyAttachedError(RefusalError):
    """The device is on a host port: detach it first."""

    code = "already-attached"


class MissingPortError(RefusalError):
    """No host port was named."""

    code = "missing-port"


class UnknownPortError(RefusalError):
    """The chassis has no such host port."""

    code = "unknown-port"


class UncabledPortError(RefusalError):
    """The host port exists, but no host is cabled to it."""

    code = "uncabled-port"


class SlotsFullError(RefusalError):
    """Every slot holds a device."""

    code = "slots-full"


class DuplicateDeviceError(RefusalError):
    """A device of that ID is in the chassis already."""

    code = "duplicate-device"


class LinkDownError(RefusalError):
    """The device's link did not come up."""

    code = "link-down"


class MoveCancelledError(RefusalError):
    """Whoever asked for it has given it up."""

    code = "cancelled"


class ChassisBusyError(RefusalError):
    """The manager works for another client, and takes no move until it is done."""

    code = "busy"


class NotStoredError(RefusalError):
    """The table could not be stored; nothing changed."""

    code = "not-stored"
