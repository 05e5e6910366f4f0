"""What a host refuses, with the errno that a write into its sysfs fails with.

HostRefusal
├── InUse            EBUSY   a process has the GPU open, or persistence mode is on
├── DeviceLost       ENXIO   the GPU has fallen off the bus: nothing on the host can reset it
├── NoSuchDevice     ENODEV  no such function, slot or bridge, or it is not in a state in which this can be done
├── AlreadyBound     EBUSY   a driver has it
├── DriverFailed     EIO     the driver does not take the device
├── OutOfRange       ERANGE  more virtual functions than the device has
├── NotConfigurable  ENOENT  no driver has the device, or the one that has it makes no virtual functions
├── NotSupported     EOPNOTSUPP  this model has no such setting
├── NoRoomLeft       ENOSPC  the GPU has no room for another MIG instance
└── BadWrite         EINVAL  not something that this file, or this setting, takes
"""

from __future__ import annotations

import errno
from typing import ClassVar


class HostRefusal(Exception):
    """Nothing was changed. ``code`` is for scenarios and journals, ``errno`` for the writer of a file."""

    code: ClassVar[str] = "REFUSED"
    errno: ClassVar[int] = errno.EIO


class DeviceInUse(HostRefusal):
    """A process has the GPU open, so that it cannot be taken away."""

    code = "IN_USE"
    errno = errno.EBUSY


class DeviceLost(HostRefusal):
    """The GPU has fallen off the bus."""

    code = "LOST"
    errno = errno.ENXIO


class NoSuchDevice(HostRefusal):
    """There is no such thing here."""

    code = "NO_DEVICE"
    errno = errno.ENODEV


class AlreadyBound(HostRefusal):
    """A driver has the function."""

    code = "BOUND"
    errno = errno.EBUSY


class DriverFailed(HostRefusal):
    """The driver's probe of the function failed."""

    code = "DRIVER_FAILED"
    errno = errno.EIO


class OutOfRange(HostRefusal):
    """More than the device has."""

    code = "OUT_OF_RANGE"
    errno = errno.ERANGE


class NotConfigurable(HostRefusal):
    """No driver has the function, or the driver that has it cannot do this."""

    code = "NOT_CONFIGURABLE"
    errno = errno.ENOENT


class NotSupported(HostRefusal):
    """The GPU's model has no such setting."""

    code = "NOT_SUPPORTED"
    errno = errno.EOPNOTSUPP


class NoRoomLeft(HostRefusal):
    """The GPU, or the GPU instance, has no room for another MIG instance."""

    code = "NO_ROOM"
    errno = errno.ENOSPC


class BadWrite(HostRefusal):
    """The text is none that the file takes, or the value none that the setting takes."""

    code = "INVALID"
    errno = errno.EINVAL


REFUSALS: tuple[str, ...] = tuple(
    each.code
    for each in (
        DeviceInUse,
        DeviceLost,
        NoSuchDevice,
        AlreadyBound,
        DriverFailed,
        OutOfRange,
        NotConfigurable,
        NotSupported,
        NoRoomLeft,
        BadWrite,
    )
)
"""All codes."""
