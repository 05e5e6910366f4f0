"""Figs. 11 to 13, on the simulator alone: mixes of two jobs, more pools, and the policies. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import Comparison, Experiment, ExperimentPart, Figure, Panel, Row, Series, Tables
from mews.kube.system.statistics import half_width
from mews.systems.kubecomp.experiment.simulator import MOVE_S, FigureJob, Simulation, nodes_of
from mews.systems.kubecomp.experiment.workloads import GPUS, WorkloadJob, drawn
from mews.systems.kubecomp.policy import Policy

SEEDS = 50
ASSUMED = f"A node has 192 CPUs; a GPU takes {MOVE_S:g} s to move, as measured. Means over seeds with 95 % intervals."


def _mean(values: Sequence[float]) -> tuple[float, float]:
    return fmean(values), half_width(values) if len(values) > 1 else 0.0


# Fig. 11 --------------------------------------------------------------------------------------------------------------

SPLITS: Mapping[str, tuple[int, ...]] = {
    "pool": (6, 6, 6, 6),
    "6-6-6-6": (6, 6, 6, 6),
    "4-4-8-8": (4, 4, 8, 8),
    "8-8-8-0": (8, 8, 8, 0),
}
MIXES: Mapping[str, Mapping[str, int]] = {
    "100 % A": {"A": 50},
    "90 %": {"A": 45, "E": 5},
    "75 %": {"A": 37, "E": 13},
    "50 %": {"A": 25, "E": 25},
    "25 %": {"A": 12, "E": 38},
    "100 % E": {"E": 50},
}
"""Of 50 jobs each; the paper gives neither how many nor in which mixes."""

Task11 = tuple[str, int]


def tasks_11(seeds: int) -> list[Task11]:
    """Every mix with every seed."""
    return [(mix, seed) for mix in MIXES for seed in range(1, seeds + 1)]


def run_11(task: Task11) -> list[dict[str, Any]]:
    """All settings with the same jobs; a setting whose nodes can never run job E has no wait."""
    mix, seed = task
    jobs = drawn(MIXES[mix], f"fig11/{mix}/{seed}")
    found = []
    for setting, split in SPLITS.items():
        rng = random.Random(f"fig11/{mix}/{seed}/{setting}")
        done = Simulation(nodes_of(split), jobs, setting == "pool", rng).run()
        waits = [job.wait_s for job in done if job.wait_s is not None]
        all_ran = len(waits) == len(done)
        wait_s = fmean(waits) if all_ran else None
        found.append({"mix": mix, "setting": setting, "seed": seed, "mean_wait_s": wait_s, "moved_gpus": _moved(done)})
    return found


def _moved(done: Sequence[FigureJob]) -> int:
    return sum(job.moved for job in done)


def flat(seeds: int, results: Sequence[Sequence[Row]]) -> list[Row]:
    """One row a run."""
    return [row for result in results for row in result]


def _waits(rows: Sequence[Row], mix: str, setting: str) -> list[float]:
    found = picked(rows, mix=mix, setting=setting)
    return [row["mean_wait_s"] for row in found if row["mean_wait_s"] is not None]


def comparisons_11(tables: Tables) -> list[Comparison]:
    """Each bar, and how often the pool waits least."""
    rows = tables["rows"]
    bars = [
        compared(f"mean wait, s: {mix}, {setting}", _waits(rows, mix, setting)) for mix in MIXES for setting in SPLITS
    ]
    first = 0
    for mix in MIXES:
        fixed = [_waits(rows, mix, setting) for setting in SPLITS if setting != "pool"]
        first += all(fmean(_waits(rows, mix, "pool")) <= fmean(waits) * 1.02 for waits in fixed if waits)
    return [
        *bars,
        Comparison("mixes in which no fixed split waits less than the pool (2 % allowed)", first, len(MIXES)),
    ]


def figures_11(tables: Tables) -> list[Figure]:
    """Bars by mix."""
    rows = tables["rows"]
    series = []
    for setting in SPLITS:
        cells = [_waits(rows, mix, setting) for mix in MIXES]
        means = [_mean(values) if values else (0.0, 0.0) for values in cells]
        series.append(Series(setting, tuple(mean for mean, _ in means), tuple(half for _, half in means)))
    panel = Panel("mean wait by mix of A and E", tuple(series), places=tuple(MIXES))
    return [Figure("kubecomp-fig11", "bars", "mean wait, s", (panel,))]


NOTES_11 = (
    "Four nodes, a pool of 24 GPUs; 50 jobs of types A and E, one a minute on average (assumed). 6-6-6-6 can never run "
    "job E: it has no bar where there is one.",
    ASSUMED,
    "{rows} seeds.",
)


FIG11 = Experiment(
    name="kubecomp-fig11",
    summary="mean wait under mixes of one-GPU and eight-GPU jobs: pool against fixed splits",
    parts=(ExperimentPart("rows", "every mix in every setting", SEEDS, tasks_11, run_11, flat),),
    title="Fig. 11: average wait under mixes of jobs A and E",
    notes=NOTES_11,
    figures=figures_11,
    comparisons=comparisons_11,
)
"""Fig. 11 of the KubeComp paper."""

# Fig. 12 --------------------------------------------------------------------------------------------------------------

POOLS = (1, 2, 4, 6)
FIXED = (4, 4, 8, 8)
TRACE_JOBS = 400
SIZES: Mapping[int, float] = {1: 0.60, 2: 0.15, 4: 0.15, 8: 0.10}
CPUS_PER_GPU = 8
MEDIAN_S, SPREAD = 600.0, 1.2
LOAD = 8.0
"""Of one pool: GPU seconds asked for over those there are while jobs arrive. The paper ran the log of hundreds of
GPUs on a few pools of 24, which overloads all of them: they are judged by what they get done."""


def trace(seed: int) -> list[WorkloadJob]:
    """A synthetic trace: mostly small jobs, lengths over orders of magnitude, arrivals by chance."""
    rng = random.Random(f"fig12/{seed}/trace")
    sizes = rng.choices(list(SIZES), list(SIZES.values()), k=TRACE_JOBS)
    lengths = [min(rng.lognormvariate(0.0, SPREAD) * MEDIAN_S, 86400.0) for _ in sizes]
    asked = sum(size * length for size, length in zip(sizes, lengths, strict=True))
    every_s = asked / (sum(FIXED) * LOAD * TRACE_JOBS)
    jobs, arrival_s = [], 0.0
    for number, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
        jobs.append(WorkloadJob(f"t{number:04}", str(size), size, CPUS_PER_GPU * size, arrival_s, length))
        arrival_s += rng.expovariate(1 / every_s)
    return jobs


def tasks_12(seeds: int) -> list[int]:
    """Every seed is a trace."""
    return list(range(1, seeds + 1))


def run_12(seed: int) -> list[dict[str, Any]]:
    """The same trace on one to six pools, configurable and fixed; waits over that of one fixed pool."""
    jobs = trace(seed)
    found: list[dict[str, Any]] = []
    for setting in ("fixed", "pool"):
        for count in POOLS:
            nodes = [node for pool in range(count) for node in nodes_of(FIXED, pool=str(pool))]
            rng = random.Random(f"fig12/{seed}/{setting}/{count}")
            done = Simulation(nodes, jobs, setting == "pool", rng).run()
            wait_s = fmean(job.wait_s or 0.0 for job in done)
            base_s = found[0]["mean_wait_s"] if found else wait_s
            row = {"seed": seed, "setting": setting, "pools": count, "mean_wait_s": wait_s}
            found.append({**row, "normalised": wait_s / base_s, "moved_gpus": _moved(done)})
    return found


def _normalised(rows: Sequence[Row], setting: str, pools: int) -> list[float]:
    return [row["normalised"] for row in picked(rows, setting=setting, pools=pools)]


def comparisons_12(tables: Tables) -> list[Comparison]:
    """Every point, and what pooling takes off at each scale."""
    rows = tables["rows"]
    points = [
        compared(f"normalised wait: {setting}, {count} pools", _normalised(rows, setting, count))
        for setting in ("fixed", "pool")
        for count in POOLS
    ]
    less = []
    for count in POOLS:
        waits = {s: fmean(r["mean_wait_s"] for r in picked(rows, setting=s, pools=count)) for s in ("fixed", "pool")}
        less.append(1.0 - waits["pool"] / waits["fixed"] if waits["fixed"] else 0.0)
    return [
        *points,
        *(
            Comparison(f"reduction of the wait by pooling, {count} pools", share, paper=0.30 if count == 1 else None)
            for count, share in zip(POOLS, less, strict=True)
        ),
    ]


def figures_12(tables: Tables) -> list[Figure]:
    """Bars by the number of pools."""
    rows = tables["rows"]
    series = []
    for setting, label in (("fixed", "preconfigured"), ("pool", "configurable")):
        means = [_mean(_normalised(rows, setting, count)) for count in POOLS]
        series.append(Series(label, tuple(mean for mean, _ in means), tuple(half for _, half in means)))
    panel = Panel("wait by number of pools", tuple(series), places=tuple(map(str, POOLS)))
    return [Figure("kubecomp-fig12", "bars", "normalised wait", (panel,))]


NOTES_12 = (
    "Pools of 24 GPUs and four nodes, 4-4-8-8 where they are fixed. The paper ran the job log of Helios Earth, June to "
    f"August 2020, which is not public: this trace is synthetic, {TRACE_JOBS} jobs of 1, 2, 4 or 8 GPUs, lengths "
    f"log-normal with a median of {MEDIAN_S:g} s, arriving at {LOAD:g} times what one pool can do.",
    ASSUMED,
    "{rows} seeds.",
)


FIG12 = Experiment(
    name="kubecomp-fig12",
    summary="normalised wait on one to six pools, configurable and fixed, on a synthetic trace",
    parts=(ExperimentPart("rows", "every trace at every scale", SEEDS, tasks_12, run_12, flat),),
    title="Fig. 12: normalised wait under cluster scales",
    notes=NOTES_12,
    figures=figures_12,
    comparisons=comparisons_12,
)
"""Fig. 12 of the KubeComp paper."""

# Fig. 13 --------------------------------------------------------------------------------------------------------------

INTERVALS_S = (30, 60, 120)
POLICIES = (Policy.NONE, Policy.BEST_FIT, Policy.LEAST_DEMAND, Policy.BOTH)
EACH = 10
NODES, GPUS_PER_NODE = 5, 6

Task13 = tuple[int, int]


def tasks_13(seeds: int) -> list[Task13]:
    """Every interval with every seed."""
    return [(interval_s, seed) for interval_s in INTERVALS_S for seed in range(1, seeds + 1)]


def run_13(task: Task13) -> list[dict[str, Any]]:
    """The same jobs under each policy."""
    interval_s, seed = task
    jobs = drawn(dict.fromkeys(GPUS, EACH), f"fig13/{seed}", interval_s=interval_s)
    found = []
    for policy in POLICIES:
        rng = random.Random(f"fig13/{interval_s}/{seed}/{policy.value}")
        done = Simulation(nodes_of((GPUS_PER_NODE,) * NODES), jobs, True, rng, policy).run()
        wait_s = fmean(job.wait_s or 0.0 for job in done)
        row = {"interval_s": interval_s, "policy": policy.value, "seed": seed}
        found.append({**row, "moved_gpus": _moved(done), "mean_wait_s": wait_s})
    return found


def _moves(rows: Sequence[Row], interval_s: int, policy: Policy) -> list[float]:
    return [float(row["moved_gpus"]) for row in picked(rows, interval_s=interval_s, policy=policy.value)]


def comparisons_13(tables: Tables) -> list[Comparison]:
    """Each bar; and at how many intervals each policy moves fewer than none, and both fewest."""
    rows = tables["rows"]
    means = {(i, p): fmean(_moves(rows, i, p)) for i in INTERVALS_S for p in POLICIES}
    bars = [compared(f"GPUs moved: every {i} s, {p.value}", _moves(rows, i, p)) for i, p in means]
    fewer = [
        Comparison(
            f"intervals at which {policy.value} moves fewer than none",
            float(sum(means[i, policy] < means[i, Policy.NONE] for i in INTERVALS_S)),
            paper=float(len(INTERVALS_S)),
        )
        for policy in POLICIES[1:]
    ]
    fewest = sum(means[i, Policy.BOTH] <= min(means[i, p] for p in POLICIES) for i in INTERVALS_S)
    return [
        *bars,
        *fewer,
        Comparison("intervals at which both move fewest", float(fewest), paper=float(len(INTERVALS_S))),
    ]


def figures_13(tables: Tables) -> list[Figure]:
    """Bars by interval."""
    rows = tables["rows"]
    series = []
    for policy in POLICIES:
        means = [_mean(_moves(rows, interval_s, policy)) for interval_s in INTERVALS_S]
        series.append(Series(policy.value, tuple(mean for mean, _ in means), tuple(half for _, half in means)))
    places = tuple(f"{interval_s} s" for interval_s in INTERVALS_S)
    panel = Panel("GPUs moved by interval of jobs", tuple(series), places=places)
    return [Figure("kubecomp-fig13", "bars", "GPUs moved", (panel,))]


NOTES_13 = (
    "Five nodes with six GPUs each in one pool; 50 jobs, ten of each type, that arrive by chance every 30, 60 or 120 s "
    "on average. The same jobs under each policy.",
    ASSUMED,
    "{rows} seeds.",
)


FIG13 = Experiment(
    name="kubecomp-fig13",
    summary="GPUs moved under each policy of equation 1 and three intervals of jobs",
    parts=(ExperimentPart("rows", "every interval under every policy", SEEDS, tasks_13, run_13, flat),),
    title="Fig. 13: GPUs moved under policies and job intervals",
    notes=NOTES_13,
    figures=figures_13,
    comparisons=comparisons_13,
)
"""Fig. 13 of the KubeComp paper."""
