"""The experiment on hand-overs: its pods, and what it reads in a journal."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.system.journal import Line
from mews.systems.pooldra.experiment import hand_over
from mews.systems.pooldra.experiment.measures import Measures, measured
from mews.systems.pooldra.experiment.world import COUNTED, COUNTED_POD, FILL_S, GPUS, LOADS, arrivals, scenario

UUID, OTHER = "GPU-1", "GPU-2"
NAMES = {"pool": "chassis-0", "node": "", "gpus": {"a": UUID, "b": OTHER}}
ON_NODE = {"pool": "host-1", "node": "host-1", "gpus": {"a": UUID}}


def read(*events: tuple[str, str, str, dict[str, Any]]) -> Measures:
    told = [("api", "slice/p", "gpus-offered", NAMES), ("api", "slice/n", "gpus-offered", ON_NODE), *events]
    lines = [Line(n, float(n), layer, actor, event, fields) for n, (layer, actor, event, fields) in enumerate(told)]
    return measured(lines, "pod-")


def allocated(uid: str, *names: str) -> tuple[str, str, str, dict[str, Any]]:
    alone = [f"gpu.nvidia.com/{name}" for name in names]
    return "api", f"claim/default/{uid}", "claim-allocated", {"claim": uid, "uid": uid, "alone": alone}


def freed(uid: str) -> tuple[str, str, str, dict[str, Any]]:
    return "api", f"claim/default/{uid}", "claim-freed", {"claim": uid, "uid": uid}


def prepared(uid: str, name: str) -> tuple[str, str, str, dict[str, Any]]:
    return "kubelet", "kubelet/host-1", "claim-prepared", {"claim": uid, "uid": uid, "alone": [name]}


def moved(event: str) -> tuple[str, str, str, dict[str, Any]]:
    return "chassis", "chassis/A", event, {"uuid": UUID}


def test_a_claim_loses_its_gpu_to_another_between_two_allocations() -> None:
    story = [allocated("c", "chassis-0/a"), moved("attached"), freed("c"), allocated("thief", "host-1/a")]
    assert read(*story).lost == 1
    assert read(*story[:3], allocated("c", "host-1/a")).lost == 0
    assert read(*story[:3], allocated("other", "chassis-0/b"), allocated("c", "host-1/a")).lost == 0


def test_a_gpu_that_was_not_attached_or_was_used_is_no_loss() -> None:
    assert read(allocated("c", "chassis-0/a"), freed("c"), allocated("other", "chassis-0/a")).lost == 0
    story = [allocated("c", "chassis-0/a"), moved("attached"), prepared("c", "chassis-0/a"), freed("c")]
    assert read(*story, allocated("next", "host-1/a")).lost == 0


def test_a_gpu_under_two_names_is_given_twice() -> None:
    assert read(allocated("c", "chassis-0/a"), allocated("other", "host-1/a")).doubled == 1
    assert read(allocated("c", "chassis-0/a"), allocated("other", "chassis-0/b")).doubled == 0
    assert read(allocated("c", "chassis-0/a"), freed("c"), allocated("other", "host-1/a")).doubled == 0


def test_a_gpu_that_goes_back_unused_was_moved_in_vain() -> None:
    unused = read(moved("attached"), moved("detached"))
    assert (unused.moves, unused.in_vain) == (1, 1)
    used = read(moved("attached"), prepared("c", "host-1/a"), moved("detached"), moved("attached"))
    assert (used.moves, used.in_vain) == (2, 0)
    assert read(moved("detached")).in_vain == 0


def test_waits_are_those_of_counted_pods() -> None:
    created = [("api", f"pod/default/{name}", "created", {}) for name in ("pod-0", "early-0")]
    running = [("api", f"pod/default/{name}", "phase", {"phase": "Running"}) for name in ("pod-0", "early-0")]
    found = read(*created, *running, ("invariant", "93", "violated", {}))
    assert (found.pods, found.waits_s, found.violations) == (2, [2.0], 1)


@pytest.mark.parametrize("load", LOADS)
def test_pods_ask_for_the_load_and_do_not_hang_on_the_way(load: float) -> None:
    early = [sum(pod.gpus for pod in arrivals(load, seed) if pod.at_s < FILL_S) for seed in range(200)]
    assert sum(early) / 200 == pytest.approx(load * GPUS, rel=0.05)
    late = [pod for seed in range(200) for pod in arrivals(load, seed) if pod.at_s >= FILL_S]
    spans = [max(pod.at_s for pod in arrivals(load, seed)) - FILL_S for seed in range(200)]
    assert sum(pod.gpus * pod.runs_s for pod in late) / sum(spans) / GPUS == pytest.approx(load, rel=0.08)
    assert len(late) == 200 * COUNTED
    ways = [scenario(way, load, with_faults=True, seed=3)["steps"] for way in hand_over.HAND_OVERS]
    assert ways[0] == ways[1] == ways[2]


def test_a_cell_has_intervals_and_sums() -> None:
    runs = [
        {"hand_over": way, "load": load, "faults": faults, "seed": seed, "verdict": "passed", "reason": "",
         "waits_s": [10.0 * seed, 20.0], "pods": 10, "moves": 20, "in_vain": seed, "lost": 1, "doubled": 2,
         "violations": 0}
        for way, load, faults in hand_over.CELLS
        for seed in (1, 2, 3)
    ]  # fmt: skip
    (first, *others) = hand_over.rows(range(1, 4), runs)
    assert len(others) == len(hand_over.CELLS) - 1
    assert (first["runs"], first["failed"], first["pods"], first["doubled"]) == (3, 0, 30, 6)
    assert first["in_vain_per_1000_moves"] == pytest.approx(100.0)
    assert first["in_vain_per_1000_moves_low"] < 100.0 < first["in_vain_per_1000_moves_high"]
    assert (first["lost_per_1000_pods"], first["wait_p50_s"], first["wait_p99_s"]) == (100.0, 20.0, 30.0)
    tables = {"cells": hand_over.rows(range(1, 4), runs)}
    assert len(hand_over.comparisons(tables)) == 6 * len(hand_over.CELLS)
    assert all(len(panel.series) == 3 for figure in hand_over.figures(tables) for panel in figure.panels)


def test_tasks_name_their_cell() -> None:
    tasks = hand_over.tasks(range(1, 3))
    assert len(tasks) == 2 * len(hand_over.CELLS)
    assert {(task.about["hand_over"], task.about["load"], task.about["faults"]) for task in tasks} == set(
        hand_over.CELLS
    )
    assert all(str(each.scenario).count(f"{COUNTED_POD}-") >= COUNTED for each in tasks)
