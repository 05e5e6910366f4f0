"""Configuration manager and layout-apply as a dialect of the emulator."""

from __future__ import annotations

from mews.emulator.dialects.cdim.service import PREFIX, CdimFace
from mews.emulator.dialects.wire import DialectFace

FACE = DialectFace(CdimFace, prefix=PREFIX)
