"""What every invariant looks at, and the shape that all of them have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.excuses import Excuses
from mews.harness.invariants.verdict import Breach
from mews.harness.invariants.world import World
from mews.harness.journal import Line


@dataclass(frozen=True, slots=True)
class Scene:
    """The world after the line at hand."""

    bounds: Bounds = field(default_factory=Bounds)
    world: World = field(default_factory=World)
    excuses: Excuses = field(default_factory=Excuses)


class Invariant(Protocol):
    """One law. ``hear`` judges a line, ``tick`` what must have happened by a time; both may find breaches again."""

    number: int
    name: str

    def hear(self, line: Line, scene: Scene) -> Iterator[Breach]:
        """Breaches that this line makes; the scene has taken the line in."""
        ...

    def tick(self, t: float, scene: Scene) -> Iterator[Breach]:
        """Breaches that the passing of time makes."""
        ...
