"""Many trials in several processes, and the account of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mews.harness.commands.run import load
from mews.harness.scenario.model import Scenario
from tests.crash_points.branches import branched
from tests.crash_points.point import CrashPoint, once_each, pair, single_points
from tests.crash_points.systems import SYSTEMS
from tests.crash_points.trial import Outcome, try_point

SCENARIOS = Path(__file__).parents[2] / "scenarios"
DISTURBED = ("fault", "kill", "start", "restart", "chassis", "host")
"""Steps by which a scenario disturbs itself: its own lines say what those do."""
USUAL = SYSTEMS["kubecomp"]
"""The reconfigurations that ``make crash-points`` tries."""
BROKEN = SYSTEMS["remediation"]
"""Scenarios that are about a GPU that breaks: the fault is their beginning."""
MIXED = SYSTEMS["mixed"]
"""The worlds with pods of all systems."""


@dataclass(frozen=True, slots=True)
class Base:
    """A scenario as it goes where nothing crashes: where its crash points come from."""

    scenario: Scenario
    outcome: Outcome

    def points(self) -> list[CrashPoint]:
        """All single crashes."""
        lines = self.outcome.lines[self.outcome.first : self.outcome.last]
        return list(single_points(self.scenario.name, lines, self.outcome.components))

    def once_each(self, seed: int) -> list[CrashPoint]:
        """Each component at each line once, away for a time drawn by seed."""
        lines = self.outcome.lines[self.outcome.first : self.outcome.last]
        return list(once_each(self.scenario.name, lines, self.outcome.components, seed))

    def pair(self, rng: random.Random) -> CrashPoint:
        """Two crashes and a fault, drawn."""
        lines = self.outcome.lines[self.outcome.first : self.outcome.last]
        return pair(self.scenario.name, lines, self.outcome.components, rng)


@dataclass(slots=True)
class Account:
    """What became of all trials of one scenario."""

    name: str
    trials: int = 0
    ran: int = 0
    excused: int = 0
    unreached: int = 0
    idle: int = 0
    failures: list[tuple[CrashPoint, tuple[str, ...]]] = field(default_factory=list)

    def add(self, point: CrashPoint, outcome: Outcome) -> None:
        """One more."""
        self.trials += 1
        self.ran += len(outcome.ran)
        self.excused += len(outcome.excused)
        self.unreached += len(point.incidents) - outcome.reached
        self.idle += outcome.idle
        if outcome.problems:
            self.failures.append((point, outcome.problems))

    def __str__(self) -> str:
        return (
            f"{self.name:24} {self.trials:6} trials {self.ran:6} pods ran {self.excused:5} said why not "
            f"{self.unreached:4} incidents not reached {self.idle:4} faults met nothing {len(self.failures):4} failed"
        )


def bases(wanted: Sequence[str], *, seed: int = 1) -> list[Base]:
    """The scenarios of these names, or all reconfigurations that the shipped ones have: undisturbed, and (unless it is
    named) with a GPU that moves.

    Raises ValueError for a name that is none.
    """
    every = not wanted
    found = []
    for scenario in load([SCENARIOS]):
        disturbed = any(step.action in DISTURBED for step in scenario.steps) and scenario.name not in BROKEN
        if disturbed or scenario.workload is not None or not (every or scenario.name in wanted):
            continue
        outcome = try_point(scenario, CrashPoint(scenario.name, ()), seed=seed)
        if every and not any(line.event == "detach-begun" for line in outcome.lines):
            continue
        if outcome.problems:
            raise ValueError(f"{scenario.name}: goes wrong by itself: {'; '.join(outcome.problems)}")
        found.append(Base(scenario, outcome))
    unknown = [name for name in wanted if name not in {base.scenario.name for base in found}]
    if unknown:
        raise ValueError(f"{unknown[0]}: no scenario of that name that nothing disturbs")
    return found


def pairs(among: Sequence[Base], count: int, *, seed: int = 1) -> list[CrashPoint]:
    """So many pairs of crashes, drawn by seed."""
    rng = random.Random(f"{seed}/pairs")
    return [rng.choice(among).pair(rng) for _ in range(count)]


def sample(points: Sequence[CrashPoint], count: int, *, seed: int = 1) -> list[CrashPoint]:
    """So many of them, drawn by seed, in their order."""
    rng = random.Random(f"{seed}/sample")
    drawn = sorted(rng.sample(range(len(points)), min(count, len(points))))
    return [points[index] for index in drawn]


def outcomes(
    among: Sequence[Base],
    points: Sequence[CrashPoint],
    *,
    jobs: int = 1,
    seed: int = 1,
    on_tick: Callable[[int], None] = lambda _: None,
) -> Iterator[tuple[CrashPoint, Outcome]]:
    """Try them all, those of one scenario after those of another; ``on_tick`` is called with how many are done."""
    found: dict[int, Outcome] = {}
    for base in among:
        own = [number for number, point in enumerate(points) if point.scenario == base.scenario.name]

        def keep(place: int, outcome: Outcome, own: Sequence[int] = own) -> None:
            found[own[place]] = replace(outcome, lines=(), idle=_idle(outcome))
            on_tick(len(found))

        own_points = [points[number] for number in own]
        branched(base.scenario, own_points, pending=base.outcome.excused, seed=seed, jobs=jobs, on_result=keep)
        yield from ((points[number], found[number]) for number in own)


def _idle(outcome: Outcome) -> int:
    """How many faults were added and met no operation that they could strike."""
    faults = [line for line in outcome.lines if line.layer == "fault"]
    added = {(line.actor, line.fields["fault"]) for line in faults if line.event == "added"}
    return len(added - {(line.actor, line.fields["fault"]) for line in faults if line.event == "fired"})


class Clock:
    """Says every ten seconds how far it is."""

    def __init__(self, total: int, write: Callable[[str], None]) -> None:
        self._total = total
        self._write = write
        self._next_s = time.monotonic() + 10

    def __call__(self, done: int) -> None:
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + 10
            self._write(f"{done} of {self._total}\n")
