"""Errors of Koordinator.

::

    KoordinatorError
    ├── KoordinatorConfigError  it cannot be run like that
    ├── BadDeviceError         a Device, or an annotation about devices, that cannot be read
    └── InvalidRequestError          a pod asks for devices in a way that nobody could serve
"""

from __future__ import annotations


class KoordinatorError(ValueError):
    """Any of them; one line."""


class KoordinatorConfigError(KoordinatorError):
    """It cannot be run like that; one line with what is allowed."""


class BadDeviceError(KoordinatorError):
    """A Device object, or an annotation about devices, is not in the form of section 1; one line with the place."""


class InvalidRequestError(KoordinatorError):
    """A pod's request that no node can serve; the text is what the scheduler says of the pod."""
