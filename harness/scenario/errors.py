"""Errors of scenarios.

::

    ScenarioError    bad input: one line with the file, the place in it, the value and what is allowed (exit code 2)
    StepFailedError       a step or metric is not as the scenario says (verdict ``failed``)
    Lacking          this cluster cannot do what the scenario needs (verdict ``skipped``)
"""

from __future__ import annotations

from msgspec import Struct

from mews.harness.journal import Line
from mews.harness.scenario.chain import stop_of


class ScenarioError(ValueError):
    """Bad input; ``str()`` is one line: ``FILE:LINE: PATH: VALUE: what is allowed``."""


class Failure(Struct, frozen=True):
    """Why a step failed: what was awaited, how long, what was seen last, what else happened, what to try. ``crash``: a
    program of the user's has ended, for which nothing was awaited any longer; ``output`` are its last lines. ``line``:
    the journal line that made what was seen instead, as far as one can be told; ``chain``: the last lines about what it
    waits for, where it stops (``stop_of``) nothing more was done about it."""

    awaited: str
    seen: str
    waited_s: float | None = None
    deadlock: bool = False
    related: tuple[str, ...] = ()
    hint: str = ""
    crash: str = ""
    output: tuple[str, ...] = ()
    line: Line | None = None
    chain: tuple[Line, ...] = ()

    @property
    def reason(self) -> str:
        """One line."""
        if self.crash:
            return f"{self.crash}; meanwhile awaited: {self.awaited}"
        if self.deadlock:
            return f"deadlock: nothing can happen any more while waiting for {self.awaited}; seen: {self.seen}"
        if self.waited_s is not None:
            return f"not within {self.waited_s:g} s: {self.awaited}; seen: {self.seen}"
        return f"expected {self.awaited}; seen: {self.seen}"

    @property
    def report(self) -> str:
        """Several lines, for people."""
        parts = [f"ended:   {self.crash}"] if self.crash else []
        parts += [f"printed: {line}" for line in self.output]
        parts += [f"awaited: {self.awaited}", f"seen:    {self.seen}"]
        if self.waited_s is not None:
            parts.append(f"waited:  {self.waited_s:g} s" + (" (nothing can happen any more)" if self.deadlock else ""))
        if self.line is not None:
            parts.append(f"line:    {self.line.number}: {self.line.as_json()}")
        parts += [f"chain:   {line.number}: {line.as_json()}" for line in self.chain]
        stop = stop_of(self.chain)
        if stop is not None:
            parts.append(f"stops:   at line {stop.number}")
        parts += [f"related: {text}" for text in self.related]
        if self.hint:
            parts.append(f"hint:    {self.hint}")
        return "\n".join(parts)


class StepFailedError(Exception):
    """A step did not come out as the scenario says."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class CapabilityError(Exception):
    """The scenario needs something that this way to run does not have; ``str()`` says what."""
