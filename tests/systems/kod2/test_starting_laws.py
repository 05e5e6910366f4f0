"""The laws on what KOD2's operator starts, grows and explains: lines that break them, and lines that must not."""

from __future__ import annotations

from typing import Any

import pytest

from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.invariant import ObservedState
from mews.kube.system.invariant import ClusterObjects
from mews.kube.system.journal import Line
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kod2.laws import laws
from tests.harness.invariants.law_runs import Said, layer_of
from tests.systems.kod2.test_laws import RUNS, created, enters, found, job, on_node, phase, placed, pod, state, workers

PLACED = [*enters(), state(1, "RUNNING", 2), placed(1, 0, 1), created(1, 0)]
"""Of two tasks one has its pod."""
LATER: Said = (30.0, "pod/default/z", "phase", {"uid": "z", "phase": "Pending", "reason": ""})


def other(t: float, event: str, name: str = "x", **fields: Any) -> Said:
    return (t, f"pod/default/{name}", event, {"uid": name, **fields})


def node(t: float, event: str, **fields: Any) -> Said:
    return (t, "node/n1", event, fields)


def told(t: float, reason: str, message: str, key: str = "a") -> Said:
    return (t, "tfjob-controller", "event", {"reason": reason, "object": f"tfjob/default/{key}", "message": message})


HELD = [other(0.5, "created"), other(0.5, "bound", node="n1"), other(0.5, "deleting", grace_s=30, finalizers=[])]
GONE = other(9, "deleted")


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param(PLACED, [(6, 5)], id="nothing is in its way"),
        pytest.param([*PLACED, created(1.5, 1)], [], id="made soon"),
        pytest.param([*PLACED, created(5, 1)], [(6, 5)], id="made late"),
        pytest.param([*HELD, *PLACED], [], id="somebody who leaves holds the room"),
        pytest.param([*HELD, *PLACED, GONE], [(10, 8)], id="nobody does any more"),
        pytest.param([*HELD[:2], *PLACED], [(8, 7)], id="somebody who stays"),
        pytest.param(
            [*PLACED, other(1, "created"), other(1, "bound", node="n1")], [], id="somebody took the room since"
        ),
        pytest.param([*PLACED, on_node(1, "rejected", 1)], [], id="turned away by its node"),
        pytest.param([*PLACED, job(1, "stalled", times=1)], [], id="held back"),
        pytest.param([*PLACED, told(1, "FailedCreatePod", "no")], [], id="not let in"),
        pytest.param([*PLACED, (1.0, "operator", "killed", {})], [], id="the operator is away"),
        pytest.param([node(0, "taints", taints=["a:NoSchedule"]), *PLACED], [], id="on a closed node"),
        pytest.param([node(0, "unschedulable", unschedulable=True), *PLACED], [], id="on a cordoned node"),
        pytest.param([node(0, "condition", type="Ready", status="False"), *PLACED], [], id="on a node that is away"),
        pytest.param([*PLACED, state(1, "COMPLETED", 2)], [], id="of a job that is over"),
        pytest.param([*PLACED, created(1, 1), phase(2, "Succeeded")], [], id="one has ended"),
        pytest.param(
            [*PLACED, created(1, 1), pod(2, "phase", 1, phase="Succeeded", reason=""), pod(3, "deleted", 1)],
            [],
            id="one has succeeded and is gone",
        ),
        pytest.param(
            [*PLACED, created(1, 1), pod(2, "phase", 1, phase="Failed", reason=""), pod(3, "deleted", 1)],
            [(9, 5)],
            id="one has failed and is gone",
        ),
    ],
)
def test_a_placed_task_has_its_pod_once_its_node_has_the_room(said: list[Said], named: list[tuple[int, int]]) -> None:
    assert found(1030, [*said, LATER]) == named


