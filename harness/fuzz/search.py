"""A whole search: rounds over all scenarios until the budget is spent, then each problem is made small and written."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from mews.harness.errors import BadInputError, RequirementError
from mews.harness.fuzz.api_faults import API_KINDS
from mews.harness.fuzz.faults import KINDS
from mews.harness.fuzz.files import FuzzFinding, as_document, plan_of, write_finding
from mews.harness.fuzz.menu import WORDS, Menu
from mews.harness.fuzz.rounds import WORLDS, FoundProblem, FuzzRound, crashes, play_all, play_round
from mews.harness.fuzz.shrinking import Smallest, shrink
from mews.harness.fuzz.world import Player, Problem
from mews.harness.invariant_registry import INVARIANTS
from mews.harness.report.run import Run
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.quantity import seconds_of
from mews.harness.worker_pool import WorkerPool
from mews.names import must_be
from mews.own_files import make_own_folder, write_own
from mews.registry import NotRegisteredError, looking_in

STATE = "search.json"
_MOST_ROUNDS = 100_000


class FuzzBudget(Struct, frozen=True):
    """How much is searched: so many worlds, or so many seconds."""

    worlds: int | None = None
    seconds: float | None = None


def budget_of(text: str) -> FuzzBudget:
    """``200`` worlds, or a time such as ``60s`` or ``5m``.

    Raises BadInputError.
    """
    if text.isascii() and text.isdecimal() and int(text) > 0:
        return FuzzBudget(worlds=int(text))
    try:
        seconds = seconds_of(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise BadInputError(f"--budget {text}: must be a number of worlds, such as 500, or a time, such as 60s or 5m")
    return FuzzBudget(seconds=seconds)


def kinds_of(given: Sequence[str]) -> tuple[str, ...]:
    """Return what ``--without`` takes: a kind of choice, or the kind of a fault.

    Raises BadInputError.
    """
    allowed = (*WORDS, *KINDS, *API_KINDS)
    for name in given:
        if name not in allowed:
            raise BadInputError(f"--without {name}: {must_be(name, allowed)}")
    words = {**{kind: f"fault {kind}" for kind in KINDS}, **{kind: f"api-fault {kind}" for kind in API_KINDS}}
    return tuple(words.get(name, name) for name in given)


class FuzzOptions(Struct, frozen=True):
    """What a search is told. ``systematic``: no chance, but every component killed at every line (1), or any two such
    crashes (2)."""

    budget: FuzzBudget
    seed: int = 1
    jobs: int = 1
    waits: bool = False
    oracles: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    systematic: int = 0


class FuzzTarget(Struct):
    """One scenario that is searched."""

    player: Player
    menu: Menu
    clean: Run
    worlds: int = 0
    skipped: list[str] = field(default_factory=list)
    features: set[str] = field(default_factory=set)
    found: dict[str, FoundProblem] = field(default_factory=dict)


class FuzzProgress(Struct, frozen=True):
    """How far a search is."""

    worlds: int
    features: int
    found: int
    seconds: float


Observe = Callable[[FuzzProgress], None]


def target_of(scenario: Scenario, asked: FuzzOptions) -> FuzzTarget:
    """Return the scenario with what may befall it.

    Raises BadInputError for one that does not pass as it is, and where nothing is left to draw; RequirementError for
    one that is skipped.
    """
    player = Player(scenario, asked.waits, asked.oracles)
    with looking_in(scenario.folder):
        for name in asked.oracles:
            try:
                INVARIANTS.find(name)
            except NotRegisteredError as error:
                raise BadInputError(f"--oracle {name}: {error}") from None
    clean, moments = player.moments()
    if clean.lacks or clean.result.verdict == "skipped":
        raise RequirementError(f"{scenario.path}: skipped: {clean.result.reason}")
    if clean.result.verdict != "passed":
        raise BadInputError(f"{scenario.path}: fails before any fault is added: {clean.result.reason}")
    menu = Menu.of(scenario, moments, asked.without)
    if not menu.kinds():
        raise BadInputError(f"{scenario.path}: --without leaves nothing to draw")
    return FuzzTarget(player, menu, clean)


class Search:
    """Rounds over targets, in turn. ``resumed`` goes on with what a search before wrote into the folder."""

    def __init__(self, targets: Sequence[FuzzTarget], asked: FuzzOptions, folder: Path, observe: Observe) -> None:
        self.targets = targets
        self._asked = asked
        self._folder = folder
        self._observe = observe
        self._rounds = 0
        self._began_s = time.monotonic()

    @property
    def worlds(self) -> int:
        """How many were played."""
        return sum(each.worlds for each in self.targets)

    def resume(self) -> None:
        """Take up the state that was written.

        Raises BadInputError for that of another search.
        """
        path = self._folder / STATE
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise BadInputError(f"--resume: {path}: cannot be read: {error}") from None
        if state.get("search") != self._name():
            raise BadInputError(f"--resume: {path}: belongs to another search: scenarios, options or seed differ")
        self._rounds = state["rounds"]
        for target, kept in zip(self.targets, state["targets"], strict=True):
            target.worlds, target.features = kept["worlds"], set(kept["features"])
            target.skipped = kept.get("skipped", [])
            for each in kept["found"]:
                problem = Problem(**each["problem"])
                target.found[problem.key] = FoundProblem(problem, plan_of(each["plan"]), each["world"])

    def run(self) -> None:
        """Play rounds until the budget is spent; the state is written after each."""
        make_own_folder(self._folder)
        self._began_s = time.monotonic()
        plan = self._plan()
        with closing(self._played(plan)) as played:
            for number, ended in enumerate(played, start=self._rounds):
                self._take(self.targets[number % len(self.targets)], ended)
                self._rounds = number + 1
                self._write()
                self._show_progress()
                if self._is_over():
                    return

    def _take(self, target: FuzzTarget, ended: FuzzRound) -> None:
        target.worlds += ended.worlds
        target.skipped += ended.skipped
        target.features |= ended.features
        for each in ended.found:
            target.found.setdefault(each.problem.key, each)

    def _is_over(self) -> bool:
        seconds = self._asked.budget.seconds
        return seconds is not None and time.monotonic() - self._began_s >= seconds

    def _plan(self) -> Sequence[Callable[[], FuzzRound]]:
        """Return the rounds that are still to be played."""
        if self._asked.systematic:
            return self._systematic()
        size, budget = WORLDS, self._asked.budget.worlds
        most = _MOST_ROUNDS if budget is None else min(_MOST_ROUNDS, -(-budget // size))
        sizes = [size if budget is None else min(size, budget - number * size) for number in range(most)]
        return [partial(self._drawn, number, worlds) for number, worlds in enumerate(sizes)][self._rounds :]

    def _drawn(self, number: int, most: int) -> FuzzRound:
        target = self.targets[number % len(self.targets)]
        return play_round(target.menu, target.player, self._asked.seed, number // len(self.targets), most)

    def _systematic(self) -> Sequence[Callable[[], FuzzRound]]:
        rounds: list[Callable[[], FuzzRound]] = []
        batches = [self._batches(target) for target in self.targets]
        while len(rounds) < _MOST_ROUNDS and any(batch := [list(islice(each, WORLDS)) for each in batches]):
            number = len(rounds) // len(batches)
            for target, worlds in zip(self.targets, batch, strict=True):
                rounds.append(partial(play_all, target.menu, target.player, number, worlds))
        return rounds[self._rounds :]

    def _batches(self, target: FuzzTarget) -> Iterator[Any]:
        begun = [line.number for line in target.clean.lines if line.layer == "step" and line.number >= 0]
        lines = [line.number for line in target.clean.lines if begun and begun[0] <= line.number]
        every = crashes(range(lines[0], lines[-1] + 1), target.menu.components, self._asked.systematic)
        most = self._asked.budget.worlds
        return every if most is None else islice(every, most // len(self.targets))

    def _played(self, plan: Sequence[Callable[[], FuzzRound]]) -> Generator[FuzzRound]:
        jobs = min(self._asked.jobs, len(plan))
        if jobs <= 1:
            yield from (each() for each in plan)
            return
        pool = WorkerPool(
            lambda number: plan[number](),
            jobs=jobs,
            lost=_lost,
            on_tick=self._show_progress,
        )
        yield from pool.run(len(plan))

    def _show_progress(self) -> None:
        self._observe(
            FuzzProgress(
                self.worlds,
                sum(len(each.features) for each in self.targets),
                sum(len(each.found) for each in self.targets),
                time.monotonic() - self._began_s,
            )
        )

    def _name(self) -> str:
        asked = self._asked
        parts = [asked.seed, asked.waits, asked.oracles, asked.without, asked.overrides, asked.systematic]
        files = [hashlib.sha256(Path(str(each.menu.scenario.path)).read_bytes()).hexdigest() for each in self.targets]
        return hashlib.sha256(json.dumps([parts, files]).encode()).hexdigest()[:16]

    def _write(self) -> None:
        targets = [
            {
                "scenario": each.menu.scenario.name,
                "worlds": each.worlds,
                "skipped": each.skipped,
                "features": sorted(each.features),
                "found": [
                    {"problem": _fields(one.problem), "plan": as_document(one.plan), "world": one.world}
                    for one in each.found.values()
                ],
            }
            for each in self.targets
        ]
        state = {"search": self._name(), "rounds": self._rounds, "targets": targets}
        write_own(self._folder / STATE, json.dumps(state) + "\n")

    def findings(self) -> Iterator[tuple[FuzzFinding, Run, Path]]:
        """Make each problem small, and write it down; what one world shows is one finding."""
        found = [(target, each) for target in self.targets for each in target.found.values()]
        alike: dict[tuple[str, str], tuple[FuzzTarget, FuzzFinding]] = {}
        for (target, each), small in zip(found, self._shrunk(found), strict=True):
            name = target.menu.scenario.name
            finding = FuzzFinding(name, small.problem, small.plan, each.world, small.worlds, small.whole)
            before = alike.get((name, small.plan.key()))
            alike[name, small.plan.key()] = target, finding if before is None else _joined(before[1], finding)
        taken: set[str] = set()
        for target, finding in alike.values():
            others = (f"{finding.slug}-{number}" for number in count(2))
            slug = next(slug for slug in chain((finding.slug,), others) if slug not in taken)
            taken.add(slug)
            run = write_finding(finding, target.player, self._asked.overrides, self._folder / slug)
            yield finding, run, self._folder / slug

    def _shrunk(self, found: Sequence[tuple[FuzzTarget, FoundProblem]]) -> Iterator[Smallest]:
        def one(number: int) -> Smallest:
            target, each = found[number]
            return shrink(target.player.play, each.plan, each.problem)

        if self._asked.jobs <= 1 or len(found) < 2:
            return map(one, range(len(found)))
        pool = WorkerPool(
            one,
            jobs=min(self._asked.jobs, len(found)),
            lost=lambda number, reason: Smallest(found[number][1].plan, found[number][1].problem, 0, False),
            on_tick=self._show_progress,
        )
        return pool.run(len(found))


def _lost(number: int, reason: str) -> FuzzRound:
    """Worlds that were not played are not passed over: the search ends, and may be resumed."""
    raise RequirementError(f"round {number + 1} of the search was lost: {reason}; --resume continues it")


def _joined(one: FuzzFinding, other: FuzzFinding) -> FuzzFinding:
    """Return two problems of one world as one, which is called by that whose line comes first."""
    first, second = sorted((one, other), key=lambda each: math.inf if each.problem.line is None else each.problem.line)
    also = (*first.also, second.problem, *second.also)
    return replace(first, also=also, worlds=min(one.worlds, other.worlds), shrunk=one.shrunk + other.shrunk)


def _fields(problem: Problem) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in problem.__struct_fields__}
