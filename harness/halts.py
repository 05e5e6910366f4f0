"""Where a run in virtual time stops, to be looked at: ``mews run --break-at``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from mews.harness.errors import BadInputError
from mews.harness.journal import Journal, Line

VIOLATION = "violation"
STEP = "step:"
ALLOWED = f"the number of a journal line, the name of a step, {STEP}NUMBER or {VIOLATION}"


class BreakPlace(Struct, frozen=True):
    """One place of a run; one of ``line`` (as journals number them, the first is 0), ``step`` (from 1) and ``name``
    (a step's) is set, or none for the first violation."""

    text: str
    line: int | None = None
    step: int | None = None
    name: str = ""

    def is_reached(self, line: Line) -> bool:
        """Return whether the run is there as that line is written. A step's place is its begin: it has done nothing
        yet."""
        if self.line is not None:
            return line.number >= self.line
        if self.step is None and not self.name:
            return (line.layer, line.event) == ("invariant", "violated")
        if (line.layer, line.event) != ("step", "begun"):
            return False
        return line.fields["step"] == self.step or (bool(self.name) and line.fields.get("name") == self.name)


def break_place(text: str) -> BreakPlace:
    """Return that of ``--break-at``.

    Raises BadInputError for what is no place at all.
    """
    if text.isdecimal():
        return BreakPlace(text, line=int(text))
    if text == VIOLATION:
        return BreakPlace(text)
    number = text.removeprefix(STEP)
    if number != text:
        if not number.isdecimal() or int(number) < 1:
            raise BadInputError(f"--break-at {text}: must be {STEP}NUMBER, and the first step has number 1")
        return BreakPlace(text, step=int(number))
    if not text.strip() or text.startswith("-"):
        raise BadInputError(f"--break-at {text!r}: must be {ALLOWED}")
    return BreakPlace(text, name=text)


class Halt(Struct, frozen=True):
    """``place``, and what is called there with the line and the world that stands still; the run goes on when it
    returns."""

    place: BreakPlace
    stand: Callable[[Line, Any], None]

    def watch(self, journal: Journal, world: Any, hold_next: Callable[[Callable[[], None]], None]) -> None:
        """Have it called once, at the first line at the place; ``hold_next`` is that of the run's loop."""
        waiting = True

        def look(line: Line) -> None:
            nonlocal waiting
            if waiting and self.place.is_reached(line):
                waiting = False
                hold_next(lambda: self.stand(line, world))

        for line in journal.lines():
            look(line)
        journal.listen(look)
