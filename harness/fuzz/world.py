"""Playing one world, and what it came to: what is wrong with it, and what it went through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.harness.engine import Engine
from mews.harness.fuzz.choices import WorldPlan
from mews.harness.fuzz.menu import Moments
from mews.harness.journal import Line
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.disruption import Disruption
from mews.harness.scenario.model import Scenario

QUIET_S = 30.0
"""Half of the shortest tail: what was disturbed has the first half to come to rest."""


class Problem(Struct, frozen=True):
    """What is wrong with a world. ``key`` is alike for what is likely one bug: the law and the sort of line that broke
    it. ``line`` and ``after`` are journal lines by number: what broke it, and what it should have come after."""

    key: str
    what: str
    invariant: int | None = None
    line: int | None = None
    after: int | None = None


class World(Struct, frozen=True):
    """A world that was played. ``features``: what it went through, for coverage. ``skipped``: why it could not be
    played."""

    problems: tuple[Problem, ...]
    features: frozenset[str]
    virtual_s: float
    lines: int
    skipped: str = ""


class Player(Struct, frozen=True):
    """Plays worlds of one scenario. ``waits``: in worlds of which nothing lasts, the scenario's waits decide, too."""

    scenario: Scenario
    waits: bool = False
    oracles: tuple[str, ...] = ()

    def scenario_of(self, plan: WorldPlan) -> Scenario:
        """Return the scenario with all that befalls it."""
        own = self.scenario
        added = tuple(Disruption.model_validate(entry) for entry in plan.entries)
        return own.model_copy(
            update={
                "seed": plan.seed,
                "disruptions": (*own.disruptions, *added),
                "judged_by": self.judged_by(plan),
                "tail": max(own.tail, plan.tail_s),
                "quiet": self.quiet_s(plan),
                "order": plan.order or own.order,
                "invariants": tuple(dict.fromkeys((*own.invariants, *self.oracles))),
            }
        )

    def judged_by(self, plan: WorldPlan) -> str:
        """Return what decides in that world."""
        return "waits" if self.waits and plan.passing else "laws"

    def quiet_s(self, plan: WorldPlan) -> float:
        """Return how long that world must be quiet at its end: only where nothing lasts."""
        return max(self.scenario.quiet, QUIET_S) if plan.passing else self.scenario.quiet

    def run(self, plan: WorldPlan) -> Run:
        """Play it as ``mews run`` does."""
        return Engine(RunOptions()).attempt(self.scenario_of(plan), plan.seed)

    def play(self, plan: WorldPlan) -> World:
        """Play it, and say what it came to."""
        run = self.run(plan)
        result = run.result
        skipped = result.reason if result.verdict == "skipped" else ""
        virtual_s = float(result.virtual_s or 0.0)
        return World(tuple(problems_of(run)), features_of(run.lines), virtual_s, len(run.lines), skipped)

    def moments(self) -> tuple[Run, Moments]:
        """Return the scenario as it is, judged by all of its checks, and when its steps began."""
        run = Engine(RunOptions()).attempt(self.scenario, self.scenario.seed)
        begun = [line for line in run.lines if line.layer == "step" and line.event == "begun"]
        first_s = begun[0].t if begun else 0.0
        count = len(self.scenario.steps)
        begins = [
            (str(line.fields.get("name", "")), round(line.t - first_s, 3))
            for line in begun
            if 0 < line.fields["step"] <= count
        ]
        return run, Moments(tuple(begins) or (("", 0.0),))


def problems_of(run: Run) -> Iterable[Problem]:
    """Return what is wrong with a run, once each."""
    result = run.result
    found: dict[str, Problem] = {}
    for violation in result.violations:
        if not violation.get("expected"):
            problem = _of_violation(violation)
            found.setdefault(problem.key, problem)
    if found:
        return found.values()
    if result.verdict == "failed" and not result.reason.startswith("invariant "):
        line = (result.failure or {}).get("line") or {}
        return (Problem(f"check {_sort_of(result.reason)}", result.reason, line=line.get("line")),)
    if result.verdict == "error":
        return (Problem(f"error {_sort_of(result.reason)}", result.reason),)
    return ()


def _of_violation(violation: Mapping[str, Any]) -> Problem:
    first, after = violation.get("first") or {}, violation.get("after") or {}
    kind = str(first.get("actor", "")).partition("/")[0]
    number = int(violation["invariant"])
    sort = " ".join(filter(None, (f"invariant {number}", kind, str(first.get("event", "")))))
    return Problem(sort, f"{violation['name']}: {violation['what']}", number, first.get("line"), after.get("line"))


def _sort_of(reason: str) -> str:
    """Return a reason without what differs from world to world."""
    return " ".join(reason.split("seen:")[0].split()[:6]).rstrip(":;")


def features_of(lines: Sequence[Line]) -> frozenset[str]:
    """Return what a run went through: which kinds of line came after which, and what was going on when each fault
    struck or component ended."""
    found: set[str] = set()
    before = busy = ""
    for line in lines:
        kind = line.actor.partition("/")[0]
        name = f"{kind} {line.event}"
        if line.layer == "step":
            continue
        if line.layer == "fault":
            found.add(f"{line.event} {line.fields.get('kind', '')} while {busy}")
        elif line.layer == "component":
            found.add(f"{name} while {busy}")
        else:
            if line.layer in ("chassis", "kubelet", "api"):
                busy = name
            found.add(f"{before} then {name}")
            before = name
    return frozenset(found)
