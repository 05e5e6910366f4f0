"""From a world that has a problem to the smallest one that has it still.

Hypothesis shrinks what it drew; here the plan itself is made smaller, since it is the plan that users read, one round
may find several problems, and the time that shrinking takes must end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from mews.harness.fuzz.choices import DrawnDisruption, WorldPlan
from mews.harness.fuzz.world import Problem, World

MOST = 400
"""Worlds that are played for one problem."""
TAIL_S = 60.0
"""The shortest time for which worlds go on."""
_WHEN = ("at", "since", "line")
_NEEDED = ("kind", "device", "edit", "port", "xid", "arrow", "expires_s")
"""Parameters of a fault without which it is none, or another, or never ends."""


class Smallest(Struct, frozen=True):
    """What a problem was shrunk to: the smallest world, the problem as it is there, and how many worlds were played.
    ``whole``: nothing of it can be left out."""

    plan: WorldPlan
    problem: Problem
    worlds: int
    whole: bool


class _Shrinking(Struct):
    play: Callable[[WorldPlan], World]
    key: str
    plan: WorldPlan
    problem: Problem
    seen: set[str] = field(default_factory=set)
    worlds: int = 0

    def better(self, plan: WorldPlan) -> bool:
        """Return whether that world has the problem, too; it is the one at hand then."""
        name = plan.key()
        if name in self.seen or self.worlds >= MOST:
            return False
        self.seen.add(name)
        self.worlds += 1
        found = next((each for each in self.play(plan).problems if each.key == self.key), None)
        if found is None:
            return False
        self.plan, self.problem = plan, found
        return True

    def halves(self) -> None:
        """Leave out as many choices at once as can be."""
        size = len(self.plan.choices)
        while size >= 1:
            start = 0
            while start < len(self.plan.choices):
                kept = self.plan.choices[:start] + self.plan.choices[start + size :]
                if not self.better(replace(self.plan, choices=kept)):
                    start += size
            size //= 2

    def simpler(self) -> bool:
        """Make one choice simpler; whether any could be."""
        for place, choice in enumerate(self.plan.choices):
            for other in simpler_than(choice):
                choices = (*self.plan.choices[:place], other, *self.plan.choices[place + 1 :])
                if self.better(replace(self.plan, choices=choices)):
                    return True
        return False


def shrink(play: Callable[[WorldPlan], World], plan: WorldPlan, problem: Problem) -> Smallest:
    """Return the smallest world that has that problem."""
    work = _Shrinking(play, problem.key, plan, problem)
    if plan.tail_s > TAIL_S:
        work.better(replace(plan, tail_s=TAIL_S))
    if plan.order:
        work.better(replace(work.plan, order=0))
    work.halves()
    while work.simpler():
        pass
    work.halves()
    return Smallest(work.plan, work.problem, work.worlds, work.worlds < MOST)


def simpler_than(choice: DrawnDisruption) -> Iterator[DrawnDisruption]:
    """Yield what says less or is rounder than that choice, the simplest first."""
    entries = choice.entries
    if len(entries) == 2 and "kill" in entries[0] and "start" in entries[1]:
        when = {key: value for key, value in entries[0].items() if key in _WHEN}
        yield replace(choice, entries=({**when, "restart": entries[0]["kill"]},))
        for away_s in (1.0, 5.0, 45.0):
            if entries[1]["at"] - entries[0]["at"] > away_s:
                yield replace(choice, entries=(entries[0], {**entries[1], "at": round(entries[0]["at"] + away_s, 3)}))
        yield replace(choice, entries=entries[:1])
    elif len(entries) > 1:
        for place in range(len(entries)):
            yield replace(choice, entries=(*entries[:place], *entries[place + 1 :]))
    for place, entry in enumerate(entries):
        for other in _plainer(entry):
            yield replace(choice, entries=(*entries[:place], other, *entries[place + 1 :]))
    at_s = entries[0].get("at", 0.0)
    for rounder_s in (0.0, 1.0, 10.0, float(int(at_s)), round(at_s, 1)):
        if rounder_s < at_s:
            yield choice.moved(rounder_s - at_s)


def _plainer(entry: Any) -> Iterator[Any]:
    """Yield a fault with a parameter less."""
    spec = entry.get("fault", {}).get("add")
    for key in [key for key in spec or {} if key not in _NEEDED]:
        less = {name: value for name, value in spec.items() if name != key}
        yield {**entry, "fault": {**entry["fault"], "add": less}}
