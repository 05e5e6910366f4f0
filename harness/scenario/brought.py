"""What the user brought in the place of ours, and whether it still runs: where it has ended, waiting is in vain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.harness.journal import Journal, Line
from mews.harness.scenario.stack import Stack

_EXTENDER = "extender"
"""Name of the components that are extenders of the user's, before their numbers."""


class BroughtCrash(Struct, frozen=True):
    """A program of the user's that has ended by itself: ``text`` is one line, ``output`` has its last ones."""

    text: str
    output: tuple[str, ...] = ()


class BroughtPrograms:
    """The user's programs in a stack, and by the lines of a journal which of them are down."""

    def __init__(self, stack: Stack, journal: Journal) -> None:
        self._stack = stack
        self._journal = journal
        self._next = 0
        self._crashed: dict[str, Line] = {}

    def crash(self) -> BroughtCrash | None:
        """Return the first of them that has ended by itself and was not started since."""
        if not self._stack.replace and not self._stack.extenders:
            return None
        lines = self._journal.lines(self._next)
        self._next = len(self._journal)
        for line in lines:
            if line.layer != "component":
                continue
            if line.event == "crashed" and self._is_brought(line.actor):
                self._crashed.setdefault(line.actor, line)
            elif line.event != "failed":
                self._crashed.pop(line.actor, None)
        return next((self._described(line.actor, line.fields) for line in self._crashed.values()), None)

    def _is_brought(self, actor: str) -> bool:
        name = actor.partition("/")[0]
        return name in self._stack.replace or (name == _EXTENDER and bool(self._stack.extenders))

    def _described(self, actor: str, fields: Mapping[str, Any]) -> BroughtCrash:
        given = self._stack.replace.get(actor.partition("/")[0])
        where = "stack.extenders" if given is None else given.where
        cause = str(fields.get("cause", "")).removeprefix("ProcessEndedError: ").removeprefix("RequirementError: ")
        return BroughtCrash(f"{actor} ({where}): {cause}", tuple(fields.get("output", ())))
