"""Laws of refusals, reasons, claims and cleared faults: streams that break them, and streams that do not."""

from __future__ import annotations

from typing import Any

import pytest

from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.controller_reports import ControllerReports
from mews.harness.invariants.fault_effects import FaultEffects
from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.kubelet_reports import KubeletReports
from mews.harness.invariants.placements import Placements
from mews.harness.invariants.pod_conditions import PodConditions
from mews.harness.invariants.reservations import ReservationsEnd
from mews.harness.invariants.single_claim import SingleClaim
from mews.kube.system.invariant import ClusterObjects
from mews.kube.system.journal import Line
from tests.harness.invariants.test_report_laws import (
    CHANGED,
    FIRED,
    KUBELET,
    READY,
    STARTS,
    SYSTEMS,
    Said,
    condition,
    firsts,
    judged,
    kubelet,
    node,
    pod,
    told,
)

GPU = "example.com/gpu"
LATER = node(60, "n9")


def there(name: str, gpus: int, t: float = 0.0) -> Said:
    return (t, "api", f"node/{name}", "created", {"allocatable": {GPU: str(gpus)}})


def asks(name: str, count: int, t: float = 1.0, on: str = "") -> Said:
    fields = {"uid": name, "scheduler": "default-scheduler", "node": on, "phase": "Pending", "requests": {GPU: count}}
    return (t, "api", f"pod/default/{name}", "created", fields)


def of(name: str, event: str, t: float, **fields: Any) -> Said:
    return (t, "api", f"pod/default/{name}", event, {"uid": name, **fields})


def refused(name: str, count: int, t: float = 2.0) -> Said:
    message = f"0/2 nodes are available: {count} Insufficient {GPU}. preemption: 0/2 nodes are available: 2 No victims."
    return told(t, "default-scheduler", "FailedScheduling", message, f"pod/default/{name}")


TWO = [there("n1", 2), there("n2", 4)]


@pytest.mark.parametrize(
    ("said", "first"),
    [
        pytest.param([asks("a", 3), refused("a", 2)], [3], id="one node has enough"),
        pytest.param([asks("a", 3), refused("a", 1)], [], id="the other one has not"),
        pytest.param([asks("a", 5), refused("a", 2)], [], id="none has"),
        pytest.param([asks("b", 2, on="n2"), asks("a", 3), refused("a", 2)], [], id="somebody has it"),
        pytest.param([asks("b", 2), asks("a", 3), refused("a", 2)], [], id="somebody may be on the way"),
        pytest.param(
            [asks("b", 2, on="n2"), of("b", "deleted", 2), asks("a", 3), refused("a", 2, 3)], [], id="just gone"
        ),
        pytest.param(
            [asks("b", 2, on="n2"), of("b", "deleted", 2), asks("a", 3), refused("a", 2, 9)], [5], id="long gone"
        ),
        pytest.param(
            [
                (0.5, "api", "node/n2", "allocatable", {"resource": GPU, "old": "4", "new": "2"}),
                (1.0, "api", "node/n2", "allocatable", {"resource": GPU, "old": "2", "new": "4"}),
                asks("a", 3),
                refused("a", 2, 3),
            ],
            [],
            id="it has just grown",
        ),
    ],
)
def test_a_pod_is_refused_only_where_what_it_asks_for_may_be_lacking(said: list[Said], first: list[int]) -> None:
    assert firsts(judged(Placements(), [*TWO, *said])) == first


@pytest.mark.parametrize(
    ("number", "reason", "says"),
    [
        (3, "PodCompleted", "by its condition Initialized"),
        (4, "PodCompleted", "by its condition Ready"),
        (6, "ContainersNotReady", "which no kubelet gives"),
        (9, "", "by its condition Ready, and not by all"),
        (11, "PodFailed", "is PodCompleted by its condition Initialized"),
    ],
)
def test_a_condition_has_a_reason_that_a_kubelet_gives(number: int, reason: str, says: str) -> None:
    t, layer, actor, event, fields = READY[number]
    changed = [*READY[:number], (t, layer, actor, event, {**fields, "reason": reason}), *READY[number + 1 :]]
    found = judged(PodConditions(), changed)
    assert any(says in each.what for each in found), [each.what for each in found]


