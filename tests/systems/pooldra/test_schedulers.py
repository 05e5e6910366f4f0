"""The experiment that has the kube-scheduler in place of ours: what it plays, and how it counts."""

from __future__ import annotations

from typing import Any

from mews.systems.pooldra.config import PoolDraConfig
from mews.systems.pooldra.experiment import schedulers
from mews.systems.pooldra.experiment.world import HAND_OVERS, scenario


def run(way: str, program: str, **changes: Any) -> dict[str, Any]:
    counts = {"pods": 20, "moves": 60, "lost": 1, "doubled": 0, "in_vain": 2, "violations": 0, "waits_s": [3.0, 5.0]}
    about = {"hand_over": way, "scheduler": program, "seed": 1, "verdict": "passed", "reason": ""}
    return {**about, **counts, **changes}


def test_both_schedulers_get_the_same_worlds_in_wall_clock_time() -> None:
    tasks = schedulers.tasks(range(1, 3))
    assert len(tasks) == 2 * 2 * len(HAND_OVERS)
    assert {task.speed for task in tasks} == {schedulers.SPEED}
    for ours, theirs in zip(tasks[::2], tasks[1::2], strict=True):
        assert (ours.scenario, ours.seed) == (theirs.scenario, theirs.seed)
        assert (ours.overrides, theirs.overrides) == ({}, {"stack.defaultScheduler.program": "kube-scheduler"})


def test_drivers_look_sooner_than_a_gpu_must_be_shown_and_keep_the_pace_of_the_world() -> None:
    """In wall-clock time no NVML tells them of a new GPU, and no speed divides their times."""
    for task in schedulers.tasks(range(1, 2)):
        pool = task.scenario["stack"]["pooldra"]
        whole = scenario(pool["handOver"], schedulers.LOAD, with_faults=False, seed=1)["stack"]["pooldra"]
        assert pool["pollS"] <= PoolDraConfig().appear_s / schedulers.SPEED
        assert pool["poolPollS"] * schedulers.SPEED == whole["poolPollS"]
        assert pool["keepS"] * schedulers.SPEED == PoolDraConfig().keep_s
        assert pool["retryS"] * schedulers.SPEED == PoolDraConfig().retry_s


def test_a_row_sums_the_runs_of_a_way_and_a_scheduler() -> None:
    results = [run(way, program) for _ in range(2) for way in HAND_OVERS for program in schedulers.PROGRAMS]
    rows = schedulers.rows(range(1, 3), results)
    assert len(rows) == 2 * len(HAND_OVERS)
    assert (rows[0]["runs"], rows[0]["passed"], rows[0]["lost"], rows[0]["moves"]) == (2, 2, 2, 120)
    assert rows[0]["p50_s"] == 5.0 * schedulers.SPEED


def test_where_there_is_no_kube_scheduler_nothing_is_compared() -> None:
    results = [
        run(way, program, verdict="passed" if program == "ours" else "skipped")
        for way in HAND_OVERS
        for program in schedulers.PROGRAMS
    ]
    found = schedulers.comparisons({"runs": schedulers.rows(range(1, 2), results)})
    assert {each.measured for each in found} == {None}
    assert {each.ours for each in found if each.name.endswith("moves")} == {60.0}
