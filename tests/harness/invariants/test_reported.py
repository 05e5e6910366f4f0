"""Laws 76 and 77: what is done to an object is reported by an event on it."""

from __future__ import annotations

from typing import Any

import pytest

from mews.harness.invariants.reported import Reports
from mews.kube.system.invariant import Invariant
from mews.systems.kod2.laws.announced import Announced
from tests.harness.invariants.law_runs import Said, breaches, numbers

POD, NODE, JOB = "pod/default/a", "node/n", "tfjob/default/j"


def said(t: float, about: str, reason: str) -> Said:
    return (t, "somebody", "event", {"object": about, "reason": reason, "type": "Normal", "message": ""})


def condition(t: float, about: str, kind: str, status: str, reason: str) -> Said:
    return (t, about, "condition", {"type": kind, "status": status, "reason": reason})


TAKEN = condition(1, POD, "DisruptionTarget", "True", "PreemptionByScheduler")
EVICTED = condition(1, POD, "DisruptionTarget", "True", "DeletionByTaintManager")
UNTOLERATED = condition(1, POD, "DisruptionTarget", "True", "DeletionByDeviceTaintManager")
GONE = (1.0, POD, "deleting", {})
LATER = (2.0, "pod/default/b", "deleted", {})


@pytest.mark.parametrize(
    ("law", "act", "reason"),
    [
        (Reports, TAKEN, "Preempted"),
        (Reports, EVICTED, "TaintManagerEviction"),
        (Reports, UNTOLERATED, "DeviceTaintManagerEviction"),
        (Reports, condition(1, NODE, "Ready", "True", "KubeletReady"), "NodeReady"),
        (Reports, condition(1, NODE, "Ready", "Unknown", "NodeStatusUnknown"), "NodeNotReady"),
        (Reports, condition(1, POD, "Ready", "False", ""), "NodeNotReady"),
        (Announced, condition(1, JOB, "Stalled", "True", "FailedCreatePod"), "FailedCreatePod"),
        (Announced, condition(1, JOB, "Succeeded", "True", "TFJobSucceeded"), "TFJobSucceeded"),
        (Announced, (1.0, JOB, "state", {"state": "RUNNING", "workers": 2}), "Placed"),
    ],
)
def test_each_act_has_its_event(law: type[Invariant[Any]], act: Said, reason: str) -> None:
    about = act[1]
    assert numbers(breaches(law(), [act], until=9)) == [(0, 0)]
    assert numbers(breaches(law(), [act, LATER])) == [(1, 0)]
    assert numbers(breaches(law(), [act, said(1, about, "Other"), LATER])) == [(1, 0)]
    assert numbers(breaches(law(), [act, said(2, about, reason), LATER])) == [(1, 0)]
    assert not breaches(law(), [act, said(1, about, reason), LATER])
    assert not breaches(law(), [said(1, about, reason), act, LATER])


def test_the_last_line_of_the_moment_that_came_without_the_event_is_named() -> None:
    assert numbers(breaches(Reports(), [TAKEN, GONE, LATER])) == [(1, 0)]
    other = said(1, "pod/default/b", "Other")
    assert numbers(breaches(Reports(), [TAKEN, GONE, said(1, POD, "Killing"), other, LATER])) == [(2, 0)]


def test_a_node_is_reported_where_a_controller_tends_nodes() -> None:
    made, kept = (1.0, NODE, "created", {"allocatable": {}}), said(1, NODE, "NodeReady")
    tended = (3.0, NODE, "taints", {"taints": []})
    assert numbers(breaches(Reports(), [made, kept, LATER, tended])) == [(1, 0)]
    assert not breaches(Reports(), [made, kept, LATER, (3.0, NODE, "taints", {"taints": ["k:NoSchedule"]})])
    assert not breaches(Reports(), [made, said(1, NODE, "RegisteredNode"), LATER, tended])


def test_a_pod_that_is_preempted_bears_the_condition_before_it_is_deleted() -> None:
    event = said(1, POD, "Preempted")
    assert numbers(breaches(Reports(), [GONE, event])) == [(0, None)]
    assert not breaches(Reports(), [TAKEN, GONE, event])
    assert not breaches(Reports(), [event])  # one that waited at Permit is not deleted
    again = [TAKEN, GONE, event, (2.0, POD, "deleted", {}), (3.0, POD, "created", {}), GONE]
    assert numbers(breaches(Reports(), [*again, said(4, POD, "Preempted")])) == [(5, None)]


def test_only_the_first_of_a_reason_is_news() -> None:
    again = condition(5, POD, "DisruptionTarget", "True", "PreemptionByScheduler")
    assert not breaches(Reports(), [TAKEN, said(1, POD, "Preempted"), again], until=9)


@pytest.mark.parametrize("at", [0, 1])
def test_who_is_down_reports_nothing(at: int) -> None:
    lines = [TAKEN, LATER]
    assert not breaches(Reports(), [*lines[:at], (1.0, "default-scheduler", "killed", {}), *lines[at:]])


def test_a_kubelet_that_is_down_has_no_word_in_what_others_report() -> None:
    assert numbers(breaches(Reports(), [(0.0, "kubelet/n", "killed", {}), TAKEN, LATER])) == [(2, 1)]
    ready = condition(1, NODE, "Ready", "True", "KubeletReady")
    assert not breaches(Reports(), [ready, (1.0, "kubelet/n", "killed", {}), LATER])


def test_a_condition_that_a_kubelet_writes_is_no_act() -> None:
    assert not breaches(Reports(), [condition(1, POD, "Ready", "False", "ContainersNotReady"), LATER])
