"""``python -m tests.crash_points``: kill every component at every line of every reconfiguration; 1 where one fails."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

from mews.own_files import write_own
from tests.crash_points.account import Account, Base, Clock, bases, outcomes, pairs, sample
from tests.crash_points.point import CrashPoint
from tests.crash_points.systems import SYSTEMS, scenarios_of
from tests.crash_points.trial import try_point


def main() -> int:
    """Print an account of each scenario, and how to see each failure again."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash_points")
    parser.add_argument("--system", default="kubecomp", help=f"one of {', '.join(SYSTEMS)}; default: %(default)s")
    parser.add_argument("--scenarios", help="names with commas, mixed or all; default: those of the system")
    parser.add_argument("--delay", choices=("every", "drawn"), default="every", help="how long a component stays away: "
                        "every delay at every line, or one drawn by seed")  # fmt: skip
    parser.add_argument("--only", type=int, metavar="N", help="so many of the single crashes, drawn by seed")
    parser.add_argument("--pairs", type=int, default=2000, help="pairs of crashes with a fault between them")
    parser.add_argument("--seed", type=int, default=1, help="of the runs, and of what is drawn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--point", help="try this one alone, such as 'demo 57:reconfig-manager:45'")
    parser.add_argument("--journal", type=Path, help="of that one")
    chosen = parser.parse_args()
    logging.getLogger("mews").addHandler(logging.NullHandler())
    try:
        usual = scenarios_of(chosen.system)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    named = {"all": (), "mixed": SYSTEMS["mixed"], None: usual}
    wanted = named[chosen.scenarios] if chosen.scenarios in named else tuple(chosen.scenarios.split(","))
    try:
        if chosen.point is not None:
            return _one(CrashPoint.parse(chosen.point), chosen.seed, chosen.journal)
        among = bases(wanted, seed=chosen.seed)
    except ValueError as error:
        parser.error(str(error))
    drawn = chosen.delay == "drawn"
    points = [point for base in among for point in (base.once_each(chosen.seed) if drawn else base.points())]
    if chosen.only is not None:
        points = sample(points, chosen.only, seed=chosen.seed)
    failed = _all("single crashes", among, points, chosen.jobs, chosen.seed)
    failed += _all("pairs", among, pairs(among, chosen.pairs, seed=chosen.seed), chosen.jobs, chosen.seed)
    return 1 if failed else 0


def _one(point: CrashPoint, seed: int, journal: Path | None) -> int:
    base = bases([point.scenario], seed=seed)[0]
    outcome = try_point(base.scenario, point, pending=base.outcome.excused, seed=seed)
    if journal is not None:
        write_own(journal, "".join(line.as_json() + "\n" for line in outcome.lines))
    for problem in outcome.problems:
        sys.stdout.write(f"{problem}\n")
    ran, excused = ", ".join(outcome.ran) or "none", ", ".join(outcome.excused) or "none"
    sys.stdout.write(f"{point}: {outcome.reached} incidents; ran: {ran}; said why not: {excused}\n")
    return 1 if outcome.problems else 0


def _all(what: str, among: list[Base], points: list[CrashPoint], jobs: int, seed: int) -> int:
    """Try them; the number of failures."""
    accounts = {base.scenario.name: Account(base.scenario.name) for base in among}
    progress = Clock(len(points), sys.stderr.write)
    for point, outcome in outcomes(among, points, jobs=jobs, seed=seed, on_tick=progress):
        accounts[point.scenario].add(point, outcome)
        if outcome.problems:
            again = f"python -m tests.crash_points --seed {seed} --point '{point}'"
            sys.stdout.write("\n  ".join((again, *outcome.problems)) + "\n")
            sys.stdout.flush()
    total = Account(f"{what}, all")
    for account in accounts.values():
        sys.stdout.write(f"{account}\n")
        for name in ("trials", "ran", "excused", "unreached", "idle"):
            setattr(total, name, getattr(total, name) + getattr(account, name))
        total.failures += account.failures
    sys.stdout.write(f"{total}\n")
    sys.stdout.flush()
    return len(total.failures)


if __name__ == "__main__":
    sys.exit(main())
