"""Drawing worlds in rounds: each has a seed and a memory of its own, so that rounds may run anywhere and in any order
and find the same.

Worlds are drawn by seed, some by changing one that went where none had been. Hypothesis was tried for it and covers
half as much in as many worlds (``benchmarks/fuzz.py``): it goes for small and repeated values, where a world needs
what it did not have yet.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations

from msgspec import Struct, field

from mews.harness.fuzz.choices import DrawnDisruption, WorldPlan
from mews.harness.fuzz.menu import Menu
from mews.harness.fuzz.world import Player, Problem
from mews.kube.clock import stream

WORLDS = 10
"""In one round."""
_CHANGED = 0.25
"""So often a world is one of this round that went where none had been, changed."""


class FoundProblem(Struct, frozen=True):
    """A problem, the world that has it, and the number of that world in its search, from 1 on."""

    problem: Problem
    plan: WorldPlan
    world: int


class FuzzRound(Struct, frozen=True):
    """What one round of a search found: the first world of each problem, all that was gone through, and why worlds were
    skipped."""

    number: int
    worlds: int
    found: tuple[FoundProblem, ...]
    features: frozenset[str]
    skipped: tuple[str, ...] = ()


class _Search(Struct):
    """One round as it goes on."""

    menu: Menu
    player: Player
    first: int
    """Worlds before this round."""
    worlds: int = 0
    found: dict[str, FoundProblem] = field(default_factory=dict)
    features: set[str] = field(default_factory=set)
    kept: list[WorldPlan] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def try_next(self, rng: random.Random) -> int:
        """Play one world; how much of it was new."""
        if self.kept and rng.random() < _CHANGED:
            plan = self.menu.changed(rng.choice(self.kept), rng)
        else:
            plan = self.menu.plan(rng)
        return self.play(plan)

    def play(self, plan: WorldPlan) -> int:
        self.worlds += 1
        world = self.player.play(plan)
        if world.skipped:
            self.skipped.append(world.skipped)
        for problem in world.problems:
            self.found.setdefault(problem.key, FoundProblem(problem, plan, self.first + self.worlds))
        new = len(world.features - self.features)
        if new and not world.problems:
            self.kept.append(plan)
        self.features |= world.features
        return new

    def ended(self, number: int) -> FuzzRound:
        found = tuple(self.found.values())
        return FuzzRound(number, self.worlds, found, frozenset(self.features), tuple(self.skipped))


def play_round(menu: Menu, player: Player, seed: int, number: int, most: int = WORLDS) -> FuzzRound:
    """Return the ``number``-th round of that search, from 0 on, of so many worlds."""
    search, rng = _Search(menu, player, number * WORLDS), stream(seed, f"fuzz/{number}")
    while search.worlds < most:
        search.try_next(rng)
    return search.ended(number)


def crashes(lines: range, components: tuple[str, ...], at_once: int) -> Iterator[tuple[DrawnDisruption, ...]]:
    """Yield every component restarted as each of those lines is written; or any two such crashes."""
    single = [
        DrawnDisruption(f"kill {component.partition('/')[0]}", ({"line": line, "restart": component},))
        for line in lines
        for component in components
    ]
    yield from combinations(single, at_once)


def play_all(menu: Menu, player: Player, number: int, choices: list[tuple[DrawnDisruption, ...]]) -> FuzzRound:
    """Return a round of these worlds."""
    search = _Search(menu, player, number * WORLDS)
    for each in choices:
        search.play(WorldPlan(menu.scenario.seed, each))
    return search.ended(number)
