"""Workloads 1 to 4 on the testbed under the paper's three settings: what Figs. 8 to 10 are drawn from. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from mews.kube.system.experiment import PlayedScenario, Row, ScenarioTask
from mews.systems.kubecomp.experiment.simulator import Simulation, nodes_of
from mews.systems.kubecomp.experiment.workloads import WORKLOADS, WorkloadJob, drawn, entries, types
from mews.systems.kubecomp.testbed import BASE_S, GATE_S, PER_IDLE_GPU_S, RECONFIGURE_S, ROOM_S

Cell = tuple[str, str]
SETTINGS = ("pool", "4-4", "0-8")
REPLAYED = ("W1", "W3")
"""Those whose arrivals and results were measured: ``scenarios/testbed``. The others are drawn from Table II."""

SPLITS: Mapping[str, tuple[int, int]] = {"pool": (4, 4), "4-4": (4, 4), "0-8": (0, 8)}
MEASURED: Mapping[Cell, tuple[float, float]] = {
    ("W1", "pool"): (392.4, 4.10),
    ("W1", "4-4"): (391.5, 4.13),
    ("W1", "0-8"): (1032.8, 2.37),
    ("W3", "pool"): (705.5, 6.05),
    ("W3", "4-4"): (854.1, 5.49),
    ("W3", "0-8"): (989.3, 4.89),
}
"""Mean completion time, s, and mean number of GPUs in use of each measured run."""

SEEDS = 5
CELLS: tuple[Cell, ...] = tuple((workload, setting) for workload in WORKLOADS for setting in SETTINGS)


def tasks(seeds: range) -> list[ScenarioTask]:
    """Return every workload in every setting with every seed; of a drawn one all settings get the same jobs."""
    return [task_of(workload, setting, seed) for workload, setting in CELLS for seed in seeds]


def task_of(workload: str, setting: str, seed: int) -> ScenarioTask:
    """Return one run."""
    about = {"workload": workload, "setting": setting, "seed": seed}
    if workload in REPLAYED:
        return ScenarioTask(f"testbed/{workload.lower()}-{setting}", seed, about=about)
    changes = {
        "metadata.name": f"testbed-{workload.lower()}-{setting}",
        "timeout": "6h",
        "workload.trace": None,
        "workload.jobs": entries(jobs_of(workload, setting, seed)),
        "workload.types": types(),
        **({"hardware": "testbed"} if setting == "pool" else {}),
    }
    return ScenarioTask(f"testbed/w1-{setting}", seed, changes, about)


def jobs_of(workload: str, setting: str, seed: int) -> Sequence[WorkloadJob]:
    """Return those of a drawn workload that the setting can run: no node of the even split ever has eight GPUs."""
    return [job for job in drawn(WORKLOADS[workload], seed) if (job.type, setting) != ("E", "4-4")]


def keep(task: ScenarioTask, played: PlayedScenario) -> dict[str, Any]:
    """Return the numbers of a run, where its first job went, and what was measured in its place."""
    metrics = played.metrics
    if "makespan_s" not in metrics:
        raise ValueError(f"{task.about}: {played.verdict}: {played.reason}")
    first = next(line.fields["node"] for line in played.lines if line.layer == "api" and line.event == "bound")
    return {
        **task.about,
        "verdict": played.verdict,
        "first": first,
        "mean_wait_s": metrics["mean_wait_s"],
        "mean_jct_s": metrics["mean_jct_s"],
        "mean_gpus_used": metrics["mean_gpus_used"],
        "moved_gpus": metrics["moved_gpus"],
        "measured_wait_s": played.expected.get("mean_wait_s"),
        "gpu_used_cdf": metrics["gpu_used_cdf"],
        "simulated_jct_s": simulated_jct_s(task.about, played.jobs),
    }


def simulated_jct_s(about: Mapping[str, Any], jobs: Iterable[Row]) -> float:
    """Return the mean completion time of the same jobs on the simulator. They come as the testbed's driver sends them,
    the next one when none is Pending: which node has room depends on it (W4 on 4-4 is 10 % off without)."""
    given = [
        WorkloadJob(job["job"], job["type"], job["gpus"], int(job["cpus"]), job["arrival_s"], job["duration_s"])
        for job in jobs
    ]
    rng = random.Random("{workload}/{setting}/{seed}".format(**about))
    nodes = nodes_of(SPLITS[about["setting"]])
    pooled = about["setting"] == "pool"
    done = Simulation(nodes, given, pooled, rng, start_s=_start_s, gate_s=GATE_S, reconfigure_s=RECONFIGURE_S).run()
    return fmean(job.jct_s for job in done if job.jct_s is not None)


def _start_s(idle: int) -> float:
    """Return what starting a pod costs on the testbed, where the one that it waited for has just ended."""
    return ROOM_S + BASE_S + PER_IDLE_GPU_S * idle


def rows(seeds: range, results: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return one a run."""
    return list(results)


def tossed(runs: Iterable[Row], key: str) -> list[float]:
    """Return one number for each outcome of the first job's coin toss between two empty nodes, the mean of its runs: so
    that none counts for more because the seeds gave it more often."""
    by_first: dict[str, list[float]] = {}
    for run in runs:
        by_first.setdefault(run["first"], []).append(run[key])
    return [fmean(values) for values in by_first.values()]
