"""The wire languages that a chassis speaks, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mews.emulator.chassis.box import Box
from mews.emulator.dialects.h3api import H3Api
from mews.emulator.dialects.redfish.settings import Settings
from mews.emulator.dialects.resource_pool import ResourcePool
from mews.emulator.dialects.wire import Dialect


def _redfish(box: Box, settings: Settings | None = None) -> Dialect:
    """Imported when it is spoken: it is larger than all the rest, and a start must be quick."""
    from mews.emulator.dialects.redfish.service import Redfish

    return Redfish(box, settings)


DIALECTS: Mapping[str, Callable[[Box], Dialect]] = {"h3api": H3Api, "resource-pool": ResourcePool, "redfish": _redfish}

PREFIXES: Mapping[str, str] = {"h3api": "/h3api/", "resource-pool": "/", "redfish": "/redfish"}
"""What each one's paths begin with, so that all of them fit on one port."""


def face(name: str, box: Box, settings: Settings) -> Dialect:
    """A chassis' face in a dialect; ``settings`` are for the one that knows accounts."""
    return _redfish(box, settings) if name == "redfish" else DIALECTS[name](box)
