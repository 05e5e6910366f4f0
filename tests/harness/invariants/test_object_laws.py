"""Laws 1005, 1006 and 1008, and the further ranks of law 22: what schedulers and controllers make of objects."""

from __future__ import annotations

from typing import Any

import pytest

from mews.harness.invariants import Bounds
from mews.harness.invariants.controller_states import WITHIN_S, ControllerStates
from mews.harness.invariants.first_to_go import FirstToGo
from mews.harness.invariants.invariant import JudgedSystems, ObservedState
from mews.harness.invariants.preemptions import Preemptions
from mews.harness.invariants.spec_placements import SpecPlacements
from mews.harness.journal import Line
from mews.kube.system.invariant import ClusterObjects

DEFAULT = "default-scheduler"
STATE = ObservedState(systems=JudgedSystems(schedulers=(DEFAULT,)))
LATE = ObservedState(Bounds(lag_s=2.0), JudgedSystems(schedulers=(DEFAULT,)))
Obj = dict[str, Any]


def line(number: int, t: float, event: str, actor: str, **fields: Any) -> Line:
    return Line(number, t, "component" if event in ("killed", "started") else "api", actor, event, fields)


def node(name: str, *, cpu: str = "4", **spec: Any) -> Obj:
    labels = {"host": name, "zone": name[0]}
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def pod(
    name: str, where: str = "a1", *, cpu: str = "1", app: str = "web", ready: bool | None = None, **spec: Any
) -> Obj:
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}}
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}, **spec.pop("container", {})}
    conditions = [] if ready is None else [{"type": "Ready", "status": str(ready)}]
    status = {"phase": "Running" if ready is not None else "Pending", "conditions": conditions, "podIP": "10.0.0.1"}
    return {"metadata": metadata, "spec": {"nodeName": where, "containers": [container], **spec}, "status": status}


def bound(*pods: Obj, nodes: tuple[Obj, ...] = (), said: tuple[Line, ...] = (), state: ObservedState = STATE) -> list:
    """What law 1005 finds where these are bound one after the other, in one moment."""
    law, found = SpecPlacements(), []
    there = {each["metadata"]["name"]: each for each in nodes or (node("a1"), node("b1"))}
    for before in said:
        law.on_line(before, state)
    for number, each in enumerate(pods):
        actor, uid = f"pod/default/{each['metadata']['name']}", each["metadata"]["uid"]
        law.on_line(line(10 + 2 * number, 5.0, "created", actor, uid=uid, node="", scheduler=DEFAULT), state)
        law.on_line(line(11 + 2 * number, 5.0, "bound", actor, uid=uid, node=each["spec"]["nodeName"]), state)
    objects = {f"default/{each['metadata']['name']}": each for each in pods}
    for t in (5.0, 9.0):
        found += law.on_objects(t, ClusterObjects(there, objects, t), state)
    return [(each.first.number, each.what.partition(", ")[2]) for each in found]


