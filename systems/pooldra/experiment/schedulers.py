"""``mews experiment attach-before-bind-schedulers``: some of the same worlds with the unmodified kube-scheduler, in
wall-clock time. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from mews.kube.system.comparing import picked
from mews.kube.system.experiment import (
    Comparison,
    Experiment,
    PlayedScenario,
    Row,
    ScenarioPart,
    ScenarioTask,
    Tables,
)
from mews.systems.pooldra.config import PoolDraConfig
from mews.systems.pooldra.experiment.hand_over import quantile
from mews.systems.pooldra.experiment.measures import measured
from mews.systems.pooldra.experiment.world import COUNTED_POD, HAND_OVERS, POOL_POLL_S, scenario

PROGRAMS = ("ours", "kube-scheduler")
LOAD = 0.7
SPEED = 10.0
"""The scheduler's own times, such as its look at binding conditions every 5 s, are not faster."""
_DIVIDED = {"keepS": PoolDraConfig().keep_s, "retryS": PoolDraConfig().retry_s, "poolPollS": float(POOL_POLL_S)}
IN_WALL_CLOCK: Mapping[str, float] = {**{key: value / SPEED for key, value in _DIVIDED.items()}, "pollS": 1.0}
"""No speed divides the drivers' times. Nor does NVML tell a node's driver of new GPUs there
(``mews.kube.nvml_library``), so that it must look more often than within ``appearS``."""
_OPTION = "stack.defaultScheduler.program"
_COUNTED = ("pods", "moves", "lost", "doubled", "in_vain", "violations")
_Run = Mapping[str, Any]


def tasks(seeds: range) -> list[ScenarioTask]:
    """Return every way with either scheduler, without faults."""
    found = []
    for seed in seeds:
        for way in HAND_OVERS:
            world = scenario(way, LOAD, with_faults=False, seed=seed)
            world["stack"]["pooldra"].update(IN_WALL_CLOCK)
            for program in PROGRAMS:
                about = {"hand_over": way, "scheduler": program, "seed": seed}
                overrides = {} if program == "ours" else {_OPTION: program}
                found.append(ScenarioTask(world, seed, overrides, about, speed=SPEED))
    return found


def keep(task: ScenarioTask, played: PlayedScenario) -> dict[str, Any]:
    """Return the measures of a run."""
    found: dict[str, Any] = to_builtins(measured(played.lines, f"{COUNTED_POD}-"))
    return {**task.about, "verdict": played.verdict, "reason": played.reason, **found}


def rows(seeds: range, results: Sequence[_Run]) -> list[Row]:
    """Return one a way and scheduler; ``skipped`` where there is no kube-scheduler."""
    found: list[Row] = []
    for way in HAND_OVERS:
        for program in PROGRAMS:
            runs = picked(results, hand_over=way, scheduler=program)
            waits = [wait_s for run in runs for wait_s in run["waits_s"]]
            sums = {key: sum(run[key] for run in runs) for key in _COUNTED}
            verdicts = {word: sum(run["verdict"] == word for run in runs) for word in ("passed", "skipped")}
            row = {"hand_over": way, "scheduler": program, "runs": len(runs), **verdicts, **sums}
            found.append(
                {**row, "violations": sum(run["violations"] for run in runs), "p50_s": SPEED * quantile(waits, 0.5)}
            )
    return found


def comparisons(tables: Tables) -> list[Comparison]:
    """Return the kube-scheduler's number as the measured one."""
    found = []
    for way in HAND_OVERS:
        (ours,) = picked(tables["runs"], hand_over=way, scheduler="ours")
        (theirs,) = picked(tables["runs"], hand_over=way, scheduler="kube-scheduler")
        for key in ("passed", *_COUNTED, "p50_s"):
            measured_ = None if theirs["skipped"] else float(theirs[key])
            found.append(Comparison(f"{way}: {key}", float(ours[key]), measured=measured_))
    return found


NOTES = (
    f"The worlds of attach-before-bind at load {LOAD:g} without faults, {{runs}} seeds, in wall-clock time at "
    f"{SPEED:g} times the speed; the scheduler is the included one, or the kube-scheduler of the release (column "
    "measured).",
    f"The drivers' times are divided by {SPEED:g}, too. A scheduler looks at binding conditions every 5 s, whatever "
    "the speed: waits (p50_s, in emulated seconds) are longer than in virtual time.",
)

SCHEDULERS = Experiment(
    name="attach-before-bind-schedulers",
    summary="some worlds of attach-before-bind with the unmodified kube-scheduler, in wall-clock time",
    parts=(ScenarioPart("runs", "every way with either scheduler", 1, tasks, keep, rows, may_fail=True),),
    title="Attach before bind: the included scheduler and kube-scheduler",
    notes=NOTES,
    comparisons=comparisons,
)
"""Whether what the included scheduler comes to holds for the published one."""
