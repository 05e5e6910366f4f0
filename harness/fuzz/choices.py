"""What a world of chance is made of: choices, each some steps beside those of the scenario."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

Entry = Mapping[str, Any]
"""One step of ``disruptions`` as a scenario file has it."""


class DrawnDisruption(Struct, frozen=True):
    """One thing that befalls a world. ``kind`` is what it is in a word or two, for coverage and reports; ``passing``:
    once it is over, hardware and objects are as they would be without it."""

    kind: str
    entries: tuple[Entry, ...]
    passing: bool = True

    def moved(self, by_s: float) -> DrawnDisruption:
        """Return the same, later or (below 0) earlier; never before its step begins."""
        least = min((entry.get("at", 0.0) for entry in self.entries), default=0.0)
        shift = max(by_s, -least)
        return replace(
            self,
            entries=tuple(
                entry if "line" in entry else {**entry, "at": round(entry.get("at", 0.0) + shift, 3)}
                for entry in self.entries
            ),
        )


class WorldPlan(Struct, frozen=True):
    """A whole world beside its scenario: what befalls it, with which seed, how long it goes on afterwards, and in which
    order what is due at one moment happens."""

    seed: int
    choices: tuple[DrawnDisruption, ...] = ()
    tail_s: float = 60.0
    order: int = 0

    @property
    def entries(self) -> list[Entry]:
        """All steps, in the order of their times as far as those can be compared."""
        found = [entry for choice in self.choices for entry in choice.entries]
        return sorted(
            found, key=lambda entry: (str(entry.get("since", "")), entry.get("line", 0), entry.get("at", 0.0))
        )

    @property
    def passing(self) -> bool:
        """Whether nothing of it lasts."""
        return all(choice.passing for choice in self.choices)

    def key(self) -> str:
        """Alike for worlds that are alike."""
        return json.dumps([self.seed, self.tail_s, self.order, self.entries], sort_keys=True)


def of_kinds(choices: Iterable[DrawnDisruption]) -> str:
    """Return their kinds, for people: ``kill kubelet, slow-operation``."""
    return ", ".join(dict.fromkeys(choice.kind for choice in choices)) or "nothing"
