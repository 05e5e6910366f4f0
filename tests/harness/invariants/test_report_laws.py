"""Laws on what kubelets, schedulers and controllers report: streams that break them, and streams that do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.controller_reports import ControllerReports
from mews.harness.invariants.fault_effects import FaultEffects
from mews.harness.invariants.invariant import JudgedSystems, ObservedState
from mews.harness.invariants.judge import LAWS, InvariantJudge
from mews.harness.invariants.kubelet_reports import KubeletReports
from mews.harness.invariants.pod_conditions import PodConditions
from mews.harness.invariants.scheduler_reports import SchedulerReports
from mews.harness.invariants.silent_nodes import SilentNodes
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant
from mews.kube.system.journal import Line

Said = tuple[float, str, str, str, dict[str, Any]]
"""t, layer, actor, event, fields."""

KUBELET, NODE, POD = "kubelet/n1", "node/n1", "pod/default/a"
SYSTEMS = JudgedSystems(schedulers=("default-scheduler",))


def judged(law: Invariant[Any], said: Sequence[Said], *, until: float = 0.0, **bounds: Any) -> list[Breach]:
    state, found, t = ObservedState(Bounds.of(bounds), SYSTEMS), list[Breach](), 0.0
    for number, (t, layer, actor, event, fields) in enumerate(said):
        if law.events is None or (layer, event) in law.events:
            found += law.on_line(Line(number, t, layer, actor, event, fields), state)
        found += law.on_time(t, state)
    found += law.on_time(max(until, t), state)
    return found


def firsts(found: Sequence[Breach]) -> list[int | None]:
    return [each.first.number if each.first else None for each in found]


def without(said: Sequence[Said], *numbers: int) -> list[Said]:
    return [line for number, line in enumerate(said) if number not in numbers]


def told(t: float, by: str, reason: str, message: str, about: str = POD) -> Said:
    return (t, "api", by, "event", {"type": "Normal", "reason": reason, "object": about, "message": message})


def kubelet(t: float, event: str, **fields: Any) -> Said:
    return (t, "kubelet", KUBELET, event, fields)


def pod(t: float, event: str, **fields: Any) -> Said:
    return (t, "api", POD, event, {"uid": "u", **fields})


def condition(t: float, kind: str, status: str, reason: str = "") -> Said:
    return pod(t, "condition", type=kind, status=status, reason=reason)


GIVEN = {"pod": "default/a", "uid": "u", "container": "main"}
ENTRY = ["u", "main", "gpu", ["g1"]]
STARTS = [
    kubelet(0, "registered", resource="other"),
    told(0, KUBELET, "Starting", "Starting kubelet.", NODE),
    kubelet(1, "registered", resource="gpu"),
    kubelet(1, "devices", resource="gpu", healthy=["g1"], unhealthy=[]),
    kubelet(2, "allocated", **GIVEN, resource="gpu", devices=["g1"]),
    kubelet(2, "checkpoint", entries=[ENTRY]),
    told(3, KUBELET, "Pulled", "Container image present"),
    told(3, KUBELET, "Created", "Created container: main"),
    kubelet(4, "container-started", **GIVEN, env={}),
    told(4, KUBELET, "Started", "Started container main"),
    kubelet(9, "pod-ended", pod="default/a", uid="u"),
]


def test_a_kubelet_that_reports_what_it_does_breaks_nothing() -> None:
    assert judged(KubeletReports(), STARTS) == []


@pytest.mark.parametrize(
    ("left_out", "first", "says"),
    [
        pytest.param((2,), 2, "no plugin has registered", id="a list of a plugin that has not registered"),
        pytest.param((5,), 7, "the checkpoint does not have", id="a start on what the checkpoint lacks"),
        pytest.param((7,), 7, "no event Created came before", id="a start without its event Created"),
        pytest.param((9,), 8, "no event tells that main", id="a start of which none tells"),
    ],
)
def test_what_a_kubelet_leaves_out_is_reported(left_out: tuple[int, ...], first: int, says: str) -> None:
    found = judged(KubeletReports(), without(STARTS, *left_out))
    assert firsts(found)[:1] == [first]
    assert says in found[0].what


def test_a_checkpoint_that_forgets_a_pod_is_reported_with_its_allocation() -> None:
    [breach] = judged(KubeletReports(), [*STARTS[:6], kubelet(3, "checkpoint", entries=[])])
    assert (breach.first and breach.first.number, breach.after and breach.after.number) == (6, 4)


def test_a_kubelet_that_begins_anew_needs_its_plugins_anew() -> None:
    begun = (5.0, "component", KUBELET, "started", {})
    assert firsts(judged(KubeletReports(), [*STARTS[:4], begun, STARTS[3]])) == [5]
    assert judged(KubeletReports(), [*STARTS[:4], begun, *STARTS[2:4]]) == []


READY = [
    pod(0, "created", scheduler="default-scheduler", node="", phase="Pending", requests={}),
    pod(1, "bound", node="n1"),
    condition(1, "PodScheduled", "True"),
    condition(2, "Initialized", "True"),
    condition(2, "Ready", "False"),
    kubelet(3, "container-started", **GIVEN, env={}),
    condition(4, "Ready", "True"),
    condition(4, "ContainersReady", "True"),
    pod(4, "phase", phase="Running", reason=""),
    condition(20, "Initialized", "True", "PodCompleted"),
    condition(20, "Ready", "False", "PodCompleted"),
    condition(20, "ContainersReady", "False", "PodCompleted"),
    kubelet(21, "pod-ended", pod="default/a", uid="u"),
    pod(21, "phase", phase="Succeeded", reason=""),
    (30.0, "api", NODE, "condition", {"type": "Ready", "status": "True", "reason": ""}),
]


def test_conditions_that_follow_a_pods_life_break_nothing() -> None:
    assert judged(PodConditions(), READY, until=60.0) == []


@pytest.mark.parametrize(
    ("left_out", "says"),
    [
        pytest.param((2,), "PodScheduled is not True", id="ready and not scheduled"),
        pytest.param((3,), "Initialized is not True", id="ready and not initialized"),
        pytest.param((7,), "ContainersReady is not True", id="ready without its containers"),
        pytest.param((8,), "its phase is Pending", id="ready before it runs"),
        pytest.param((5,), "none of its containers has started", id="running without a start"),
        pytest.param((11,), "its containers are ready", id="over and ready"),
        pytest.param((13,), "is not over", id="ended and never called so"),
    ],
)
def test_conditions_that_disagree_are_reported(left_out: tuple[int, ...], says: str) -> None:
    found = judged(PodConditions(), without(READY, *left_out), until=60.0)
    assert any(says in each.what for each in found), [each.what for each in found]


def test_a_pod_that_does_not_run_after_its_start_is_reported_unless_its_node_is_away() -> None:
    said = READY[:6]
    assert [each.what for each in judged(PodConditions(), said, until=14.0)] == [
        "default/a is not Running 11.0 s after container-started"
    ]
    gone = (4.0, "component", KUBELET, "killed", {})
    assert judged(PodConditions(), [*said, gone], until=60.0) == []


def node(t: float, name: str) -> Said:
    return (t, "api", f"node/{name}", "created", {"allocatable": {}})


def unschedulable(t: float, message: str) -> list[Said]:
    return [
        told(t, "default-scheduler", "FailedScheduling", message),
        condition(t, "PodScheduled", "False", "Unschedulable"),
    ]


FIT = "1 Insufficient gpu, 1 node(s) were unschedulable. preemption: 0/2 nodes are available: 2 No."
SCHEDULED = [
    node(0, "n1"),
    node(0, "n2"),
    READY[0],
    *unschedulable(5, f"0/2 nodes are available: {FIT}"),
    pod(9, "bound", node="n1"),
    told(9, "default-scheduler", "Scheduled", "Successfully assigned default/a to n1"),
]


def test_a_scheduler_that_accounts_for_every_node_breaks_nothing() -> None:
    assert judged(SchedulerReports(), SCHEDULED, until=20.0) == []


@pytest.mark.parametrize(
    ("said", "says"),
    [
        pytest.param(without(SCHEDULED, 6), "no event Scheduled says so", id="bound and not told"),
        pytest.param(without(SCHEDULED, 3), "no event FailedScheduling says so", id="unschedulable and not told"),
        pytest.param(
            [*SCHEDULED[:6], told(9, "default-scheduler", "Scheduled", "Successfully assigned default/a to n2")],
            "its event says n2",
            id="told of another node",
        ),
        pytest.param(
            [*SCHEDULED[:3], *unschedulable(5, "0/3 nodes are available: 3 Insufficient gpu.")],
            "speaks of 3 nodes, and there are 2",
            id="a node too many",
        ),
        pytest.param(
            [*SCHEDULED[:3], *unschedulable(5, "0/2 nodes are available: 1 Insufficient gpu.")],
            "gives reasons for 1 of 2 nodes",
            id="a node without a reason",
        ),
    ],
)
def test_a_scheduler_that_leaves_something_out_is_reported(said: Sequence[Said], says: str) -> None:
    [breach] = judged(SchedulerReports(), said, until=20.0)
    assert says in breach.what


def test_a_scheduler_fails_by_itself_only_while_something_is_down() -> None:
    error = [told(5, "default-scheduler", "FailedScheduling", "division by zero")]
    error += [condition(5, "PodScheduled", "False", "SchedulerError")]
    assert firsts(judged(SchedulerReports(), [*SCHEDULED[:3], *error])) == [3]
    away = (4.0, "component", "extender", "killed", {})
    assert judged(SchedulerReports(), [*SCHEDULED[:3], away, *error]) == []
    for back_s, excused in ((5.0, True), (2.0, False)):  # what it was asked as it died fails once it is back
        away_for: list[Said] = [(1.5, *away[1:]), (back_s, "component", "extender", "started", {})]
        assert firsts(judged(SchedulerReports(), [*SCHEDULED[:3], *away_for, *error])) == ([] if excused else [5])
    # An extender gives what is left to the one of two pods that it binds first.
    other = "pod/default/other"
    made: Said = (4.0, "api", other, "created", {"uid": "v", "scheduler": "default-scheduler", "node": ""})
    binds = [made, (5.0, "api", other, "bound", {"uid": "v", "node": "n1"})]
    told_so = (5.0, "api", "default-scheduler", "event", {})
    fields = {"reason": "Scheduled", "object": other, "message": "Successfully assigned default/other to n1"}
    assert judged(SchedulerReports(), [*SCHEDULED[:3], *binds, (*told_so[:4], fields), *error]) == []
    before = [made, (4.5, *binds[1][1:]), (4.5, *told_so[1:4], fields)]
    assert firsts(judged(SchedulerReports(), [*SCHEDULED[:3], *before, *error])) == [6]


@pytest.mark.parametrize(
    ("message", "excused"),
    [
        ('running PreBind plugin "DynamicResources": claim c binding failed: device d: no cable', True),
        ('running PreBind plugin "DynamicResources": device binding timeout', True),
        ('running PreBind plugin "DynamicResources": claim c: division by zero', False),
        ('running PreBind plugin "VolumeBinding": binding failed: no volume', False),
    ],
)
def test_a_scheduler_fails_where_a_device_cannot_be_attached(message: str, excused: bool) -> None:
    error = [told(5, "default-scheduler", "FailedScheduling", message)]
    error += [condition(5, "PodScheduled", "False", "SchedulerError")]
    assert firsts(judged(SchedulerReports(), [*SCHEDULED[:3], *error])) == ([] if excused else [3])


@pytest.mark.parametrize("reason", ["BindingConditionsPending", "Scheduled"])
def test_the_failure_of_a_pod_that_waits_for_a_device_may_be_counted_to_an_earlier_event(reason: str) -> None:
    waits = told(6, "default-scheduler", reason, "waiting for binding conditions for device on node n1")
    error = condition(9, "PodScheduled", "False", "SchedulerError")
    found = judged(
        SchedulerReports(), [*SCHEDULED[:3], *unschedulable(5, "0/2 nodes are available: 2 no."), waits, error]
    )
    assert bool(found) == (reason == "Scheduled")


@pytest.mark.parametrize("again", [True, False])
def test_a_device_that_cannot_be_attached_again_is_counted_and_a_new_fault_is_not(again: bool) -> None:
    first = 'running PreBind plugin "DynamicResources": device binding failed: claim=c'
    error = [
        told(5, "default-scheduler", "FailedScheduling", first),
        condition(5, "PodScheduled", "False", "SchedulerError"),
    ]
    later = [] if again else [told(9, "default-scheduler", "FailedScheduling", "division by zero")]
    later += [condition(9, "PodScheduled", "False", "SchedulerError")]
    found = judged(SchedulerReports(), [*SCHEDULED[:3], *error, *later])
    assert bool(found) != again


def test_an_extender_may_refuse_to_bind_at_the_moment_at_which_a_pod_is_evicted() -> None:
    error = [told(5, "default-scheduler", "FailedScheduling", "failed bind with extender at URL http://e, code 500")]
    error += [condition(5, "PodScheduled", "False", "SchedulerError")]
    for t, excused in ((5.0, True), (4.0, False)):
        fields = {"uid": "v", "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        evicted: Said = (t, "api", "pod/default/other", "condition", fields)
        assert firsts(judged(SchedulerReports(), [*SCHEDULED[:3], evicted, *error])) == ([] if excused else [4])


def test_a_refusal_of_all_nodes_together_needs_no_counts() -> None:
    assert judged(SchedulerReports(), [*SCHEDULED[:3], *unschedulable(5, "0/2 nodes are available: gang g.")]) == []


SET = "replicaset/default/web"
MADE = [pod(1, "created", scheduler="default-scheduler", node="", phase="Pending", requests={})]
MADE += [told(1, "replicaset-controller", "SuccessfulCreate", "Created pod: a", SET)]


def gone(t: float) -> list[Said]:
    deleted = told(t, "replicaset-controller", "SuccessfulDelete", "Deleted pod: a", SET)
    return [pod(t, "deleting", grace_s=1, finalizers=[]), deleted]


def test_a_controller_that_makes_a_pod_and_deletes_it_later_breaks_nothing() -> None:
    assert judged(ControllerReports(), [*MADE, *gone(30)]) == []


def test_a_pod_that_its_controller_takes_back_in_the_same_moment_is_reported() -> None:
    [breach] = judged(ControllerReports(), [*MADE, *gone(1)])
    assert (breach.first and breach.first.number, breach.after and breach.after.number) == (2, 0)
    scaled = told(1, "deployment-controller", "ScalingReplicaSet", "Scaled down replica set web from 1 to 0")
    assert judged(ControllerReports(), [*MADE, scaled, *gone(1)]) == []


def test_a_replica_set_that_makes_more_pods_than_it_was_scaled_to_is_reported() -> None:
    said = "Scaled up replica set web from 0 to 1"
    scaled = told(1, "deployment-controller", "ScalingReplicaSet", said, "deployment/default/web")
    made = told(2, "replicaset-controller", "SuccessfulCreate", "Created pod: b", SET)
    other: Said = (2, "api", "pod/default/b", "created", {"uid": "v"})
    [breach] = judged(ControllerReports(), [scaled, *MADE, other, made])
    assert (breach.first and breach.first.number, breach.after and breach.after.number) == (3, 0)
    over = pod(2, "phase", phase="Failed", reason="")
    assert judged(ControllerReports(), [scaled, *MADE, over, other, made]) == []


def test_a_scale_that_is_told_as_one_of_many_similar_events_counts() -> None:
    web, one = "deployment/default/web", "Scaled up replica set web from 0 to 1"
    scaled = told(1, "deployment-controller", "ScalingReplicaSet", one, web)
    many = "(combined from similar events): Scaled up replica set web from 1 to 2"
    again = told(2, "deployment-controller", "ScalingReplicaSet", many, web)
    made = told(2, "replicaset-controller", "SuccessfulCreate", "Created pod: b", SET)
    other: Said = (2, "api", "pod/default/b", "created", {"uid": "v"})
    assert judged(ControllerReports(), [scaled, *MADE, again, other, made]) == []


@pytest.mark.parametrize("said", [MADE[1:], [*MADE, gone(30)[1]]], ids=["made", "deleted"])
def test_a_controller_that_tells_of_what_was_not_done_is_reported(said: list[Said]) -> None:
    [breach] = judged(ControllerReports(), said)
    assert "then" in breach.what


def silent(t: float) -> Said:
    return (t, "api", NODE, "condition", {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"})


DIES = [node(0, "n1"), (10.0, "component", KUBELET, "killed", {})]


@pytest.mark.parametrize(
    ("t", "first"),
    [(55.0, []), (70.0, []), (20.0, [2]), (80.0, [2])],
    ids=["after the grace", "at the next looks", "too soon", "too late"],
)
def test_a_silent_node_is_called_unknown_after_its_grace_and_not_before(t: float, first: list[int]) -> None:
    assert firsts(judged(SilentNodes(), [*DIES, silent(t)])) == first


def test_a_silent_node_of_which_nobody_speaks_is_reported_once_its_time_is_over() -> None:
    assert judged(SilentNodes(), DIES, until=72.0) == []
    assert firsts(judged(SilentNodes(), DIES, until=73.0)) == [1]


def test_a_kubelet_that_is_back_in_time_is_not_missed() -> None:
    assert judged(SilentNodes(), [*DIES, (40.0, "component", KUBELET, "started", {})], until=200.0) == []


def test_a_node_whose_kubelet_is_there_is_not_called_unknown() -> None:
    assert firsts(judged(SilentNodes(), [node(0, "n1"), silent(60)])) == [1]
    slow: Said = (5.0, "fault", "kubelet/n1", "added", {"fault": "f1", "kind": "lagging-watch", "spec": {}})
    assert judged(SilentNodes(), [node(0, "n1"), slow, silent(60)]) == []
    other: Said = (5.0, "component", "controllermanager", "killed", {})
    assert judged(SilentNodes(), [node(0, "n1"), other, silent(60)]) == []


def test_a_pod_that_failed_is_not_called_complete() -> None:
    failed = [*READY[:13], pod(21, "phase", phase="Failed", reason=""), READY[14]]
    [breach] = judged(PodConditions(), failed)
    assert "not ready for the reason PodCompleted" in breach.what


FIRED: Said = (5, "fault", "chassis/A", "fired", {"fault": "f1", "kind": "lost-uuid", "gpuid": "0-1", "excuses": {}})
CHANGED: Said = (5, "chassis", "chassis/A", "device-changed", {"gpuid": "0-1", "device": "1", "old_uuid": "u"})


def test_a_fault_that_fires_shows_its_effect_or_is_reported_by_the_line_in_its_place() -> None:
    later = node(6, "n1")
    assert judged(FaultEffects(), [FIRED, CHANGED, later]) == []
    [breach] = judged(FaultEffects(), [FIRED, later])
    assert (breach.first and breach.first.number, breach.after and breach.after.number) == (1, 0)


def test_a_fault_whose_effect_has_no_line_or_no_healthy_device_is_not_judged() -> None:
    others = [
        (5.0, "fault", "chassis/A", "fired", {**FIRED[4], "kind": "stale-list"}),
        (5.0, "fault", "host/h", "fired", {**FIRED[4], "kind": "xid"}),
    ]
    assert judged(FaultEffects(), [*others, node(6, "n1")]) == []


def test_the_judge_has_them() -> None:
    laws = (KubeletReports, PodConditions, SchedulerReports, ControllerReports, SilentNodes, FaultEffects)
    assert [LAWS[number] for number in (18, 20, 21, 22, 23, 24)] == list(laws)


@pytest.mark.parametrize("ours", [True, False])
def test_the_judge_leaves_them_out_where_a_part_is_somebody_elses(ours: bool) -> None:
    judge = InvariantJudge(Bounds(), ours=ours)
    for number, (t, layer, actor, event, fields) in enumerate(DIES):
        judge.on_line(Line(number, t, layer, actor, event, fields))
    judge.pass_time(73.0)
    assert (SilentNodes.number in {violation.invariant for violation in judge.violations}) == ours


def test_what_comes_without_its_event_is_named() -> None:
    placed = [
        pod(0, "created", scheduler="default-scheduler", node=""),
        pod(1, "bound", node="n1"),
        condition(1, "PodScheduled", "True"),
    ]
    [breach] = judged(SchedulerReports(), placed, until=2)
    assert (breach.first and breach.first.number, breach.after and breach.after.number) == (2, 1)
    started = [*STARTS[:9], condition(4, "Ready", "True")]
    [breach] = judged(KubeletReports(), started, until=9)
    assert (breach.first and breach.first.number, breach.after and breach.after.number) == (9, 8)


@pytest.mark.parametrize(
    ("said", "kind", "named"),
    [
        pytest.param([pod(1, "created"), pod(1, "bound")], "StatefulSet", [(1, 0)], id="nobody says so"),
        pytest.param([pod(1, "created")], "StatefulSet", [(0, 0)], id="nothing follows"),
        pytest.param([pod(0, "created"), pod(0, "deleted"), pod(1, "created")], "StatefulSet", [], id="said before"),
        pytest.param([pod(1, "created"), pod(1, "bound")], "TFJob", [], id="of somebody else"),
        pytest.param(
            [pod(1, "created"), told(1, "x", "SuccessfulCreate", "create Pod a in b", "statefulset/default/b")],
            "StatefulSet",
            [],
            id="reported",
        ),
        pytest.param(
            [pod(1, "created"), (1, "component", "controllermanager", "killed", {})], "StatefulSet", [], id="who died"
        ),
    ],
)
def test_a_controller_that_makes_a_pod_says_so(said, kind, named) -> None:
    law, state = ControllerReports(), ObservedState(Bounds.of({}), SYSTEMS)
    for number, (t, layer, actor, event, fields) in enumerate(said):
        assert not list(law.on_line(Line(number, t, layer, actor, event, fields), state))
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "b", "uid": "o", "controller": True}
    made = {"metadata": {"name": "a", "namespace": "default", "uid": "u", "ownerReferences": [owner]}}
    looks = [list(law.on_objects(t, ClusterObjects({}, {"default/a": made}, 0.0), state)) for t in (1.5, 3.0, 4.0)]
    assert not looks[0]
    found = [breach for look in looks for breach in look]
    assert [(one.first and one.first.number, one.after and one.after.number) for one in found] == named
