"""Bounds of the parameters of faults."""

from __future__ import annotations

LONGEST_S = 3600.0
"""The longest time that a parameter may be, in seconds."""

RECOVERY_S = 15.0
"""How long a client of ours takes at most to begin anew once it may: its longest back-off
(``mews.kube.client.informer``, 10 s), and what follows."""


def check_within(kind: str, name: str, value: float, *, least: float, most: float) -> None:
    """Raise ValueError for a parameter outside of its bounds."""
    if not least <= value <= most:
        raise ValueError(f"fault {kind}: {name} {value:g}: must be from {least:g} to {most:g}")