def test_a_pod_is_completed_only_after_it_has_started() -> None:
    done = [line for line in READY if line[3] != "container-started" and line[0] in (0, 1, 20, 30)]
    assert [each.what for each in judged(PodConditions(), done)] == [
        "default/a is PodCompleted, and none of its containers has started"
    ]


def claim(t: float, event: str, **fields: Any) -> Said:
    return (t, "api", "claim/default/c", event, {"claim": "default/c", "uid": "c", **fields})


def test_an_allocation_without_a_device_breaks_29() -> None:
    assert firsts(judged(SingleClaim(), [claim(1, "claim-allocated", devices=[], alone=[])])) == [0]
    assert judged(SingleClaim(), [claim(1, "claim-allocated", devices=["d/p/x"], alone=[])]) == []


RESERVED = claim(1, "claim-reserved", pods=["a", "b"])
ENDED = pod(5, "phase", phase="Succeeded", reason="")
GONE = of("b", "deleted", 6)


@pytest.mark.parametrize(
    ("said", "first"),
    [
        pytest.param([RESERVED, ENDED, GONE], [2], id="nobody frees it"),
        pytest.param([RESERVED, ENDED, GONE, claim(6, "claim-freed")], [], id="it is freed"),
        pytest.param([RESERVED, ENDED], [], id="one uses it"),
        pytest.param([RESERVED, ENDED, GONE, claim(7, "claim-reserved", pods=["d"])], [], id="another one has it"),
        pytest.param([RESERVED, ENDED, GONE, of("b", "created", 8)], [], id="one of the name came"),
        pytest.param([RESERVED, ENDED, GONE, of("b", "created", 8), of("b", "deleted", 9)], [4], id="and went"),
        pytest.param([RESERVED, ENDED, GONE, (7.0, "component", "controller", "killed", {})], [], id="nobody is there"),
    ],
)
def test_a_claim_is_freed_once_its_pods_are_over(said: list[Said], first: list[int]) -> None:
    assert firsts(judged(ReservationsEnd(), said, until=30.0)) == first
    assert judged(ReservationsEnd(), said, until=14.0) == []


CLEARED: Said = (9, "fault", "chassis/A", "cleared", {"fault": "f1", "kind": "lost-uuid"})


def test_a_fault_that_is_cleared_takes_its_effect_back() -> None:
    back: Said = (9, "chassis", "chassis/A", "device-changed", {"gpuid": "0-1", "device": "1", "old_uuid": ""})
    moved: Said = (8, "chassis", "chassis/A", "detached", {"gpuid": "0-1", "device": "1"})
    other: Said = (8, "chassis", "chassis/A", "detached", {"gpuid": "0-2", "device": "2"})
    assert firsts(judged(FaultEffects(), [FIRED, CHANGED, other, CLEARED])) == [3]
    assert judged(FaultEffects(), [FIRED, CHANGED, back, CLEARED]) == []
    assert judged(FaultEffects(), [FIRED, CHANGED, moved, CLEARED]) == []
    assert judged(FaultEffects(), [CLEARED]) == []


def a_node(name: str, cpu: str = "4", **spec: Any) -> dict[str, Any]:
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": {"cpu": cpu, "pods": "2"}, "conditions": ready}
    return {"metadata": {"name": name, "labels": {"name": name}}, "spec": spec, "status": status}


