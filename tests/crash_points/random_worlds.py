"""``python -m tests.crash_points.random_worlds --worlds 1000``: worlds of chance with pods of all four systems, one to
five components killed in each, at lines drawn by its number; 1 where anything went wrong in one.

Each world is played twice: where nobody is killed nothing may be found, either.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from mews.harness.scenario.loader import parse_scenario
from mews.harness.scenario.model import Scenario
from mews.harness.worker_pool import WorkerPool
from tests.crash_points.account import Clock
from tests.crash_points.point import DRAWN_S, CrashPoint, Incident
from tests.crash_points.trial import Outcome, try_point
from tests.oracle.worlds import cluster, workload

REST_S = 420.0
"""What waits for longer than that in these worlds waits for a pod that never ends."""


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a world. ``kills``: how many were planned, and how many struck."""

    world: int
    point: str
    problems: tuple[str, ...]
    kills: tuple[int, int]
    pods: int


def scenario_of(number: int) -> Scenario:
    """The world of that number: users' objects come, some are waited for, some go and come again under their names."""
    rng = random.Random(f"{number}/world")
    hardware, stack = cluster("mixed", rng)
    steps: list[dict[str, Any]] = [{"wait": {"settled": {}}, "timeout": "1m"}]
    made: dict[str, dict[str, Any]] = {}
    for at in range(rng.randint(3, 8)):
        name = f"user-{at}"
        made[name] = dict(workload("mixed", name, rng))
        steps.append({"apply": made[name]})
        if rng.random() < 0.5:
            steps.append(_awaited(made[name], rng))
        if rng.random() < 0.4:
            steps += _gone(made[rng.choice(sorted(made))], rng)
    text = {
        "apiVersion": "mews/v1",
        "kind": "Scenario",
        "metadata": {"name": f"world-{number}"},
        "hardware": hardware,
        "stack": stack,
        "steps": steps,
    }
    return parse_scenario(json.dumps(text), Path("world.yaml"))


def _awaited(body: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    name, limit = body["metadata"]["name"], f"{rng.choice((2, 10, 30))}s"
    pod = (
        {"name": name, "phase": "Running"}
        if body["kind"] == "Pod"
        else {"name": f"{name}-worker-0", "phase": "Running"}
    )
    return {"wait": {"pod": pod}, "timeout": limit}


def _gone(body: dict[str, Any], rng: random.Random) -> Iterator[dict[str, Any]]:
    target = {"kind": body["kind"], "apiVersion": body["apiVersion"], "name": body["metadata"]["name"]}
    grace = {"gracePeriod": rng.choice((0, 1, 20))} if body["kind"] == "Pod" and rng.random() < 0.5 else {}
    yield {"delete": {**target, **grace, "missingOk": True, "wait": rng.random() < 0.5}, "timeout": "30s"}
    if rng.random() < 0.5:
        yield {"apply": body}


def kills(number: int, calm: Outcome) -> CrashPoint:
    """One to five, at lines of the world as it goes where nobody is killed; each counts from the one before."""
    rng = random.Random(f"{number}/kills")
    lines = sorted(rng.randrange(calm.first, calm.last) for _ in range(rng.randint(1, 5)))
    gaps = [lines[0], *(after - before for before, after in pairwise(lines))]
    incidents = (Incident(gap, rng.choice(calm.components), rng.choice(DRAWN_S)) for gap in gaps)
    return CrashPoint(f"world-{number}", tuple(incidents))


def try_world(number: int) -> Found:
    """Play it, and play it with its kills."""
    scenario = scenario_of(number)
    calm = try_point(scenario, CrashPoint(scenario.name, ()), seed=number, rest_s=REST_S)
    if calm.problems:
        return Found(number, "nobody is killed", calm.problems, (0, 0), len(calm.ran))
    point = kills(number, calm)
    struck = try_point(scenario, point, pending=calm.excused, seed=number, rest_s=REST_S)
    return Found(number, str(point), struck.problems, (len(point.incidents), struck.reached), len(struck.ran))


def main() -> int:
    """Print what was found, and an account."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash_points.random_worlds")
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1, help="the first world's number")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    chosen = parser.parse_args()
    logging.getLogger("mews").addHandler(logging.NullHandler())
    done, bad, planned, struck, pods = 0, 0, 0, 0, 0
    progress = Clock(chosen.worlds, sys.stderr.write)
    pool = WorkerPool(lambda at: try_world(chosen.first + at), jobs=chosen.jobs, lost=_lost)
    for found in pool.run(chosen.worlds):
        done, bad, pods = done + 1, bad + bool(found.problems), pods + found.pods
        planned, struck = planned + found.kills[0], struck + found.kills[1]
        progress(done)
        if found.problems:
            sys.stdout.write("\n  ".join((f"world {found.world}: {found.point}", *found.problems)) + "\n")
            sys.stdout.flush()
    sys.stdout.write(
        f"{done} worlds, {pods} pods ran, {struck} of {planned} kills struck, {bad} worlds with a problem\n"
    )
    return 1 if bad else 0


def _lost(number: int, reason: str) -> Found:
    return Found(number, "", (reason,), (0, 0), 0)


if __name__ == "__main__":
    sys.exit(main())
