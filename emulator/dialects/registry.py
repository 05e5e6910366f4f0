"""The face of every dialect, by the dialect's name."""

from __future__ import annotations

from mews.dialects import part_of
from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.dialects.redfish.settings import RedfishSettings
from mews.emulator.dialects.wire import ChassisFace, DialectFace


def face_of(dialect: str) -> DialectFace:
    """Return what that dialect brings to the emulator.

    Raises NotRegisteredError, a ValueError.
    """
    found = part_of(dialect, "face")
    if not isinstance(found, DialectFace):
        raise ValueError(f"dialect {dialect!r}: its face is a {type(found).__name__}; must be a DialectFace")
    return found


def face(dialect: str, box: EmulatedChassis, settings: RedfishSettings) -> ChassisFace:
    """Return a chassis' face in a dialect; ``settings`` are for those that know accounts."""
    return face_of(dialect).make(box, settings)