def a_pod(name: str, cpu: str = "1", on: str = "", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    placed = {"nodeName": on} if on else {}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": metadata, "spec": {"containers": containers, **placed, **spec}, "status": {"phase": "Pending"}}


TAINTED = {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}
TOLERATES = {"tolerations": [{"key": "k", "operator": "Exists"}]}


def by_objects(said: list[Said], nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> list[str]:
    """What the law says of the last line, with these objects in its moment."""
    law, state = Placements(), ObservedState(Bounds(), SYSTEMS)
    for number, (t, layer, actor, event, fields) in enumerate([*TWO, *said]):
        assert not list(law.on_line(Line(number, t, layer, actor, event, fields), state))
    named, there = ({each["metadata"]["name"]: each for each in all_} for all_ in (nodes, pods))
    objects = ClusterObjects(named, {f"default/{name}": each for name, each in there.items()}, now_s=0.0)
    found = list(law.on_objects(t, objects, state))
    assert not list(law.on_objects(t, objects, state))
    return [each.what for each in found]


@pytest.mark.parametrize(
    ("node", "pods", "says"),
    [
        pytest.param(a_node("n1"), [a_pod("a", on="n1")], "", id="free"),
        pytest.param(a_node("n1", cpu="1"), [a_pod("a", "2", on="n1")], "has 1 of cpu, and whose pods ask 2", id="cpu"),
        pytest.param(
            a_node("n1"), [a_pod(name, on="n1") for name in "abc"], "has 2 of pods, and whose pods ask 3", id="pods"
        ),
        pytest.param(a_node("n1", **TAINTED), [a_pod("a", on="n1")], "closed to it", id="taint"),
        pytest.param(a_node("n1", **TAINTED), [a_pod("a", on="n1", **TOLERATES)], "", id="toleration"),
        pytest.param(a_node("n1", unschedulable=True), [a_pod("a", on="n1")], "closed to it", id="cordon"),
        pytest.param(
            a_node("n1"), [a_pod("a", on="n1", nodeSelector={"name": "n2"})], "selector does not match", id="selector"
        ),
    ],
)
def test_a_pod_is_bound_to_a_node_that_takes_it(node: dict[str, Any], pods: list[dict[str, Any]], says: str) -> None:
    said = [asks("a", 0), of("a", "bound", 9, node="n1")]
    found = by_objects(said, [node], pods)
    assert [says in each for each in found] == [True] * bool(says)
    changed = by_objects([*said, (9.0, "api", "node/n1", "taints", {"taints": []})], [node], pods)
    assert changed == (found if "selector" in says else [])
    unseen = [{**each, "spec": {**each["spec"], "nodeName": ""}} for each in pods]
    assert by_objects(said, [node], unseen) == []


def says_of(count: int, words: str) -> Said:
    message = f"0/2 nodes are available: {count} {words}. preemption: 0/2 nodes are available: 2 Insufficient cpu."
    return told(9.0, "default-scheduler", "FailedScheduling", message, "pod/default/a")


@pytest.mark.parametrize(
    ("words", "nodes", "pods", "most"),
    [
        ("Insufficient cpu", [a_node("n1"), a_node("n2", "8")], [a_pod("a", "6")], 1),
        ("Insufficient cpu", [a_node("n1"), a_node("n2", "8")], [a_pod("a", "6"), a_pod("b", "3")], 2),
        ("Insufficient cpu", [a_node("n1"), a_node("n2", "8")], [a_pod("a", "3"), a_pod("b", "3", on="n1")], 1),
        ("Too many pods", [a_node("n1")], [a_pod("a"), a_pod("b", on="n1")], 0),
        ("Too many pods", [a_node("n1")], [a_pod("a"), a_pod("b", on="n1"), a_pod("c", on="n1")], 1),
        ("node(s) had untolerated taint(s)", [a_node("n1"), a_node("n2", **TAINTED)], [a_pod("a")], 1),
        ("node(s) had untolerated taint(s)", [a_node("n1"), a_node("n2", **TAINTED)], [a_pod("a", **TOLERATES)], 0),
        ("node(s) were unschedulable", [a_node("n1"), a_node("n2", unschedulable=True)], [a_pod("a")], 1),
        (
            "node(s) didn't match Pod's node affinity/selector",
            [a_node("n1"), a_node("n2")],
            [a_pod("a", nodeSelector={"name": "n2"})],
            1,
        ),
    ],
)
def test_a_refusal_gives_no_reason_for_more_nodes_than_it_holds_for(
    words: str, nodes: list[dict[str, Any]], pods: list[dict[str, Any]], most: int
) -> None:
    assert by_objects([asks("a", 0), says_of(most, words)], nodes, pods) == []
    (what,) = by_objects([asks("a", 0), says_of(most + 1, words)], nodes, pods)
    assert f"{most + 1} {words}, and that holds for {most} of {len(nodes)}" in what
    for t, found in ((8.0, []), (2.0, [what])):
        changes = [(t, "api", f"node/{each['metadata']['name']}", "taints", {"taints": []}) for each in nodes]
        assert by_objects([asks("a", 0), *changes, says_of(most + 1, words)], nodes, pods) == (
            found if most < len(nodes) else [what]
        )


def job_pod(t: float, name: str, event: str, **fields: Any) -> Said:
    return of(name, event, t, **fields)


def job_makes(t: float, name: str) -> list[Said]:
    told_of = told(t, "job-controller", "SuccessfulCreate", f"Created pod: {name}", "job/default/j")
    return [job_pod(t, name, "created", node=""), told_of]


def job_ends(t: float, name: str, reason: str = "PodFailed") -> Said:
    return job_pod(t, name, "condition", type="Ready", status="False", reason=reason)


@pytest.mark.parametrize(
    ("between", "made_s", "named"),
    [
        pytest.param([], 20.0, True, id="too soon"),
        pytest.param([], 28.5, False, id="after its back-off"),
        pytest.param([job_ends(10, "b", "PodCompleted")], 20.0, False, id="one has succeeded"),
        pytest.param([of("a", "deleted", 12)], 19.0, False, id="one is gone"),
    ],
)
def test_a_job_waits_longer_after_each_failure(between: list[Said], made_s: float, named: bool) -> None:
    said = [
        *job_makes(0, "a"),
        job_ends(1, "a"),
        *job_makes(9.5, "b"),
        *between,
        job_ends(10, "b"),
        *job_makes(made_s, "c"),
    ]
    found = [each for each in judged(ControllerReports(), said) if "must pass" in each.what]
    assert firsts(found) == [len(said) - 2] * named


RUNS = [line for line in STARTS if line[3] != "pod-ended"]
DELETED = pod(20, "deleting", grace_s=30, finalizers=[])
ENDS = kubelet(25, "pod-ended", pod="default/a", uid="u")


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([condition(5, "Ready", "True"), DELETED], True, id="nobody was killed"),
        pytest.param(
            [condition(5, "Ready", "True"), DELETED, told(21, KUBELET, "Killing", "Stopping container main")],
            False,
            id="killed",
        ),
        pytest.param([condition(5, "Ready", "False"), DELETED], False, id="none ran"),
        pytest.param(
            [condition(5, "Ready", "True"), DELETED, condition(22, "Ready", "False", "PodCompleted")],
            False,
            id="ended by itself",
        ),
        pytest.param([condition(5, "Ready", "True")], False, id="not deleted"),
        pytest.param(
            [condition(5, "Ready", "True"), DELETED, (22.0, "component", KUBELET, "started", {})],
            False,
            id="a new kubelet",
        ),
    ],
)
def test_containers_of_a_ready_pod_are_killed_before_it_is_ended(said: list[Said], named: bool) -> None:
    stream = [*RUNS, *said, ENDS]
    assert firsts(judged(KubeletReports(), stream)) == [len(stream) - 1] * named


