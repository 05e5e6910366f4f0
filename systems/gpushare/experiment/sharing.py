"""Both user stories with whole GPUs and with shared ones, on the components themselves. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import (
    Comparison,
    Experiment,
    Figure,
    Panel,
    PlayedScenario,
    Row,
    ScenarioPart,
    ScenarioTask,
    Series,
    Tables,
)
from mews.kube.system.journal import Line
from mews.kube.system.statistics import interval

GPU_GIB = 15
"""What a GPU of 16276 MiB announces in whole GiB."""


class SharingStory(Struct, frozen=True):
    """So many pods that need ``gib`` of GPU memory for ``duration_s``, one every ``interval_s`` on average."""

    pods: int
    gib: int
    duration_s: float
    interval_s: float


STORIES: Mapping[str, SharingStory] = {
    "development": SharingStory(24, 4, 1800.0, 120.0),
    "inference": SharingStory(24, 2, 1200.0, 60.0),
}
MODES = ("whole", "shared")
SCARCE = 4
"""GPUs of the node on which waits are measured; on the other each pod could have one of its own."""

POLL_S = 30
"""How often the device plugin looks at its GPUs, of which none changes here."""

METRICS = {
    "gpus_needed": "GPUs needed for nobody to wait",
    "mean_wait_s": f"mean wait on {SCARCE} GPUs, s",
    "utilisation": f"needed share of the memory of GPUs in use, {SCARCE} GPUs",
}


def document(story: str, mode: str, gpus: int, seed: int) -> dict[str, Any]:
    """Return the story on one node with so many GPUs: a pod asks for what it needs, or for all of one GPU."""
    assumed = STORIES[story]
    rng = random.Random(f"{story}/{seed}")
    jobs, arrival_s = [], 0.0
    for number in range(assumed.pods):
        jobs.append({"job": f"p{number:02}", "type": story, "arrival": round(arrival_s)})
        arrival_s += rng.expovariate(1 / assumed.interval_s)
    devices = [{"id": str(n), "uuid": f"GPU-node-{n}", "model": "P100-16GB", "memory_mib": 16276} for n in range(gpus)]
    memory = assumed.gib if mode == "shared" else GPU_GIB
    announced = {"aliyun.com/gpu-mem": str(GPU_GIB * gpus)}
    return {
        "apiVersion": "mews/v1",
        "kind": "Scenario",
        "metadata": {"name": f"{story}-{mode}-{gpus}"},
        "hardware": {
            "apiVersion": "mews/v1",
            "kind": "Hardware",
            "metadata": {"name": f"one-node-{gpus}"},
            "profile": "instant",
            "hosts": [{"name": "node", "cpus": 256, "memory_mib": 1048576, "devices": devices}],
            "chassis": [{"name": "A", "index": 0, "slots": 1, "ports": {"1": None}, "devices": []}],
        },
        "stack": {"kubecomp": None, "gpushare": {"unit": "GiB", "pollS": POLL_S}},
        "bounds": {"scheduled_s": None},
        "timeout": "24h",
        "workload": {
            "types": {story: {"gpus": memory, "cpus": 1}},
            "duration": assumed.duration_s,
            "jobs": jobs,
            "pod": {"schedulerName": "default-scheduler", "resource": "aliyun.com/gpu-mem"},
        },
        "steps": [
            {
                "wait": {
                    "object": {"kind": "Node", "metadata": {"name": "node"}, "status": {"allocatable": announced}}
                },
                "timeout": "2m",
            },
            {"workload": "run"},
        ],
    }


def tasks(seeds: range) -> list[ScenarioTask]:
    """Return every story in both modes, where GPUs are scarce and where they are not; the same arrivals in all four."""
    return [
        task_of(story, mode, gpus, seed)
        for story, assumed in STORIES.items()
        for mode in MODES
        for gpus in (SCARCE, assumed.pods)
        for seed in seeds
    ]


def task_of(story: str, mode: str, gpus: int, seed: int) -> ScenarioTask:
    """Return one run."""
    about = {"story": story, "mode": mode, "gpus": gpus, "seed": seed}
    return ScenarioTask(document(story, mode, gpus, seed), seed, about=about)


def keep(task: ScenarioTask, played: PlayedScenario) -> dict[str, Any]:
    """Return the peak of GPUs in use, and which share of their memory was needed while they were."""
    peak, used_s, needed_s = _occupied(played.lines, STORIES[task.about["story"]].gib)
    return {
        **task.about,
        "peak_gpus": peak,
        "mean_wait_s": played.metrics["mean_wait_s"],
        "makespan_s": played.metrics["makespan_s"],
        "utilisation": needed_s / (used_s * GPU_GIB) if used_s else 0.0,
    }


def _occupied(lines: Iterable[Line], gib: int) -> tuple[int, float, float]:
    """Return the most GPUs that held a pod at once; GPU seconds in use; GiB seconds that pods needed of them."""
    pods: dict[str, str] = {}
    peak, used_s, needed_s, since_s = 0, 0.0, 0.0, 0.0
    for line in lines:
        if line.layer != "kubelet" or line.event not in ("allocated", "pod-ended"):
            continue
        used_s += len(set(pods.values())) * (line.t - since_s)
        needed_s += len(pods) * gib * (line.t - since_s)
        since_s = line.t
        if line.event == "allocated":
            pods[line.fields["pod"]] = line.fields["devices"][0].rpartition("-_-")[0]
        else:
            pods.pop(line.fields["pod"], None)
        peak = max(peak, len(set(pods.values())))
    return peak, used_s, needed_s


def rows(seeds: range, results: Sequence[Row]) -> list[Row]:
    """Return one a run."""
    return list(results)


def values(table: Sequence[Row], story: str, mode: str, metric: str) -> list[float]:
    """Return a metric over the seeds."""
    gpus = STORIES[story].pods if metric == "gpus_needed" else SCARCE
    key = "peak_gpus" if metric == "gpus_needed" else metric
    return [float(row[key]) for row in picked(table, story=story, mode=mode, gpus=gpus)]


def comparisons(tables: Tables) -> list[Comparison]:
    """Return a row for each metric of each story, with whole and with shared GPUs."""
    return [
        compared(f"{story}, {mode}: {text}", values(tables["runs"], story, mode, metric))
        for story in STORIES
        for metric, text in METRICS.items()
        for mode in MODES
    ]


def figures(tables: Tables) -> list[Figure]:
    """Return a figure a metric, bars by story."""
    found = []
    for metric, text in METRICS.items():
        series = []
        for mode in MODES:
            cells = [values(tables["runs"], story, mode, metric) for story in STORIES]
            known = [interval(each) if len(each) > 1 else (each[0], each[0], each[0]) for each in cells]
            spread = tuple(high - mean for mean, _, high in known)
            series.append(Series(mode, tuple(mean for mean, _, _ in known), spread))
        panel = Panel(text, tuple(series), places=tuple(STORIES))
        found.append(Figure(f"gpushare-{metric.replace('_', '-')}", "bars", text, (panel,)))
    return found


_ASSUMED = "; ".join(
    f"{name}: {s.pods} pods that need {s.gib} of a GPU's {GPU_GIB} GiB for {s.duration_s:.0f} s, one every "
    f"{s.interval_s:.0f} s on average"
    for name, s in STORIES.items()
)
NOTES = (
    f"The design tells both stories without numbers; these are assumed. {_ASSUMED}.",
    "Whole: each pod asks for all memory of a GPU, as with the resource of NVIDIA's plugin; shared: for what it "
    "needs. Cores are taken as proportional to memory, as the design does. {runs} seeds.",
)


SHARING = Experiment(
    name="gpushare-sharing",
    summary="GPUs needed, wait and utilisation of both user stories: whole GPUs against shared ones",
    parts=(ScenarioPart("runs", "every story, whole and shared", 5, tasks, keep, rows),),
    title="Sharing GPUs: whole against shared",
    notes=NOTES,
    figures=figures,
    comparisons=comparisons,
)
"""Both user stories of the GPU sharing design."""