REFUSED = [*RUNS, on_node(2, "rejected", 1)]
AWAY = told(2, "OutOfcpu", "a-worker-1 was not taken by its node and is made anew: no room")


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([*REFUSED, pod(2, "deleting", 1)], [(10, 9)], id="nobody tells"),
        pytest.param([*REFUSED, AWAY, pod(2, "deleting", 1)], [], id="an event does"),
        pytest.param(
            [*REFUSED, told(2, "OutOfcpu", "a-worker-2 was"), pod(2, "deleting", 1)], [(11, 9)], id="of another"
        ),
        pytest.param([AWAY, *REFUSED, pod(2, "deleting", 1)], [], id="it was told before"),
        pytest.param([*RUNS, pod(2, "deleting", 1)], [], id="it was not turned away"),
        pytest.param([*REFUSED, state(2, "WAITING", 0), pod(2, "deleting", 1)], [], id="the job gives its room back"),
        pytest.param([*REFUSED, placed(2, 0, 2), pod(2, "deleting", 1)], [], id="its task is taken away"),
        pytest.param([*REFUSED, (2.0, "operator", "started", {}), pod(2, "deleting", 1)], [], id="before a start"),
    ],
)
def test_a_task_that_is_turned_away_is_told_of(said: list[Said], named: list[tuple[int, int]]) -> None:
    assert found(1031, said) == named


def obj(name: str, on: str = "n1", *, cpu: str = "1", phase: str = "Running", **spec: Any) -> dict[str, Any]:
    container = {"name": "tensorflow", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"nodeName": on, "containers": [container], **spec},
        "status": {"phase": phase},
    }


def host(name: str = "n1", cpu: str = "8", ready: str = "True", **spec: Any) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    status = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": ready}]}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


WORKERS = [obj("a-worker-0"), obj("a-worker-1")]
TWO = [*enters(), state(1, "RUNNING", 2), placed(1, 0, 1)]


def grown(
    said: list[Said] = TWO,
    pods: list[dict[str, Any]] = WORKERS,
    nodes: list[dict[str, Any]] | None = None,
    until: float = 90.0,
    **config: Any,
) -> list[tuple[int | None, float | None]]:
    """What law 1032 says once time has passed over these objects: the line that it names, and by when it was due."""
    law = next(each for each in laws(OperatorConfig(**config)) if each.number == 1032)
    view = ObservedState(Bounds.of({}, {}))
    for number, (t, actor, event, fields) in enumerate(said):
        law.on_line(Line(number, t, layer_of(actor, event), actor, event, dict(fields)), view)
    there = {each["metadata"]["name"]: each for each in nodes or [host()]}
    list(law.on_objects(2.0, ClusterObjects(there, {f"default/{p['metadata']['name']}": p for p in pods}, 0.0), view))
    return [(b.first.number if b.first else None, b.due_s) for b in law.on_time(until, view)]


def test_a_job_that_does_not_grow_into_room_is_reported_with_when_it_should_have() -> None:
    assert grown() == [(4, 2.0)]
    assert grown([*TWO, workers(3, 3, 2)]) == [(6, 63.001)]
    assert grown([*TWO, workers(3, 3, 2)], until=70.0) == []
    assert grown(until=13.0) == []


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"nodes": [host(cpu="2")]}, id="no room"),
        pytest.param({"pods": [*WORKERS, obj("x", cpu="6")]}, id="others have it"),
        pytest.param({"nodes": [host(unschedulable=True)]}, id="cordoned"),
        pytest.param({"nodes": [host(taints=[{"key": "a", "effect": "NoSchedule"}])]}, id="tainted"),
        pytest.param({"nodes": [host(ready="False")]}, id="away"),
        pytest.param({"said": [*enters(high=2), *TWO[4:]]}, id="at its maximum"),
        pytest.param({"said": [*TWO, *enters("b")]}, id="another job waits"),
        pytest.param({"said": [*TWO, job(1, "stalled", times=1)]}, id="held back"),
        pytest.param({"said": [*TWO, phase(1, "Succeeded")]}, id="finishing"),
        pytest.param({"said": [*TWO, placed(1, 0, 1, 2)]}, id="a task without its pod"),
        pytest.param({"said": [*TWO, (80.0, "operator", "started", {})]}, id="an operator that has just begun"),
        pytest.param({"pods": [obj("a-worker-0", nodeSelector={"a": "b"}), WORKERS[1]]}, id="choosy"),
        pytest.param({"scale_out": False}, id="not to grow"),
        pytest.param({"mode": "literal"}, id="by the printed algorithm"),
    ],
)
def test_a_job_that_has_cause_not_to_grow_is_none(how: dict[str, Any]) -> None:
    assert grown(**how) == []


