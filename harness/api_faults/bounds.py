"""Bounds of the parameters of faults."""

from __future__ import annotations

LONGEST_S = 3600.0
"""The longest time that a parameter may be, in seconds."""


def check_within(kind: str, name: str, value: float, *, least: float, most: float) -> None:
    """Raise ValueError for a parameter outside of its bounds."""
    if not least <= value <= most:
        raise ValueError(f"fault {kind}: {name} {value:g}: must be from {least:g} to {most:g}")
