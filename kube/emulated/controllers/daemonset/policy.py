"""What a DaemonSet's controller decides (k8s.io/kubernetes pkg/controller/daemon)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import (
    Object,
    annotations_of,
    clone,
    is_deleting,
    is_terminal,
    labels_of,
    name_of,
    node_name_of,
)
from mews.kube.emulated.controllers.conditions import nonzero
from mews.kube.emulated.controllers.deployment.policy import scaled
from mews.kube.emulated.controllers.pods import is_available, is_ready
from mews.kube.scheduling.plugins.node_affinity import term_holds
from mews.kube.scheduling.plugins.taints import tolerated

REVISION_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"
FIRST_BACKOFF_S, LAST_BACKOFF_S = 1.0, 900.0
"""How long a failed daemon pod is left alone; it doubles with each failure on a node."""
_TOLERATED = (
    *(("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule")),
    *(("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule"), ("unschedulable", "NoSchedule")),
)


class DaemonNode(Struct, frozen=True):
    """What counts of a node: whether a pod may begin there, and whether one that is there may stay."""

    name: str
    begins: bool
    stays: bool


def template_generation(daemon_set: Object) -> int:
    """Return how often the template was changed, as the API server counts."""
    text = annotations_of(daemon_set).get("deprecated.daemonset.template.generation", "1")
    return int(text) if text.isdecimal() else 1


def tolerations_of(template: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the template's, and those that every daemon pod has."""
    spec = template.get("spec") or {}
    found = [dict(toleration) for toleration in spec.get("tolerations") or ()]
    known = [*_TOLERATED, *([("network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else [])]
    for trouble, effect in known:
        toleration = {"key": f"node.kubernetes.io/{trouble}", "operator": "Exists", "effect": effect}
        if toleration not in found:
            found.append(toleration)
    return found


def judge(node: Object, daemon_set: Object) -> DaemonNode:
    """Return whether a node is one of a DaemonSet's."""
    template, name = daemon_set["spec"]["template"], name_of(node)
    spec = template.get("spec") or {}
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    fits = spec.get("nodeName") in (None, "", name)
    fits &= all(labels_of(node).get(key) == value for key, value in (spec.get("nodeSelector") or {}).items())
    if required is not None:
        fits &= any(term_holds(term, labels_of(node), name) for term in required.get("nodeSelectorTerms") or ())
    if not fits:
        return DaemonNode(name, begins=False, stays=False)
    bad = [t for t in (node.get("spec") or {}).get("taints") or () if not tolerated(t, tolerations_of(template))]
    effects = {taint.get("effect") for taint in bad}
    return DaemonNode(name, begins=not effects & {"NoSchedule", "NoExecute"}, stays="NoExecute" not in effects)


def target_of(pod: Object) -> str:
    """Return the node that a daemon pod is or will be on, by its node name or by the affinity it was made with."""
    if node_name_of(pod):
        return node_name_of(pod)
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and len(field.get("values") or ()) == 1:
                return str(field["values"][0])
    return ""


def template_for(template: Mapping[str, Any], node: str, revision: str, generation: int) -> dict[str, Any]:
    """Return the template of the pod of one node."""
    made: dict[str, Any] = clone(template)
    metadata, spec = made.setdefault("metadata", {}), made.setdefault("spec", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), REVISION_LABEL: revision, GENERATION_LABEL: str(generation)}
    spec["tolerations"] = tolerations_of(template)
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = spec.setdefault("affinity", {})
    wanted = affinity.setdefault("nodeAffinity", {})
    wanted["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return made


def by_age(pods: Iterable[Object]) -> list[Object]:
    """Assigned ones first, then the oldest."""
    return sorted(pods, key=lambda p: (not node_name_of(p), p["metadata"].get("creationTimestamp", ""), name_of(p)))


class DaemonPlan(Struct, frozen=True):
    """Nodes that need a pod, pods to delete, and pods that ended and are to be told of before they are deleted."""

    create: tuple[str, ...] = ()
    delete: tuple[Object, ...] = ()
    ended: tuple[Object, ...] = ()


def plan(
    daemon_set: Object, nodes: Sequence[DaemonNode], pods: Mapping[str, Sequence[Object]], revision: str, now: float
) -> DaemonPlan:
    """Return what to do so that each node has the pod that it ought to have; with a surge two, one old and one new."""
    create: list[str] = []
    delete: list[Object] = []
    ended: list[Object] = []
    surges = surge(daemon_set, 1) > 0
    for node in nodes:
        there = [pod for pod in pods.get(node.name, ()) if not is_deleting(pod)]
        running = by_age(pod for pod in there if not is_terminal(pod))
        if node.begins and not pods.get(node.name):
            create.append(node.name)
        elif not node.stays:
            delete += there
        else:
            ended += [pod for pod in there if is_terminal(pod)]
            if not surges:
                delete += running[1:]
            elif not running and node.begins:
                create.append(node.name)
            else:
                delete += _superseded(running, revision, min_ready_s(daemon_set), now)
    known = {node.name for node in nodes}
    for name in sorted(set(pods) - known):
        delete += [pod for pod in pods[name] if not node_name_of(pod) and not is_deleting(pod)]
    return DaemonPlan(tuple(create), tuple(delete), tuple(ended))


def _superseded(running: Sequence[Object], revision: str, span_s: int, now: float) -> list[Object]:
    """Return those of the pods of one node, by age, those that go when it may have two: all but the oldest new one and
    the oldest old one, and that too once it is not ready or the new one is available."""
    new = [pod for pod in running if labels_of(pod).get(REVISION_LABEL) == revision]
    old = [pod for pod in running if labels_of(pod).get(REVISION_LABEL) != revision]
    doomed = [pod for pod in running if any(pod is other for other in (*new[1:], *old[1:]))]
    if new and old and (not is_ready(old[0]) or is_available(new[0], span_s, now)):
        doomed.append(old[0])
    return doomed


def min_ready_s(daemon_set: Object) -> int:
    """``spec.minReadySeconds``."""
    return int(daemon_set["spec"].get("minReadySeconds") or 0)


def is_updated(pod: Object, revision: str, generation: int) -> bool:
    """Return whether the pod is made from the current template."""
    labels = labels_of(pod)
    return labels.get(REVISION_LABEL) == revision or labels.get(GENERATION_LABEL) == str(generation)


def surge(daemon_set: Object, nodes: int) -> int:
    """Return how many of so many nodes may have a new pod beside the old one."""
    return scaled(_rolling(daemon_set).get("maxSurge", 0), nodes, up=True)


def _rolling(daemon_set: Object) -> Mapping[str, Any]:
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    return (strategy.get("rollingUpdate") or {}) if strategy.get("type") == "RollingUpdate" else {}


def update(
    daemon_set: Object, nodes: Sequence[DaemonNode], pods: Mapping[str, Sequence[Object]], revision: str, now: float
) -> DaemonPlan:
    """Return what a rolling update does now: old pods that go, so that not too many nodes are without an available one,
    or nodes that get a new one beside the old."""
    if (daemon_set["spec"].get("updateStrategy") or {}).get("type") == "OnDelete":
        return DaemonPlan()
    wanted = sum(node.begins for node in nodes)
    unavailable, more = (
        scaled(_rolling(daemon_set).get("maxUnavailable", 1), wanted, up=True),
        surge(daemon_set, wanted),
    )
    begins = {node.name: node.begins for node in nodes}
    names = list(dict.fromkeys([*(name for name in begins if begins[name] or name in pods), *sorted(pods)]))
    generation = template_generation(daemon_set)
    states = [_state(name, pods.get(name, ()), revision, generation) for name in names]
    span_s = min_ready_s(daemon_set)
    if more == 0:
        return _in_place(states, max(unavailable, 1) if wanted else unavailable, span_s, now)
    return _side_by_side(states, begins, more, wanted, span_s, now)


class _NodeState(Struct, frozen=True):
    """The one old and the one new pod of a node that are not being deleted; ``crowded``: there are more."""

    name: str
    old: Object | None
    new: Object | None
    crowded: bool


def _state(name: str, there: Sequence[Object], revision: str, generation: int) -> _NodeState:
    pods = [pod for pod in there if not is_deleting(pod)]
    new = [pod for pod in pods if is_updated(pod, revision, generation)]
    old = [pod for pod in pods if not is_updated(pod, revision, generation)]
    return _NodeState(name, next(iter(old), None), next(iter(new), None), max(len(old), len(new)) > 1)


def _in_place(states: Sequence[_NodeState], most: int, span_s: int, now: float) -> DaemonPlan:
    missing = 0
    at_once: list[Object] = []
    in_turn: list[Object] = []
    for state in states:
        if state.crowded or (state.old is None) == (state.new is None):
            missing += 1
        elif state.new is not None:
            missing += not is_available(state.new, span_s, now)
        elif state.old is not None and is_available(state.old, span_s, now):
            in_turn.append(state.old)
        elif state.old is not None:
            missing += 1
            at_once.append(state.old)
    return DaemonPlan(delete=(*at_once, *in_turn[: max(most - missing, 0)]))


def _side_by_side(
    states: Sequence[_NodeState], begins: Mapping[str, bool], most: int, wanted: int, span_s: int, now: float
) -> DaemonPlan:
    surging = available = 0
    delete: list[Object] = []
    unwanted: list[Object] = []
    at_once: list[str] = []
    in_turn: list[str] = []
    for state in states:
        if state.crowded:
            surging += 1
            continue
        shown = state.old or state.new
        works = shown is not None and is_available(shown, span_s, now)
        available += works
        if state.old is None:
            continue
        if state.new is not None:
            done = is_available(state.new, span_s, now)
            surging += not done
            delete += [state.old] if done else []
        elif not begins.get(state.name):
            (unwanted if works else delete).append(state.old)
        else:
            (in_turn if works else at_once).append(state.name)
    delete += unwanted[: max(available - wanted, 0)]
    return DaemonPlan((*at_once, *in_turn[: max(most - surging, 0)]), tuple(delete))


def status(
    daemon_set: Object, nodes: Sequence[DaemonNode], pods: Mapping[str, Sequence[Object]], revision: str, now: float
) -> dict[str, Any]:
    """Return the status that the DaemonSet should have, given its pods."""
    span_s = min_ready_s(daemon_set)
    wanted = [node.name for node in nodes if node.begins]
    first = [by_age(pods[name])[0] for name in wanted if pods.get(name)]
    ready = [pod for pod in first if is_ready(pod)]
    available = sum(is_available(pod, span_s, now) for pod in ready)
    old: Mapping[str, Any] = daemon_set.get("status") or {}
    made = {
        **{name: old[name] for name in ("collisionCount", "conditions") if name in old},
        "currentNumberScheduled": len(first),
        "numberMisscheduled": sum(bool(pods.get(node.name)) for node in nodes if not node.begins),
        "desiredNumberScheduled": len(wanted),
        "numberReady": len(ready),
        "observedGeneration": daemon_set["metadata"].get("generation", 0),
        "updatedNumberScheduled": sum(is_updated(pod, revision, template_generation(daemon_set)) for pod in first),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
    }
    shown = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "collisionCount")
    return nonzero(made, *shown)
