"""The seven measured runs of Workloads 1 and 3, replayed as published and corrected, beside the real ones.

Waits, GPUs moved, seconds a GPU took, Kolmogorov-Smirnov of all waits against the 20 measured (``MEWS_DATA_DIR``),
and one line per outcome of the scheduler's coin tosses: means are averaged over these, the measured one is marked.

The 20 are one run: ``_ks_as_it_fell`` holds them against the seeds whose tosses fell likewise, ``_ks_to_a_second``
does not count differences of a second, the grain of startTime, and ``_ks_own`` is how far one run of ours lies from
the others.
"""

from __future__ import annotations

import csv
import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.common import ROOT, progress, report
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario

MEASURED_WAIT_S = {
    "testbed-w1-pool": 82.7,
    "testbed-w1-4-4": 81.2,
    "testbed-w1-0-8": 711.2,
    "testbed-w3-pool": 393.1,
    "testbed-w3-4-4": 541.7,
    "testbed-w3-0-8": 670.0,
    "testbed-w3-2-6": 660.6,
}
"""Mean wait of each run on the real testbed, seconds (contract kubecomp.md section 4)."""

MEASURED_MOVES = {"testbed-w1-pool": 2, "testbed-w3-pool": 6}
TARGET_S = 20.0


def measured(name: str) -> list[dict[str, str]]:
    """Return the rows of a run; none where the data is not here."""
    folder = os.environ.get("MEWS_DATA_DIR")
    if folder is None:
        return []
    _, workload, setting = name.split("-", 2)
    text = (Path(folder) / "kubecomp" / "testbed_jobs.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return [row for row in rows if (row["workload"], row["setting"]) == (workload.upper(), setting)]


def distance(ours: Sequence[float], theirs: Sequence[float], *, grain: float = 0.0) -> float:
    """Kolmogorov-Smirnov: the largest difference of the two distributions; values that are no further apart than the
    grain count as equal."""

    def share(values: Sequence[float], limit: float) -> float:
        return sum(value <= limit for value in values) / len(values)

    limits = {value + shift for value in (*ours, *theirs) for shift in (0.0, grain)}
    return max(
        max(share(one, x - grain) - share(other, x) for one, other in ((ours, theirs), (theirs, ours))) for x in limits
    )


def jobs_of(lines: Sequence[Any]) -> dict[str, tuple[float, str]]:
    """Job -> (when its pod was bound, where), from a journal."""
    bound = [line for line in lines if line.layer == "api" and line.event == "bound"]
    return {line.actor.rpartition("/")[2]: (line.t, line.fields["node"]) for line in bound}


def replay(name: str, seeds: Sequence[int], mode: str = "public") -> list[dict[str, Any]]:
    """Return one mapping a seed: metrics, waits and nodes in the order of the jobs."""
    path = ROOT / "scenarios" / "testbed" / f"{name.removeprefix('testbed-')}.yaml"
    scenario = load_scenario(path, [f"stack.kubecomp.mode={mode}"])
    found = []
    for seed in seeds:
        run = Engine(RunOptions()).run(scenario, seed)
        jobs = jobs_of(run.lines)
        found.append({"metrics": run.result.metrics, "jobs": jobs, "verdict": run.result.verdict})
    return found


def averaged(runs: Sequence[dict[str, Any]], metric: str) -> tuple[float, dict[tuple[str, ...], list[float]]]:
    """Return the mean over the outcomes of the first job's toss, each outcome once; and what belongs to each."""
    outcomes: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for run in runs:
        outcomes[tuple(node for _, node in run["jobs"].values())].append(run["metrics"][metric])
    firsts: dict[str, list[float]] = defaultdict(list)
    for nodes, values in outcomes.items():
        firsts[nodes[0]] += values
    return fmean(fmean(values) for values in firsts.values()), outcomes


def waits_of(runs: Sequence[dict[str, Any]], rows: Sequence[dict[str, str]]) -> list[float]:
    """Waits of all jobs of all runs, from when the first was bound, which came at its time."""
    waits = []
    for run in runs:
        begun_s = min(t for t, _ in run["jobs"].values())
        bound_s = [run["jobs"][row["job"]][0] - begun_s for row in rows]
        # Sums of seconds miss a whole one by a rounding error, which must not cost a second.
        waits += [math.floor(t + 1e-6) - float(row["submit_offset_s"]) for t, row in zip(bound_s, rows, strict=True)]
    return waits


def own_distance(runs: Sequence[dict[str, Any]], rows: Sequence[dict[str, str]]) -> float:
    """Return how far one of our runs lies from all others, on average: below that no single run can be expected to
    come."""
    waits = [waits_of([run], rows) for run in runs]
    others = ([wait for other in waits if other is not own for wait in other] for own in waits)
    return fmean(distance(rest, own) for rest, own in zip(others, waits, strict=True))


def main() -> None:
    """Ten seeds each, as published; the pools corrected as well."""
    seeds = range(1, 4) if "--quick" in sys.argv else range(1, 11)
    replays_s = 0.0
    for name, wait_s in MEASURED_WAIT_S.items():
        begun_s = time.process_time()
        runs, rows = replay(name, seeds), measured(name)
        replays_s += time.process_time() - begun_s
        mean_s, outcomes = averaged(runs, "mean_wait_s")
        report(f"{name}_mean_wait", mean_s, "s", baseline=wait_s, baseline_name="the real testbed")
        real = tuple(row["node"] for row in rows)
        for nodes, values in sorted(outcomes.items()):
            mark = "  <- as measured" if nodes == real else ""
            short = "".join(node[-1] for node in nodes)
            progress(f"  {short}: {fmean(values):.1f} s over {len(values)} seeds{mark}")
        if rows:
            _distances(name, runs, rows)
        if name not in MEASURED_MOVES:
            continue
        moved = [run["metrics"]["moved_gpus"] for run in runs]
        report(f"{name}_moved", fmean(moved), "GPUs", baseline=MEASURED_MOVES[name], baseline_name="the real testbed")
        _corrected(name, seeds, runs, mean_s)
    report("testbed_five_seeds", replays_s * 5 / len(seeds), "s of CPU", baseline=TARGET_S, baseline_name="target")


def _distances(name: str, runs: Sequence[dict[str, Any]], rows: Sequence[dict[str, str]]) -> None:
    waits, real = waits_of(runs, rows), [float(row["wait_s"]) for row in rows]
    target = 0.25 if "pool" in name else 0.15
    report(f"{name}_ks", distance(waits, real), "", baseline=target, baseline_name="target")
    report(f"{name}_ks_to_a_second", distance(waits, real, grain=1.0), "", baseline=target, baseline_name="target")
    report(f"{name}_ks_own", own_distance(runs, rows), "", baseline=target, baseline_name="target")
    places = {row["job"]: row["node"] for row in rows}
    likewise = [run for run in runs if {job: node for job, (_, node) in run["jobs"].items()} == places]
    if likewise:
        fell = distance(waits_of(likewise, rows), real)
        report(f"{name}_ks_as_it_fell", fell, "", baseline=target, baseline_name="target")
        mean_s = fmean(run["metrics"]["mean_wait_s"] for run in likewise)
        report(f"{name}_mean_wait_as_it_fell", mean_s, "s", baseline=fmean(real), baseline_name="the real testbed")


def _corrected(name: str, seeds: Sequence[int], public: Sequence[dict[str, Any]], public_s: float) -> None:
    """What the repair is worth."""
    runs = replay(name, seeds, "corrected")
    ours_s, _ = averaged(runs, "mean_wait_s")
    report(f"{name}_mean_wait_corrected", ours_s, "s", baseline=public_s, baseline_name="mode: public")
    for mode, found in (("public", public), ("corrected", runs)):
        moved = sum(run["metrics"]["moved_gpus"] for run in found)
        spent_s = sum(run["metrics"]["phase_seconds"]["reallocation"] for run in found)
        if moved:
            progress(f"  {mode}: {moved / len(found):.1f} GPUs moved a run, {spent_s / moved:.1f} s each")
    progress(f"  the repair is worth {public_s - ours_s:+.1f} s of mean wait")


if __name__ == "__main__":
    main()
