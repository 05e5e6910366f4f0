"""Bounds of the parameters of faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

LONGEST_S = 3600.0
"""The longest time that a parameter may be, in seconds."""

RECOVERY_S = 15.0
"""How long a client of ours takes at most to begin anew once it may: its longest back-off
(``mews.kube.client.informer``, 10 s), and what follows."""


def check_within(kind: str, name: str, value: float, *, least: float, most: float) -> None:
    """Raise ValueError for a parameter outside of its bounds."""
    if not least <= value <= most:
        raise ValueError(f"fault {kind}: {name} {value:g}: must be from {least:g} to {most:g}")


@dataclass(frozen=True, slots=True)
class Delayed:
    """What faults have in common by which something comes up to ``by_s`` late."""

    by_s: float = 10.0
    resource: str | None = None

    kind: ClassVar[str]
    may_break: ClassVar[tuple[int, ...]] = ()

    def __post_init__(self) -> None:
        check_within(self.kind, "by_s", self.by_s, least=0, most=LONGEST_S)

    @property
    def grace_s(self) -> float:
        """Until what was late has come, and a while after."""
        return RECOVERY_S + self.by_s
