"""What the systems of a run bring to its judge."""

from __future__ import annotations
