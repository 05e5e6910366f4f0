"""Redfish as a dialect of the emulator."""

from __future__ import annotations

from mews.emulator.dialects.redfish.service import RedfishFace
from mews.emulator.dialects.wire import DialectFace

FACE = DialectFace(RedfishFace, prefix="/redfish", login=True)
