"""``python -m tests.mutate ROOM``: how many one-line faults the tests of a room notice.

The faults are drawn by ``--seed``; each is in another function, if the room has as many. It is killed if a test of the
room's folder fails within ``--limit`` seconds, without programs that others built. The last line is a JSON object:
``{"room","seed","drawn","killed","equivalent","lives"}``. The exit code is 1 below the bar of 80 %.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import yaml

from tests.mutate.checkout import Checkout, Outcome, Reached
from tests.mutate.faults import Mutant, mutants, rooms

BAR = 0.8
LIMIT_S = 180.0
_EQUIVALENT = Path(__file__).with_name("equivalent.yaml")
_MOST_EQUIVALENT = 0.1
"""Of those drawn; more are counted as living."""


def main() -> int:
    """Plant the faults; 1 where too many live, 2 for a wrong argument."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate")
    parser.add_argument("room", metavar="ROOM", choices=rooms(), help=f"one of: {', '.join(rooms())}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=50, metavar="N", help="so many faults; default: %(default)s")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time")
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="S", help="seconds for the tests of one fault")
    chosen = parser.parse_args()
    drawn = mutants(chosen.room, chosen.seed, chosen.count)
    killed, alike, living = 0, 0, 0
    for outcome in _outcomes(chosen.room, drawn, jobs=chosen.jobs, limit_s=chosen.limit):
        why = _reason(outcome.mutant)
        is_alike = not outcome.killer and why is not None and alike < _MOST_EQUIVALENT * len(drawn)
        killed, alike = killed + bool(outcome.killer), alike + is_alike
        living += not (outcome.killer or is_alike)
        word = "killed" if outcome.killer else "equivalent" if is_alike else "lives"
        what = f"by {outcome.killer}" if outcome.killer else why if is_alike else f"after {outcome.tests} tests"
        sys.stdout.write(f"{word:10} {outcome.mutant}\n           {what}\n")
        sys.stdout.flush()
    judged = max(killed + living, 1)
    sys.stdout.write(f"{chosen.room}: {killed} of {judged} killed ({100 * killed / judged:.0f} %)\n")
    summary = {"room": chosen.room, "seed": chosen.seed, "drawn": len(drawn)}
    sys.stdout.write(json.dumps({**summary, "killed": killed, "equivalent": alike, "lives": living}) + "\n")
    return 0 if killed >= BAR * judged else 1


def _outcomes(room: str, drawn: Sequence[Mutant], *, jobs: int, limit_s: float) -> Iterator[Outcome]:
    checkouts = [Checkout() for _ in range(jobs)]
    free: SimpleQueue[Checkout] = SimpleQueue()
    try:
        reached = checkouts[0].reach(room)
        sys.stdout.write(f"{room}: {len(reached)} tests pass, {sum(each.took_s for each in reached):.0f} s\n")
        sys.stdout.flush()
        by_function, shortest_first = _by_function(reached), sorted(reached, key=lambda each: each.took_s)
        for checkout in checkouts:
            free.put(checkout)

        def judge(mutant: Mutant) -> Outcome:
            # The others after them: what a test leaves in a cache, the next ones did not run, nor what imports ran.
            first = by_function.get((mutant.file, mutant.first_line), ())
            checkout = free.get()
            try:
                return checkout.judge(room, mutant, first, shortest_first, limit_s=limit_s)
            finally:
                free.put(checkout)

        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(judge, drawn)
    finally:
        for checkout in checkouts:
            checkout.close()


def _by_function(reached: Sequence[Reached]) -> Mapping[tuple[str, int], Sequence[Reached]]:
    """The tests that run a function, the shortest first."""
    found: dict[tuple[str, int], list[Reached]] = defaultdict(list)
    for each in sorted(reached, key=lambda each: each.took_s):
        for function in each.functions:
            found[function].append(each)
    return found


def _reason(mutant: Mutant) -> str | None:
    """Why a fault changes nothing, if somebody has shown that."""
    known = yaml.safe_load(_EQUIVALENT.read_text(encoding="utf-8")) if _EQUIVALENT.is_file() else []
    place = (mutant.file, mutant.function, mutant.before, mutant.after)
    return next((row["why"] for row in known if (row["file"], row["function"], row["was"], row["now"]) == place), None)


if __name__ == "__main__":
    sys.exit(main())
