"""Fabric manager, cluster manager and token service as a dialect of the emulator."""

from __future__ import annotations

from mews.emulator.dialects.fm.service import PREFIXES, FmFace
from mews.emulator.dialects.wire import DialectFace

FACE = DialectFace(FmFace, prefix=PREFIXES, login=True)
