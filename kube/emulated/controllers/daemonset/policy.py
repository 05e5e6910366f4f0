"""What a DaemonSet's controller decides (k8s.io/kubernetes pkg/controller/daemon)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mews.kube.api.objects import Object, annotations_of, clone, is_deleting, labels_of, name_of, node_name_of, phase_of
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


@dataclass(frozen=True, slots=True)
class DaemonNode:
    """What counts of a node: whether a pod may begin there, and whether one that is there may stay."""

    name: str
    begins: bool
    stays: bool


def template_generation(daemon_set: Object) -> int:
    """How often the template was changed, as the API server counts."""
    text = annotations_of(daemon_set).get("deprecated.daemonset.template.generation", "1")
    return int(text) if text.isdecimal() else 1


def tolerations_of(template: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The template's, and those that every daemon pod has."""
    spec = template.get("spec") or {}
    found = [dict(toleration) for toleration in spec.get("tolerations") or ()]
    known = [*_TOLERATED, *([("network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else [])]
    for trouble, effect in known:
        toleration = {"key": f"node.kubernetes.io/{trouble}", "operator": "Exists", "effect": effect}
        if toleration not in found:
            found.append(toleration)
    return found


def judge(node: Object, daemon_set: Object) -> DaemonNode:
    """Whether a node is one of a DaemonSet's."""
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
    """The node that a daemon pod is or will be on, by its node name or by the affinity it was made with."""
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
    """The template of the pod of one node."""
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


@dataclass(frozen=True, slots=True)
class DaemonPlan:
    """Nodes that need a pod, pods to delete, and pods that ended and are to be told of before they are deleted."""

    create: tuple[str, ...]
    delete: tuple[Object, ...]
    ended: tuple[Object, ...]


def plan(nodes: Sequence[DaemonNode], pods: Mapping[str, Sequence[Object]]) -> DaemonPlan:
    """What to do so that each node has the pod that it ought to have."""
    create: list[str] = []
    delete: list[Object] = []
    ended: list[Object] = []
    for node in nodes:
        there = [pod for pod in pods.get(node.name, ()) if not is_deleting(pod)]
        if node.begins and not pods.get(node.name):
            create.append(node.name)
        elif node.stays:
            ended += [pod for pod in there if phase_of(pod) in ("Failed", "Succeeded")]
            delete += by_age(pod for pod in there if phase_of(pod) not in ("Failed", "Succeeded"))[1:]
        else:
            delete += there
    known = {node.name for node in nodes}
    for name in sorted(set(pods) - known):
        delete += [pod for pod in pods[name] if not node_name_of(pod) and not is_deleting(pod)]
    return DaemonPlan(tuple(create), tuple(delete), tuple(ended))


def min_ready_s(daemon_set: Object) -> int:
    """``spec.minReadySeconds``."""
    return int(daemon_set["spec"].get("minReadySeconds") or 0)


def is_updated(pod: Object, revision: str) -> bool:
    """Whether the pod is made from the current template."""
    return labels_of(pod).get(REVISION_LABEL) == revision


def to_replace(
    daemon_set: Object, nodes: Sequence[DaemonNode], pods: Mapping[str, Sequence[Object]], revision: str, now: float
) -> list[Object]:
    """Old pods to delete now, so that not too many nodes are without an available one. (``maxSurge`` counts as 0.)"""
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return []
    wanted = [node.name for node in nodes if node.begins]
    rolling = strategy.get("rollingUpdate") or {}
    most = max(scaled(rolling.get("maxUnavailable", 1), len(wanted), up=True), 0)
    span_s, missing = min_ready_s(daemon_set), 0
    at_once: list[Object] = []
    in_turn: list[Object] = []
    for name in wanted:
        there = pods.get(name, ())
        old = [pod for pod in there if not is_updated(pod, revision)]
        if len(there) != 1 or (old and is_deleting(old[0])):
            missing += 1
        elif not old:
            missing += not is_available(there[0], span_s, now)
        elif is_available(old[0], span_s, now):
            in_turn.append(old[0])
        else:
            missing += 1
            at_once.append(old[0])
    return [*at_once, *in_turn[: max(most - missing, 0)]]


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
        "updatedNumberScheduled": sum(is_updated(pod, revision) for pod in first),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
    }
    shown = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "collisionCount")
    return nonzero(made, *shown)
