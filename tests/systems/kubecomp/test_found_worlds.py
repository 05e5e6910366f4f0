"""Worlds of the demo in which ``mews fuzz`` found something wrong, of KubeComp or of a law: the faults alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mews.scenarios
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.loader import load_scenario

DEMO = Path(mews.scenarios.__file__).parent / "demo.yaml"
ANNOUNCED, FIVE = "nodes announce their GPUs", "a pod wants five"


def played(*disruptions: dict[str, Any], seed: int = 1) -> Run:
    settings = [f"disruptions={json.dumps(disruptions)}", "judgedBy=laws", "tail=60", "quiet=30"]
    run = Engine(RunOptions()).run(load_scenario(DEMO, settings), seed)
    assert run.result.verdict == "passed", run.result.reason
    return run


def attached(run: Run) -> list[str]:
    return [line.fields["gpuid"] for line in run.lines if (line.layer, line.event) == ("chassis", "attached")]


def test_by_a_table_that_is_older_than_its_own_move_nothing_is_moved_again() -> None:
    old = {"chassis": "A", "add": {"kind": "stale-list", "count": 30}}
    run = played({"at": 2, "since": ANNOUNCED, "fault": old})
    assert attached(run) == ["0-000500"]
    assert not [line for line in run.lines if line.event == "xid"]


@pytest.mark.parametrize("count", [2, 6])
@pytest.mark.parametrize("kind", ["conflict", "server-error", "lost-answer"])
def test_the_annotations_of_a_bound_pod_are_taken_off_though_the_api_refuses_it_at_first(kind: str, count: int) -> None:
    fault = {"component": "scheduler", "add": {"kind": kind, "resource": "pods", "operation": "patch", "count": count}}
    run = played({"at": 1, "since": ANNOUNCED, "fault": fault})
    pod = [line for line in run.lines if line.actor == "pod/default/trainer"]
    bound = next(line.t for line in pod if line.event == "bound")
    cleared = next(
        line for line in pod if line.event == "annotations" and line.fields["annotations"]["dst_node"] is None
    )
    assert bound <= cleared.t < bound + 15
    fired = [line for line in run.lines if line.event == "fired"]
    assert len(fired) == count or kind == "lost-answer"


def test_a_host_begins_to_give_a_gpu_up_once_it_has_seen_it() -> None:
    dropped = {"kind": "dropped-connection", "operation": "attach", "count": 5, "when": "before"}
    played(
        {"at": 10.3, "since": FIVE, "restart": "reconfig-manager"},
        {"at": 0, "since": ANNOUNCED, "fault": {"chassis": "A", "add": dropped}},
    )


def test_what_somebody_else_edits_is_seen_at_the_next_reading() -> None:
    edited = {"edit": {"chassis": "A", "device": "000100", "port": "3"}}
    assert attached(played({"at": 1, "since": FIVE, "chassis": edited}))[0] == "0-000500"


def test_a_manager_that_the_api_has_told_to_come_later_is_late() -> None:
    later = {"component": "reconfig-manager", "add": {"kind": "too-many-requests", "retry_after_s": 10}}
    played(
        {"at": 0, "since": FIVE, "restart": "reconfig-manager"}, {"at": 0, "since": "it runs", "fault": later}, seed=1
    )


def test_a_gpu_that_the_host_of_a_pod_shows_is_not_moved_to_it_by_an_old_table() -> None:
    trainer = {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": {"falcon.com/gpu": "5"}}}
    spec = {"schedulerName": "kubecomp-scheduler", "restartPolicy": "Never", "containers": [trainer]}
    again = {"kind": "Pod", "metadata": {"name": "trainer"}, "spec": {**spec, "terminationGracePeriodSeconds": 1}}
    moved, gone = "one GPU moved, and only one", {"kind": "Pod", "name": "trainer", "wait": False, "missingOk": True}
    run = played(
        {
            "at": 2.0,
            "since": "nothing moves afterwards",
            "fault": {"chassis": "A", "add": {"kind": "stale-list", "count": 30}},
        },
        {"at": 1.0, "since": moved, "delete": {**gone, "gracePeriod": 0}},
        {"at": 6.0, "since": moved, "apply": again},
    )
    assert not [line for line in run.lines if line.event == "xid"]
    assert attached(run) == ["0-000500"]
    assert [line.event for line in run.lines if line.actor == "pod/default/trainer"].count("bound") == 2
