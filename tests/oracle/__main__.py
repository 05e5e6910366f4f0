"""``python -m tests.oracle --singles 20 --pairs 2000 --schedules 2000 --jobs 2``: how often the oracle cries wolf.

Prints an account of each sweep and every violation with the name of its world; ``--case NAME`` plays one world alone
and prints all of it. Exit code 1 where anything was found.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tests.oracle.actions import Action
from tests.oracle.sweeps import Case, case_of, run, schedule, singles
from tests.oracle.worlds import SYSTEMS


@dataclass(frozen=True, slots=True)
class Look:
    """What is wrong with a world, a line each; how many actions its plan had, and those that never struck, as ``what:
    why``."""

    name: str
    found: list[str]
    planned: int = 0
    unstruck: tuple[str, ...] = ()


def look(name: str) -> Look:
    """Play that world."""
    try:
        outcome = run(case_of(name))
    except Exception as error:  # noqa: BLE001 - a world that cannot be played is a finding, not the end of the sweep
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Look(name, [f"error in {place.filename}:{place.lineno}: {type(error).__name__}: {error}"])
    found = [str(violation) for violation in outcome.violations]
    found += [f"crash of {line.actor}: {line.fields.get('cause')}" for line in outcome.crashes]
    found += [f"{line.fields['do']} is refused: {line.fields['reason']}" for line in outcome.wrongly_refused]
    return Look(name, found, len(outcome.actions), tuple(_missed(action, why) for action, why in outcome.unstruck))


def _missed(action: Action, why: str) -> str:
    """Alike for alike ones, so that they can be counted: no names of pods and devices, no numbers."""
    what = action.given.get("kind", "") if "fault" in action.do or action.do in ("apply", "remove") else ""
    return f"{' '.join(filter(None, (action.do, str(what))))}: {re.sub(r'[A-Za-z]*[-/]?[0-9][^ :,]*', '*', why)[:70]}"


def sweep(cases: Iterable[Case], jobs: int) -> Iterator[Look]:
    """All of them, in their order."""
    names = [str(case) for case in cases]
    if jobs <= 1:
        yield from map(look, names)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(look, names, chunksize=8)


def show(name: str) -> int:
    """Play one world and print its journal, what was done to it, and what was found."""
    outcome = run(case_of(name))
    for line in outcome.lines:
        sys.stdout.write(f"{line.number}: {line.as_json()}\n")
    for action in outcome.actions:
        sys.stdout.write(f"{action}\n")
    for action, why in outcome.unstruck:
        sys.stdout.write(f"never struck: {action}: {why}\n")
    for violation in outcome.violations:
        sys.stdout.write(f"{violation}\n")
    return 1 if outcome.violations or outcome.crashes or outcome.wrongly_refused else 0


def main() -> int:
    """Play the sweeps that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle")
    parser.add_argument("--singles", type=int, default=0, help="seeds for each fault in each shipped scenario")
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--schedules", type=int, default=0)
    parser.add_argument("--system", default="kubecomp", help=f"whose schedules: {', '.join(SYSTEMS)}")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--short", action="store_true", help="without the replays of hours")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--case", default="", help="one world alone, with its journal")
    chosen = parser.parse_args()
    if chosen.system not in SYSTEMS:
        sys.stderr.write(f"--system {chosen.system!r}: must be one of {', '.join(SYSTEMS)}\n")
        return 2
    if chosen.case:
        return show(chosen.case)
    seeds = range(chosen.first, chosen.first + chosen.singles)
    worlds = {
        "single": list(singles(seeds, long=not chosen.short)) if seeds else [],
        "pair": [Case("pair", chosen.first + number) for number in range(chosen.pairs)],
        "schedule": [schedule(chosen.system, chosen.first + number) for number in range(chosen.schedules)],
    }
    bad = 0
    for sort, cases in worlds.items():
        bad += _account(sort, [case for case in cases if chosen.only in str(case)], chosen.jobs)
    return 1 if bad else 0


def _account(sort: str, cases: list[Case], jobs: int) -> int:
    if not cases:
        return 0
    began = time.monotonic()
    bad, broken, planned, missed = 0, Counter[str](), 0, Counter[str]()
    for seen in sweep(cases, jobs):
        bad += bool(seen.found)
        planned += seen.planned
        missed.update(seen.unstruck)
        for text in seen.found:
            broken[text.split(" (")[0][:40]] += 1
            sys.stdout.write(f"{seen.name}\n  {text}\n")
            sys.stdout.flush()
    of = ", ".join(f"{count} x {what}" for what, count in broken.most_common())
    took = time.monotonic() - began
    sys.stdout.write(f"{sort}: {len(cases)} worlds, {bad} with findings, {took:.0f} s{': ' if of else ''}{of}\n")
    sys.stdout.write(f"{sort}: {planned} actions planned, {missed.total()} never struck\n")
    for what, count in missed.most_common():
        sys.stdout.write(f"  {count:5} x {what}\n")
    return bad


if __name__ == "__main__":
    sys.exit(main())
