"""The fixed set of worlds, how one is played, and what a run says of itself."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from tests.planted.rooms import ROOT

RANDOM = 50
"""Random worlds: ten schedules of faults for each of the sweeps' systems."""
HANGS_S = 20.0
"""A world that takes longer hangs, and has found nothing: nobody would be told."""

_SEEN_AFTERWARDS = re.compile(r',"paper":"[^"]*"')
"""Where a paper's figure has a line is known once the run has ended: no difference that a fault made by then."""

Function = tuple[str, int]


@dataclass(frozen=True, slots=True)
class World:
    """``scenario`` is a path below scenarios/, or the name of a case of ``tests.oracle``."""

    scenario: str
    seed: int

    @property
    def is_random(self) -> bool:
        return self.scenario.startswith("schedule:")

    def __str__(self) -> str:
        return self.scenario if self.is_random else f"{self.scenario} seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Citation:
    """A line that a verdict names as ``first``, ``after`` or ``overdue``, and by which law or check."""

    line: int
    by: str


@dataclass(frozen=True, slots=True)
class Played:
    """A world's run. ``lines`` as JSON; ``alarm``: what a user is told is wrong, "" where nothing; ``functions`` that
    ran, where they were traced."""

    lines: tuple[str, ...]
    objects: tuple[frozenset[str], ...]
    alarm: str
    citations: tuple[Citation, ...]
    took_s: float
    functions: frozenset[Function] = frozenset()


class Hangs(BaseException):
    """A world goes on and on in one moment of virtual time."""


def fixed_set(seeds: Sequence[int] = (1, 2, 3)) -> list[World]:
    """Every shipped scenario that runs in virtual time with each seed, and the random worlds."""
    from tests.oracle.worlds import SYSTEMS

    folder = ROOT / "scenarios"
    shipped = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.yaml") if _is_scenario(path))
    found = [World(name, seed) for seed in seeds for name in shipped]
    random = (World(f"schedule:{system}:{number + 1}", 1) for number in range(RANDOM // 5) for system in SYSTEMS)
    return [*found, *random]


def _is_scenario(path: Path) -> bool:
    return "kind: Scenario" in path.read_text(encoding="utf-8")


def play(world: World, *, trace: bool = False, limit_s: float = HANGS_S) -> Played | None:
    """Play it once; None for one that is skipped.

    Raises Hangs.
    """
    began_s = time.process_time()
    functions: set[Function] = set()
    with _at_most(limit_s), _tracing(functions if trace else None):
        seen = _case(world) if world.is_random else _scenario(world)
    if seen is None:
        return None
    lines, alarm, citations = seen
    took_s = time.process_time() - began_s
    written = tuple(_SEEN_AFTERWARDS.sub("", line.as_json()) for line in lines)
    return Played(written, tuple(map(objects_of, lines)), alarm, citations, took_s, frozenset(functions))


@contextmanager
def _at_most(limit_s: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise Hangs

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _tracing(into: set[Function] | None) -> Iterator[None]:
    if into is None:
        yield
        return
    seen: set[Any] = set()

    def call(frame: FrameType, event: str, argument: object) -> None:
        seen.add(frame.f_code)

    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(None)
        root = f"{ROOT}{os.sep}"
        into.update(
            (code.co_filename.removeprefix(root), code.co_firstlineno)
            for code in seen
            if code.co_filename.startswith(root)
        )


def _scenario(world: World) -> Any:
    from mews.harness.engine import Engine
    from mews.harness.options import RunOptions
    from mews.harness.scenario.loader import load_scenario

    logging.getLogger("mews").setLevel(logging.CRITICAL + 1)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    scenario = load_scenario(ROOT / "scenarios" / world.scenario)
    run = Engine(RunOptions()).attempt(scenario, world.seed)
    result = run.result
    if result.verdict == "skipped":
        return None
    alarm = "" if result.verdict == "passed" else f"{result.verdict}: {result.reason.strip()}"[:300]
    # A violation that the scenario expects, or that is known of the published system, is no alarm.
    violations = [each for each in result.violations if not each.get("expected") and not each.get("known")]
    cited = [
        Citation(each[place]["line"], f"law {each['invariant']}")
        for each in violations
        for place in ("first", "after", "overdue")
        if each.get(place) is not None
    ]
    failure = result.failure or {}
    places = (failure.get(place) for place in ("line", "stop"))
    stepped = [Citation(line["line"], "step") for line in places if line is not None]
    return run.lines, alarm, tuple(cited + stepped + list(_said(run.lines, bool(alarm))))


def _case(world: World) -> Any:
    from tests.oracle.sweeps import case_of, run

    outcome = run(case_of(world.scenario), tail_at_most_s=60.0)
    violations = [each for each in outcome.violations if not getattr(each, "known", "")]
    found = [*map(str, violations), *(f"{line.actor} crashed: {line.fields.get('cause')}" for line in outcome.crashes)]
    found += [f"{line.fields['do']} is refused: {line.fields['reason']}" for line in outcome.wrongly_refused]
    cited = [
        Citation(line.number, f"law {each.invariant}")
        for each in violations
        for line in (each.first, each.after, each.overdue)
        if line is not None
    ]
    crashes = [Citation(line.number, "crash") for line in outcome.crashes]
    refused = [Citation(line.number, "step") for line in outcome.wrongly_refused]
    return outcome.lines, "; ".join(found)[:300], tuple(cited + crashes + refused)


def _said(lines: Sequence[Any], alarmed: bool) -> Iterator[Citation]:
    """The lines that a verdict is about by themselves: a component crashed, a step failed, a law's own line."""
    for line in lines if alarmed else ():
        if line.layer == "component" and line.event == "crashed":
            yield Citation(line.number, "crash")
        if line.layer == "step" and line.event == "failed":
            yield Citation(line.number, "step")
        if line.layer == "invariant":
            yield Citation(line.number, f"law {line.actor}")


def objects_of(line: Any) -> frozenset[str]:
    """What a line is about: the pods and devices that it names, or whoever it is of where it names none."""
    fields = line.fields
    pods = [f"pod/{fields['pod']}"] if isinstance(fields.get("pod"), str) else []
    about = [str(fields[name]) for name in ("gpuid", "object") if fields.get(name)]
    mentioned = [] if line.layer == "api" and line.event == "event" else [line.actor] if "/" in line.actor else []
    if line.layer == "api":
        return frozenset([*pods, *about, *mentioned]) or frozenset([line.actor])
    return frozenset([*pods, *about]) or frozenset([line.actor])
