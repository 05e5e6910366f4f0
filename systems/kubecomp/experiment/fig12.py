"""Fig. 12: one to six pools, configurable and fixed, on the simulator alone, and what its answer hangs on. Pure.

The paper's reduction of the wait is a function of what it does not say of the log that it ran: how far the log
overloads the pools, how many jobs ask for all GPUs of a node, how many CPUs they take. Each is an axis here.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import (
    Axis,
    Comparison,
    Experiment,
    ExperimentPart,
    Figure,
    LogUse,
    Panel,
    RecordedJobs,
    Row,
    Series,
    Tables,
)
from mews.kube.system.statistics import half_width
from mews.kube.system.sweeping import with_curves
from mews.systems.kubecomp.experiment.helios import BEGIN, END, LARGE, MEDIAN_S, LoggedJob, drawn_log, log_text
from mews.systems.kubecomp.experiment.simulator import MOVE_S, NODE_CPUS, Simulation, nodes_of
from mews.systems.kubecomp.experiment.workloads import WorkloadJob

POOLS = (1, 2, 4, 6)
FIXED = (4, 4, 8, 8)
JOBS = 400
SEEDS, CURVE_SEEDS = 50, 20
PAPER = 0.30
"""The wait that pooling saves, "approximately", over cluster scales that the paper does not name."""
SETTINGS: Mapping[str, str] = {"fixed": "preconfigured", "pool": "configurable"}

AXES = (
    Axis(
        "load",
        "GPU seconds asked for over those of one pool",
        8.0,
        (0.6, 0.9, 1.2, 2.0, 4.0, 8.0, 16.0, 32.0),
        0.01,
        1000.0,
        logarithmic=True,
    ),
    Axis("eights", "share of jobs of eight GPUs", 0.10, (0.0, 0.05, 0.1, 0.2, 0.4), 0.0, 1.0),
    Axis("cpus", "CPUs per GPU", 8.0, (1.0, 4.0, 8.0, 16.0, 24.0), 0.0, NODE_CPUS / LARGE),
    Axis("move", "seconds to move a GPU", MOVE_S, (0.0, 10.0, MOVE_S, 60.0), 0.0, 3600.0),
)


class Fig12Assumptions(Struct, frozen=True):
    """A value for each axis. With a log, a load or CPUs of None are the log's own."""

    load: float | None = 8.0
    eights: float = 0.10
    cpus: float | None = 8.0
    move: float = MOVE_S
    log: RecordedJobs | None = None


class Fig12Task(Struct, frozen=True):
    """One run: the jobs of a seed on so many pools. With a log, the seed decides ties alone."""

    assumed: Fig12Assumptions
    seed: int
    setting: str
    pools: int


def jobs_of(assumed: Fig12Assumptions, seed: int) -> list[WorkloadJob]:
    """Return the generated jobs, or those of the log that a fixed node can run, at the load that is asked for."""
    if assumed.log is not None:
        return _of_log(assumed.log, assumed)
    log = _generated(assumed, seed)
    return [_job(each.number, each.gpus, each.cpus, each.submitted_s, each.duration_s) for each in log]


def _generated(assumed: Fig12Assumptions, seed: int) -> list[LoggedJob]:
    assert assumed.load is not None and assumed.cpus is not None, "only a log of the user's has its own"
    return drawn_log(
        seed,
        jobs=JOBS,
        load=assumed.load,
        eights=assumed.eights,
        cpus_per_gpu=assumed.cpus,
        pool_gpus=sum(FIXED),
    )


def _job(number: int, gpus: int, cpus: float, arrival_s: float, duration_s: float) -> WorkloadJob:
    return WorkloadJob(f"t{number:04}", str(gpus), gpus, round(cpus), arrival_s, duration_s)