def shrinks(deleted: str, *, ready: tuple[str, ...], t: float = 30.0) -> list[Said]:
    """A ReplicaSet of two pods that run, of which these are ready, deletes one of them."""
    said: list[Said] = []
    for name in ("a", "b"):
        about = told(0, "replicaset-controller", "SuccessfulCreate", f"Created pod: {name}", "replicaset/default/r")
        said += [of(name, "created", 0, node="", phase="Pending"), about, of(name, "bound", 1, node="n1")]
        said += [of(name, "phase", 2, phase="Running", reason="")]
        status = "True" if name in ready else "False"
        said += [of(name, "condition", 3, type="Ready", status=status, reason="")]
    words = told(t, "replicaset-controller", "SuccessfulDelete", f"Deleted pod: {deleted}", "replicaset/default/r")
    return [*said, of(deleted, "deleting", t, grace_s=1, finalizers=[]), words]


def test_a_replicaset_that_shrinks_deletes_first_what_is_not_ready() -> None:
    assert firsts(judged(ControllerReports(), shrinks("a", ready=("a",)))) == [10]
    assert judged(ControllerReports(), shrinks("b", ready=("a",))) == []
    assert judged(ControllerReports(), shrinks("a", ready=("a", "b"))) == []
    assert judged(ControllerReports(), shrinks("a", ready=("a",), t=3.5)) == []  # it may not have been seen
    leaving = of("b", "deleting", 20, grace_s=30, finalizers=[])
    assert judged(ControllerReports(), [*shrinks("a", ready=("a",))[:-2], leaving, *shrinks("a", ready=())[-2:]]) == []
