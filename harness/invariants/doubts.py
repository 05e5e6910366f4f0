"""Breaches that wait until their moment is over: a later line of the same moment may explain them."""

from __future__ import annotations

from collections.abc import Sequence

from mews.harness.journal import Line
from mews.kube.system.invariant import Breach


class Doubts:
    """Breaches, each with the line that made it."""

    def __init__(self) -> None:
        self._held: list[tuple[Line, Breach]] = []

    def add(self, line: Line, breach: Breach) -> None:
        """Hold one back."""
        self._held.append((line, breach))

    def explain(self, by: Line) -> None:
        """Drop those of that line's actor and moment."""
        if self._held:
            self._held = [held for held in self._held if (held[0].actor, held[0].t) != (by.actor, by.t)]

    def settled(self, t: float) -> Sequence[Breach]:
        """Return those that nothing has explained in their moment, before ``t``; they are held no more."""
        if not self._held:
            return ()
        held, self._held = self._held, [each for each in self._held if each[0].t >= t]
        return [breach for line, breach in held if line.t < t]