def _of_log(log: RecordedJobs, assumed: Fig12Assumptions) -> list[WorkloadJob]:
    rate = 1.0 if assumed.load is None else assumed.load / load_of(log)
    found = []
    for number in _runnable(log):
        gpus = log.gpus[number]
        cpus = log.cpus[number] if assumed.cpus is None else assumed.cpus * gpus
        found.append(_job(number, gpus, cpus, log.arrival_s[number] / rate, log.duration_s[number]))
    return found


def _runnable(log: RecordedJobs) -> list[int]:
    """Jobs with GPUs that the largest fixed node has room for: behind one that it never has, nobody would start."""
    return [n for n, gpus in enumerate(log.gpus) if 0 < gpus <= max(FIXED) and log.cpus[n] <= NODE_CPUS]


def load_of(log: RecordedJobs) -> float:
    """GPU seconds of the jobs that are played over those that one pool has from the first arrival to the last."""
    there = _runnable(log)
    asked = sum(log.gpus[n] * log.duration_s[n] for n in there)
    return asked / (sum(FIXED) * max(log.arrival_s[there[-1]] - log.arrival_s[there[0]], 1.0))


def _tasks(assumed: Fig12Assumptions, seeds: range) -> list[Fig12Task]:
    return [Fig12Task(assumed, seed, s, count) for seed in seeds for s in SETTINGS for count in POOLS]


def run(task: Fig12Task) -> dict[str, Any]:
    """Return the mean wait, and how many GPUs moved."""
    nodes = [node for pool in range(task.pools) for node in nodes_of(FIXED, pool=str(pool))]
    rng = random.Random(f"fig12/{task.seed}/{task.setting}/{task.pools}")
    jobs = jobs_of(task.assumed, task.seed)
    done = Simulation(nodes, jobs, task.setting == "pool", rng, move_s=task.assumed.move).run()
    row = {"seed": task.seed, "setting": task.setting, "pools": task.pools, "jobs": len(done)}
    wait_s = fmean(job.wait_s or 0.0 for job in done)
    return {**row, "mean_wait_s": wait_s, "moved_gpus": sum(job.moved for job in done)}


def rows(seeds: range, results: Sequence[Row]) -> list[Row]:
    """Return one a run, its wait also over that of one fixed pool with the same jobs; None where nobody waits there."""
    base_s = {row["seed"]: row["mean_wait_s"] for row in picked(results, setting="fixed", pools=1)}
    return [
        {**row, "normalised": row["mean_wait_s"] / base_s[row["seed"]] if base_s[row["seed"]] else None}
        for row in results
    ]


def _normalised(table: Sequence[Row], setting: str, pools: int) -> list[float]:
    found = picked(table, setting=setting, pools=pools)
    return [row["normalised"] for row in found if row["normalised"] is not None]


def reductions(tables: Tables) -> list[Comparison]:
    """Return what pooling takes off the wait at each scale: of the mean waits over all seeds."""
    found = []
    for count in POOLS:
        waits = {
            setting: fmean(row["mean_wait_s"] for row in picked(tables["rows"], setting=setting, pools=count))
            for setting in SETTINGS
        }
        share = 1.0 - waits["pool"] / waits["fixed"] if waits["fixed"] else None
        found.append(Comparison(f"reduction of the wait by pooling, {_pools(count)}", share, paper=PAPER))
    return found


def _pools(count: int) -> str:
    return "1 pool" if count == 1 else f"{count} pools"


def comparisons(tables: Tables) -> list[Comparison]:
    """Return every point, and what pooling takes off at each scale."""
    points = [
        compared(f"normalised wait: {setting}, {_pools(count)}", _normalised(tables["rows"], setting, count))
        for setting in SETTINGS
        for count in POOLS
    ]
    return [*points, *reductions(tables)]