BESIDE = [*enters("b", weight=0.9), state(1, "RUNNING", 2, "b"), *enters("a", weight=0.880797)]
LIGHT = "its 1 fixed task(s) and 2 worker(s) do not fit, and its weight {} lets it preempt nobody"


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        pytest.param(LIGHT.format("2") + ", and default/b runs with 2.2", False, id="as they are shown"),
        pytest.param(LIGHT.format("2"), True, id="nobody runs"),
        pytest.param(LIGHT.format("3") + ", and default/b runs with 2.2", True, id="another weight"),
        pytest.param(LIGHT.format("2") + ", and default/b runs with 4", True, id="another weight of the other"),
        pytest.param(LIGHT.format("2") + ", and default/c runs with 2.2", True, id="somebody who does not run"),
    ],
)
def test_a_job_is_told_the_weights_that_are_shown(message: str, wrong: bool) -> None:
    assert found(1033, [*BESIDE, told(2, "TooLight", message)]) == ([(9, 7)] if wrong else [])


def test_the_heaviest_job_that_runs_is_named() -> None:
    lighter = [*enters("c", weight=0.6), state(1, "RUNNING", 2, "c"), *BESIDE]
    assert found(1033, [*lighter, told(2, "TooLight", LIGHT.format("2") + ", and default/b runs with 2.2")]) == []
    assert found(1033, [*lighter, told(2, "TooLight", LIGHT.format("2") + ", and default/c runs with 0.405")]) == [
        (14, 12)
    ]


def test_a_job_waits_behind_one_that_waits() -> None:
    behind = "default/{} is ahead of it in the line and cannot be placed yet"
    assert found(1033, [*BESIDE, *enters("c"), told(2, "Behind", behind.format("c"))]) == []
    assert found(1033, [*BESIDE, told(2, "Behind", behind.format("b"))]) == [(9, 7)]


FORBIDDEN = told(1, "FailedCreatePod", 'Pod a-ps-0 is not let in: pods "a-ps-0" is forbidden: no such account')
FIRST = [*enters(), state(1, "RUNNING", 2), placed(1, 0, 1)]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([*FIRST, FORBIDDEN], [(6, 5)], id="it keeps its room"),
        pytest.param([*FIRST, state(1, "WAITING", 0), FORBIDDEN], [], id="it gives it back"),
        pytest.param([*FIRST, created(1, 0), FORBIDDEN], [], id="it has a pod"),
        pytest.param(
            [*FIRST, job(1, "condition", type="Running", status="True", reason=""), FORBIDDEN], [], id="it has run"
        ),
        pytest.param(
            [*FIRST, told(1, "FailedCreatePod", "Pod a-ps-0 is not let in: timeout")], [], id="for the moment"
        ),
    ],
)
def test_a_job_whose_pods_are_not_let_in_gives_its_room_back(said: list[Said], named: list[tuple[int, int]]) -> None:
    assert found(1034, said) == named


DELETED = told(2, "SuccessfulDeletePod", "Deleted pod: a-worker-1")


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([*RUNS, DELETED], [(9, 5)], id="one that lives"),
        pytest.param([*RUNS, pod(2, "phase", 1, phase="Failed", reason=""), DELETED], [], id="one that failed"),
        pytest.param([*RUNS, on_node(2, "rejected", 1), DELETED], [], id="one that was turned away"),
        pytest.param([*RUNS, placed(2, 0, 2), DELETED], [], id="of a task that is taken away"),
        pytest.param([*RUNS, DELETED, placed(2, 0, 2)], [], id="of a task that is taken away in that moment"),
        pytest.param([*RUNS, DELETED, told(2, "Resized", "a-worker-1 begin anew")], [], id="as the size changes"),
        pytest.param([*RUNS, state(2, "COMPLETED", 3), DELETED], [], id="of a job that is over"),
        pytest.param([*RUNS, job(2, "stalled", times=1), DELETED], [], id="of a job that is held back"),
    ],
)
def test_a_pod_of_a_placed_task_stays(said: list[Said], named: list[tuple[int, int]]) -> None:
    assert found(1035, [*said, LATER]) == named
