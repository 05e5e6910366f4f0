"""What a host refuses, with the errno that a write into its sysfs fails with.

HostRefusalError
├── InUse            EBUSY   a process has the GPU open, or persistence mode is on
├── DeviceLostError       ENXIO   the GPU has fallen off the bus: nothing on the host can reset it
├── NoSuchDeviceError     ENODEV  no such function, slot or bridge, or it is not in a state in which this can be done
├── AlreadyBoundError     EBUSY   a driver has it
├── DriverFailedError     EIO     the driver does not take the device
├── OutOfRangeError       ERANGE  more virtual functions than the device has
├── NotConfigurableError  ENOENT  no driver has the device, or the one that has it makes no virtual functions
├── NotSupportedError     EOPNOTSUPP  this model has no such setting
├── NoRoomLeftError       ENOSPC  the GPU has no room for another MIG instance
└── BadWriteError         EINVAL  not something that this file, or this setting, takes
"""

from __future__ import annotations

import errno
from typing import ClassVar


class HostRefusalError(Exception):
    """Nothing was changed. ``code`` is for scenarios and journals, ``errno`` for the writer of a file."""

    code: ClassVar[str] = "REFUSED"
    errno: ClassVar[int] = errno.EIO


class DeviceInUseError(HostRefusalError):
    """A process has the GPU open, so that it cannot be taken away."""

    code = "IN_USE"
    errno = errno.EBUSY


class DeviceLostError(HostRefusalError):
    """The GPU has fallen off the bus."""

    code = "LOST"
    errno = errno.ENXIO


class NoSuchDeviceError(HostRefusalError):
    """There is no such thing here."""

    code = "NO_DEVICE"
    errno = errno.ENODEV


class AlreadyBoundError(HostRefusalError):
    """A driver has the function."""

    code = "BOUND"
    errno = errno.EBUSY


class DriverFailedError(HostRefusalError):
    """The driver's probe of the function failed."""

    code = "DRIVER_FAILED"
    errno = errno.EIO


class OutOfRangeError(HostRefusalError):
    """More than the device has."""

    code = "OUT_OF_RANGE"
    errno = errno.ERANGE


class NotConfigurableError(HostRefusalError):
    """No driver has the function, or the driver that has it cannot do this."""

    code = "NOT_CONFIGURABLE"
    errno = errno.ENOENT


class NotSupportedError(HostRefusalError):
    """The GPU's model has no such setting."""

    code = "NOT_SUPPORTED"
    errno = errno.EOPNOTSUPP


class NoRoomLeftError(HostRefusalError):
    """The GPU, or the GPU instance, has no room for another MIG instance."""

    code = "NO_ROOM"
    errno = errno.ENOSPC


class BadWriteError(HostRefusalError):
    """The text is none that the file takes, or the value none that the setting takes."""

    code = "INVALID"
    errno = errno.EINVAL


REFUSALS: tuple[str, ...] = tuple(
    each.code
    for each in (
        DeviceInUseError,
        DeviceLostError,
        NoSuchDeviceError,
        AlreadyBoundError,
        DriverFailedError,
        OutOfRangeError,
        NotConfigurableError,
        NotSupportedError,
        NoRoomLeftError,
        BadWriteError,
    )
)
"""All codes."""