def figures(tables: Tables) -> list[Figure]:
    """Bars by the number of pools."""
    series = []
    for setting, label in SETTINGS.items():
        cells = [_normalised(tables["rows"], setting, count) for count in POOLS]
        means = tuple(fmean(values) if values else 0.0 for values in cells)
        series.append(Series(label, means, tuple(half_width(v) if len(v) > 1 else 0.0 for v in cells)))
    panel = Panel("wait by number of pools", tuple(series), places=tuple(map(str, POOLS)))
    return [Figure("kubecomp-fig12", "bars", "normalised wait", (panel,))]


STAND_IN = (
    "a generated log in the columns of Helios stands in for that of cluster Earth; --trace FILE plays its "
    "cluster_log.csv"
)


def _notes(assumed: Fig12Assumptions) -> tuple[str, ...]:
    pools = "Pools of 24 GPUs and four nodes, 4-4-8-8 where fixed. The paper ran Helios Earth, June to August 2020. "
    if assumed.log is None:
        which = (
            f"Here {STAND_IN}. It has {JOBS} jobs of 1, 2, 4 or 8 GPUs, lengths log-normal with a median of "
            f"{MEDIAN_S:g} s, at {assumed.load:g} times what one pool can do (assumed); {assumed.eights:.0%} of the "
            f"jobs ask for eight GPUs, each GPU comes with {assumed.cpus:g} CPUs."
        )
    else:
        which = _log_note(assumed, assumed.log)
    return (
        pools + which,
        f"A node has {NODE_CPUS} CPUs; a GPU takes {assumed.move:g} s to move. Means over seeds with 95 % intervals.",
        "{rows} seeds.",
    )


def _log_note(assumed: Fig12Assumptions, log: RecordedJobs) -> str:
    there, without = len(_runnable(log)), sum(not gpus for gpus in log.gpus)
    load = load_of(log) if assumed.load is None else assumed.load
    cpus = "the log's CPUs" if assumed.cpus is None else f"{assumed.cpus:g} CPUs a GPU"
    return (
        f"Here {log.name} is played: {there} jobs with {cpus}, at {load:.3g} times what one pool can do. Left out are "
        f"{without} jobs without GPUs, {len(log.gpus) - there - without} that need more of a node than a fixed one "
        f"has, and {log.left_out} that had not ended. A job on several nodes is as many jobs."
    )


def _at(base: Fig12Assumptions, values: Mapping[str, float]) -> Experiment:
    """Return the experiment under these assumptions."""
    assumed = replace(base, **values)
    log = assumed.log
    found = Experiment(
        name="kubecomp-fig12",
        summary="normalised wait on one to six pools, configurable and fixed, on a job log in the columns of Helios",
        parts=(
            ExperimentPart(
                "rows", "every log at every scale", SEEDS if log is None else 1, partial(_tasks, assumed), run, rows
            ),
        ),
        title="Fig. 12: normalised wait under cluster scales",
        notes=_notes(assumed),
        figures=figures,
        comparisons=comparisons,
        axes=AXES if log is None else tuple(replace(a, shipped=None) for a in AXES if a.name != "eights"),
        at=lambda more: _at(assumed, more),
        curve=reductions,
        curve_label="reduction of the wait",
        log=LogUse("helios", BEGIN.timestamp(), END.timestamp(), "of June to August 2020", played),
    )
    if log is not None:
        return found
    return replace(found, stand_in=STAND_IN, files={"cluster_log.csv": partial(_first_log, assumed)})


def _first_log(assumed: Fig12Assumptions) -> str:
    """Return the generated log of the first seed."""
    return log_text(_generated(assumed, 1))


def played(log: RecordedJobs) -> Experiment:
    """Return the experiment on a log, at its own load and with its own CPUs.

    Raises ValueError for a log without a job that can run.
    """
    if not _runnable(log):
        raise ValueError(f"no job has 1 to {max(FIXED)} GPUs a node and at most {NODE_CPUS} CPUs")
    return _at(Fig12Assumptions(load=None, cpus=None, log=log), {})


FIG12 = with_curves(_at(Fig12Assumptions(), {}), CURVE_SEEDS)
"""Fig. 12 of the KubeComp paper."""