APART = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {}}]}
EVEN = {
    "topologyKey": "zone",
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
PORT = {"ports": [{"containerPort": 80, "hostPort": 80}]}


def test_what_all_of_them_allow_is_well() -> None:
    apart = {"affinity": {"podAntiAffinity": APART}}
    assert bound(pod("p", **apart), pod("q", "b1", **apart), pod("r", container=PORT)) != []  # r is against p's words
    assert bound(pod("p", **apart), pod("q", "b1", **apart)) == []
    even = {"topologySpreadConstraints": [EVEN]}
    assert bound(pod("p", **even), pod("q", "b1", **even), pod("r", container=PORT, **even)) == []


@pytest.mark.parametrize(
    ("pods", "nodes", "words"),
    [
        ([pod("p", nodeSelector={"host": "b1"})], (), "whose labels it does not select"),
        ([pod("p")], (node("a1", taints=[{"key": "x", "effect": "NoSchedule"}]),), "whose taints it does not tolerate"),
        ([pod("p")], (node("a1", unschedulable=True),), "whose taints it does not tolerate"),
        ([pod("p", cpu="3"), pod("q", cpu="2")], (), "which offers less cpu than its pods ask for"),
        ([pod("p", container=PORT), pod("q", container=PORT)], (), "where another pod has its host port"),
        ([pod("p"), pod("q", affinity={"podAntiAffinity": APART})], (), "where default/p is, against required"),
        ([pod("p", affinity={"podAntiAffinity": APART}), pod("q")], (), "where default/p is, against required"),
        (
            [pod("p", topologySpreadConstraints=[EVEN]), pod("q", topologySpreadConstraints=[EVEN])],
            (),
            "whose zone a has more of its kind than others by too many",
        ),
    ],
)
def test_the_last_that_is_bound_against_them_is_named(pods: list[Obj], nodes: tuple[Obj, ...], words: str) -> None:
    [(number, what)] = bound(*pods, nodes=nodes)
    assert number == 9 + 2 * len(pods)
    assert what.startswith(words)
    assert bound(*pods, nodes=nodes, state=LATE) == []


def test_a_node_that_has_just_changed_is_not_judged() -> None:
    tainted = (node("a1", taints=[{"key": "x", "effect": "NoSchedule"}]),)
    assert bound(pod("p"), nodes=tainted, said=(line(1, 4.5, "taints", "node/a1", taints=[]),)) == []
    assert bound(pod("p"), nodes=tainted, said=(line(1, 3.5, "taints", "node/a1", taints=[]),)) != []


def test_spread_is_not_judged_where_a_pod_has_just_gone() -> None:
    uneven = [pod("p", topologySpreadConstraints=[EVEN]), pod("q", topologySpreadConstraints=[EVEN])]
    gone = line(1, 4.5, "deleted", "pod/default/z", uid="z")
    assert bound(*uneven, said=(gone,)) == []


def test_one_that_a_term_does_not_select_may_be_there() -> None:
    [term] = APART["requiredDuringSchedulingIgnoredDuringExecution"]
    term = {**term, "labelSelector": {"matchLabels": {"app": "other"}}}
    free = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert bound(pod("p"), pod("q", affinity=free)) == []


def test_a_port_at_one_address_clashes_with_the_same_at_all_of_them() -> None:
    def at(address: str) -> Obj:
        return {"ports": [{"containerPort": 80, "hostPort": 80, "hostIP": address}]}

    assert bound(pod("p", container=at("10.0.0.1")), pod("q", container=PORT)) != []
    assert bound(pod("p", container=at("10.0.0.1")), pod("q", container=at("10.0.0.2"))) == []


def test_who_names_the_node_himself_is_not_judged() -> None:
    law, made = SpecPlacements(), pod("p", nodeSelector={"host": "b1"})
    law.on_line(line(1, 5.0, "created", "pod/default/p", uid="p", node="a1", scheduler=DEFAULT), STATE)
    law.on_line(line(2, 5.0, "bound", "pod/default/p", uid="p", node="a1"), STATE)
    assert list(law.on_objects(5.0, ClusterObjects({"a1": node("a1")}, {"default/p": made}, 5.0), STATE)) == []


def test_a_term_with_a_namespace_selector_is_not_judged() -> None:
    [term] = APART["requiredDuringSchedulingIgnoredDuringExecution"]
    term = {**term, "namespaceSelector": {}}
    free = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert bound(pod("p"), pod("q", affinity=free)) == []


@pytest.mark.parametrize(("users", "wrong"), [(["p"], False), (["q"], True)])
def test_a_claim_is_reserved_for_a_pod_that_is_bound(users: list[str], wrong: bool) -> None:
    claimed = pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
    reserved = line(1, 1.0, "claim-reserved", "claim/default/c", claim="default/c", uid="c", pods=users)
    assert bool(bound(claimed, said=(reserved,))) is wrong


def controlled(**others: list[Obj]) -> dict[str, dict[str, Obj]]:
    return {kind: {f"default/{each['metadata']['name']}": each for each in found} for kind, found in others.items()}


def states(pods: list[Obj], others: dict, *, after_s: float = WITHIN_S + 1, said: tuple[Line, ...] = ()) -> list[str]:
    """What law 1006 finds where nothing changes for so long."""
    law, found = ControllerStates(), []
    objects = {f"default/{each['metadata']['name']}": each for each in pods}
    for before in said:
        law.on_line(before, STATE)
    for t in (20.0, 20.0 + after_s):
        found += law.on_objects(t, ClusterObjects({}, objects, t, others), STATE)
    return [f"{each.key[0]} {each.key[2]}" for each in found]


def owner(kind: str, *, generation: int = 1, **status: Any) -> Obj:
    metadata = {"name": "web", "namespace": "default", "uid": kind, "generation": generation, "resourceVersion": "7"}
    return {"metadata": metadata, "spec": {"replicas": 1}, "status": {"observedGeneration": 1, **status}}


def owned(by: str, name: str = "p", ready: bool = True) -> Obj:
    made = pod(name, ready=ready)
    made["metadata"]["ownerReferences"] = [{"uid": by, "controller": True}]
    return made


GOOD = {"replicas": 1, "readyReplicas": 1}


@pytest.mark.parametrize(
    ("kind", "status", "pods", "found"),
    [
        ("replicasets", GOOD, [owned("replicasets")], []),
        ("replicasets", {"replicas": 1}, [owned("replicasets")], ["replicasets status.readyReplicas"]),
        ("replicasets", {**GOOD, "readyReplicas": 0}, [owned("replicasets", ready=False)], []),
        ("replicasets", {}, [], ["replicasets pods"]),
        ("replicasets", {"conditions": [{"type": "ReplicaFailure", "status": "True"}]}, [], []),
        ("statefulsets", {}, [owned("statefulsets")], ["statefulsets status.replicas"]),
        ("deployments", GOOD, [], ["deployments status.replicas"]),
        ("jobs", {"active": 1}, [owned("jobs")], []),
        ("jobs", {}, [owned("jobs")], ["jobs status.active"]),
    ],
)
def test_what_is_counted_of_pods_is_what_they_are(kind: str, status: Obj, pods: list[Obj], found: list[str]) -> None:
    made = owner(kind, **status)
    if kind == "statefulsets":
        made["spec"]["serviceName"] = "web"
    assert states(pods, controlled(**{kind: [made]})) == found


def test_a_deployment_counts_the_pods_of_its_replica_sets() -> None:
    made = owner("replicasets", **GOOD)
    made["metadata"]["ownerReferences"] = [{"uid": "deployments", "controller": True}]
    pods = [owned("replicasets")]
    assert states(pods, controlled(replicasets=[made], deployments=[owner("deployments", **GOOD)])) == []
    assert states(pods, controlled(replicasets=[made], deployments=[owner("deployments")])) == [
        "deployments status.replicas"
    ]


def test_a_change_that_is_not_observed_is_named() -> None:
    changed = owner("replicasets", generation=2, **GOOD)
    assert states([owned("replicasets")], controlled(replicasets=[changed])) == ["replicasets observedGeneration"]


def test_nothing_is_wrong_at_once_nor_while_a_component_is_down_or_just_back() -> None:
    wrong = controlled(replicasets=[owner("replicasets")])
    pods = [owned("replicasets")]
    assert states(pods, wrong) != []
    assert states(pods, wrong, after_s=WITHIN_S - 1) == []
    killed = line(1, 1.0, "killed", "controller-manager")
    assert states(pods, wrong, said=(killed,)) == []
    assert states(pods, wrong, said=(killed, line(2, 19.9 + WITHIN_S, "started", "controller-manager"))) == []


def service(**spec: Any) -> Obj:
    metadata = {"name": "web", "namespace": "default", "uid": "s", "resourceVersion": "3"}
    return {"metadata": metadata, "spec": {"selector": {"app": "web"}, **spec}}


def endpoints(*names: str, ready: bool = True) -> dict[str, list[Obj]]:
    """An EndpointSlice and Endpoints that name those pods."""
    refs = [{"targetRef": {"name": name}, "conditions": {"ready": ready}} for name in names]
    labels = {"kubernetes.io/service-name": "web"}
    metadata = {"name": "web", "namespace": "default", "resourceVersion": "5", "labels": labels}
    subset = {"addresses" if ready else "notReadyAddresses": refs}
    return {
        "endpointslices": [{"metadata": metadata, "endpoints": refs}],
        "endpoints": [{"metadata": metadata, "subsets": [subset]}],
    }


@pytest.mark.parametrize(
    ("spec", "shown", "found"),
    [
        ({}, endpoints("p"), []),
        ({}, endpoints(), ["endpoints the ready pods", "endpointslices the ready pods"]),
        ({}, endpoints("p", "q"), ["endpoints the ready pods", "endpointslices the ready pods"]),
        ({}, endpoints("p", ready=False), ["endpoints the ready pods", "endpointslices the ready pods"]),
        ({"type": "ExternalName"}, endpoints(), []),
        ({"selector": None}, endpoints(), []),
    ],
)
def test_endpoints_follow_ready_pods(spec: Obj, shown: dict[str, list[Obj]], found: list[str]) -> None:
    assert sorted(states([pod("p", ready=True)], controlled(services=[service(**spec)], **shown))) == found


def test_a_pod_that_is_not_ready_is_in_no_endpoints_unless_the_service_wants_it() -> None:
    pods = [pod("p", ready=False)]
    assert states(pods, controlled(services=[service()], **endpoints("p", ready=False))) == []
    early = service(publishNotReadyAddresses=True)
    assert states(pods, controlled(services=[early], **endpoints("p"))) == []


def preempted(*victims: Obj, by: Obj, state: ObservedState = STATE, others: tuple[Obj, ...] = ()) -> list:
    """What law 1008 finds where these go for that pod."""
    law, number = Preemptions(), 0
    for victim in victims:
        name = victim["metadata"]["name"]
        reason = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        law.on_line(line(number, 5.0, "condition", f"pod/default/{name}", uid=name, **reason), state)
        words = {"reason": "Preempted", "message": "Preempted by pod strong on node a1", "type": "Normal"}
        law.on_line(line(number + 1, 5.0, "event", DEFAULT, object=f"pod/default/{name}", **words), state)
        number += 2
    pods = {f"default/{each['metadata']['name']}": each for each in (*victims, by, *others)}
    objects = ClusterObjects({"a1": node("a1")}, pods, 5.0)
    return [each.first.number for t in (5.0, 6.0) for each in law.on_objects(t, objects, state)]


STRONG = pod("strong", "", cpu="2", priority=10)


def test_only_those_go_whose_place_is_needed() -> None:
    two = pod("x", cpu="2", priority=1), pod("y", cpu="2", priority=1)
    assert preempted(two[0], by=STRONG, others=two[1:]) == []
    assert preempted(*two, by=STRONG) == [0, 2]
    assert preempted(*two, by=STRONG, state=LATE) == []
    strongest = pod("strong", "", cpu="4", priority=10)
    assert preempted(pod("x", cpu="3", priority=1), pod("z", cpu="1", priority=1), by=strongest) == []


def test_nobody_goes_who_is_as_important() -> None:
    assert preempted(pod("x", cpu="4", priority=10), by=STRONG) == [0]


def test_a_node_that_another_pod_is_nominated_for_is_not_judged() -> None:
    two = pod("x", cpu="2", priority=1), pod("y", cpu="2", priority=1)
    nominee = pod("w", "", priority=20)
    nominee["status"]["nominatedNodeName"] = "a1"
    assert preempted(*two, by=STRONG, others=(nominee,)) == []


def test_a_pod_with_words_of_its_own_is_not_judged() -> None:
    two = pod("x", cpu="2", priority=1), pod("y", cpu="2", priority=1)
    assert preempted(*two, by={**STRONG, "spec": {**STRONG["spec"], "affinity": {"podAntiAffinity": APART}}}) == []


RS = "replicaset/default/web-1"


def shrunk(pods: dict[str, tuple[str, float]], gone: str, **extra: str) -> list[str]:
    """What is said of a shrinking ReplicaSet; each pod by its node, and since when it is ready."""
    order, number = FirstToGo(), 0
    for name, (where, ready_s) in pods.items():
        for t, event, fields in (
            (0.0, "created", {"phase": "Pending"}),
            (1.0, "bound", {"node": where}),
            (2.0, "phase", {"phase": "Running"}),
            (ready_s, "condition", {"type": "Ready", "status": "True"}),
        ):
            order.take(line(number, t, event, name, uid=name, **fields))
            number += 1
    for name, cost in extra.items():
        annotations = {"controller.kubernetes.io/pod-deletion-cost": cost}
        order.take(line(number, 50.0, "annotations", name, uid=name, annotations=annotations))
    done = line(number + 1, 100.0, "deleting", gone, uid=gone, grace_s=1, finalizers=[])
    order.take(done)
    return [each.what.rpartition("which is ")[2] for each in order.deleted(RS, gone, dict.fromkeys(pods, RS), done)]


def test_a_pod_whose_node_has_more_of_them_goes_first() -> None:
    doubled = {"a": ("n1", 3.0), "b": ("n1", 3.0), "c": ("n2", 3.0)}
    assert shrunk(doubled, "c") == ["on a node with more of them"]
    assert shrunk(doubled, "a") == shrunk(doubled, "c", a="5", b="5") == []


def test_one_that_was_ready_for_a_shorter_time_goes_first() -> None:
    aged = {"a": ("n1", 3.0), "b": ("n2", 90.0)}
    assert shrunk(aged, "a") == ["ready for a shorter time"]
    assert shrunk(aged, "b") == shrunk({"a": ("n1", 3.0), "b": ("n2", 30.0)}, "a") == []
