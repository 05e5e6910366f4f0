"""Invariant 1006: what controllers write of pods is what those pods are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.harness.invariants.fault_windows import LATE
from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.api.objects import (
    Object,
    condition_of,
    is_deleting,
    is_terminal,
    name_of,
    namespace_of,
    uid_of,
    version_of,
)
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant

WITHIN_S = 10.0
"""A controller acts on what it sees at once; a write that is refused is tried again."""
_SERVICE = "kubernetes.io/service-name"
_REPLICAS = ("replicas", "readyReplicas")

Difference = tuple[str, Any, Any]
"""What an object says something of, what it is to say, and what it says."""
Differing = tuple[tuple[str, str], tuple[Object, list[Difference]]]
"""The kind and name of what differs, and the object that says so."""


class _Wrong(Struct):
    """An object that differs: since when it was seen to, in which words, and at which version."""

    since_s: float
    differences: list[Difference]
    version: int


class ControllerStates(Invariant[ObservedState]):
    """The law judges what controllers write of pods, ten seconds after the pods have changed. Endpoints and
    EndpointSlices of a service name the pods that it selects, and which of them are ready (``reconcile`` of
    k8s.io/endpointslice). ReplicaSets and StatefulSets count their pods and their ready pods. A ReplicaSet has as many
    pods as its ``replicas``, unless its condition ``ReplicaFailure`` gives a reason. A Deployment counts the pods of
    its ReplicaSets. A Job counts its active pods. Each has seen its own last change (``observedGeneration``). The law
    does not judge clusters of which a component is down or has just come back."""

    number = 1006
    name = "what controllers write of pods is what those pods are"
    of_time = True
    ours_alone = True
    events = frozenset({("component", event) for event in ("started", "killed", "crashed")})

    def __init__(self) -> None:
        self._wrong: dict[tuple[str, str], _Wrong] = {}
        self._down: set[str] = set()
        self._back_s = 0.0
        self._looked_s = -1.0

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Take in who comes and goes."""
        (self._down.discard if line.event == "started" else self._down.add)(line.actor)
        self._back_s = line.t
        self._wrong.clear()
        return iter(())

    def on_objects(self, t: float, objects: ClusterObjects, state: ObservedState) -> Iterator[Breach]:
        """Compare them, once a moment."""
        if t == self._looked_s or not objects.others or self._down or state.bounds.lag_s:
            return
        self._looked_s = t
        found = dict(_differing(objects))
        self._wrong = {key: wrong for key, wrong in self._wrong.items() if key in found}
        for key, (obj, differences) in found.items():
            known = self._wrong.get(key)
            if known is None or known.version != version_of(obj) or known.differences != differences:
                self._wrong[key] = _Wrong(t, differences, version_of(obj))
            elif t - max(known.since_s, self._back_s) > WITHIN_S and not state.windows.excused(LATE, known.since_s):
                what, wanted, shown = differences[0]
                text = f"{key[0]} {key[1]} says {what} {shown!r} for {t - known.since_s:.1f} s, and {wanted!r} is so"
                yield Breach((*key, what, repr(wanted)), text, None, due_s=known.since_s)


def _differing(objects: ClusterObjects) -> Iterator[Differing]:
    others = objects.others
    if not any(others.values()):
        return
    owned: dict[str, list[Object]] = {}
    for pod in objects.pods.values():
        owned.setdefault(_owner(pod), []).append(pod)
    for plural, judge in (("replicasets", _replicas), ("statefulsets", _replicas), ("jobs", _job)):
        for key, obj in others.get(plural, {}).items():
            differences = list(judge(obj, owned.get(uid_of(obj), ())))
            if differences:
                yield (plural, key), (obj, differences)
    for key, obj in others.get("deployments", {}).items():
        differences = list(_deployment(obj, others.get("replicasets", {})))
        if differences:
            yield ("deployments", key), (obj, differences)
    for key, service in others.get("services", {}).items():
        yield from _service(key, service, objects)


def _owner(obj: Object) -> str:
    """Return the uid of its controller, "" for none."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def _observed(obj: Object) -> Iterator[Difference]:
    generation, seen = obj["metadata"].get("generation"), (obj.get("status") or {}).get("observedGeneration")
    if generation is not None and seen != generation:
        yield "observedGeneration", generation, seen


def _is_ready(pod: Object) -> bool:
    return (condition_of(pod, "Ready") or {}).get("status") == "True"


def _replicas(obj: Object, pods: Sequence[Object]) -> Iterator[Difference]:
    if is_deleting(obj):
        return
    yield from _observed(obj)
    status = obj.get("status") or {}
    is_set = "serviceName" in obj["spec"]
    living = [pod for pod in pods if not is_terminal(pod) and (is_set or not is_deleting(pod))]
    counted = {"replicas": len(living), "readyReplicas": sum(map(_is_ready, living))}
    for name, wanted in counted.items():
        if int(status.get(name) or 0) != wanted:
            yield f"status.{name}", wanted, int(status.get(name) or 0)
    wanted = int(obj["spec"].get("replicas", 1))
    if not is_set and len(living) != wanted and condition_of(obj, "ReplicaFailure") is None:
        yield "pods", wanted, len(living)


def _job(job: Object, pods: Sequence[Object]) -> Iterator[Difference]:
    if is_deleting(job) or job["spec"].get("managedBy"):
        return
    active = sum(not is_terminal(pod) and not is_deleting(pod) for pod in pods)
    shown = int((job.get("status") or {}).get("active") or 0)
    if shown != active:
        yield "status.active", active, shown


def _deployment(deployment: Object, sets: Mapping[str, Object]) -> Iterator[Difference]:
    if is_deleting(deployment):
        return
    yield from _observed(deployment)
    uid, status = uid_of(deployment), deployment.get("status") or {}
    own = [each for each in sets.values() if _owner(each) == uid]
    for name in _REPLICAS:
        wanted = sum(int((each.get("status") or {}).get(name) or 0) for each in own)
        if int(status.get(name) or 0) != wanted:
            yield f"status.{name}", wanted, int(status.get(name) or 0)


def _service(key: str, service: Object, objects: ClusterObjects) -> Iterator[Differing]:
    spec = service.get("spec") or {}
    selector = spec.get("selector")
    if not selector or spec.get("type") == "ExternalName" or is_deleting(service):
        return
    namespace, early = namespace_of(service), bool(spec.get("publishNotReadyAddresses"))
    pods = [
        pod
        for pod in objects.pods.values()
        if namespace_of(pod) == namespace
        and not is_terminal(pod)
        and (pod.get("status") or {}).get("podIP")
        and selector.items() <= (pod["metadata"].get("labels") or {}).items()
    ]
    ready = {name_of(pod): early or (_is_ready(pod) and not is_deleting(pod)) for pod in pods}
    slices = [
        each
        for each in objects.others.get("endpointslices", {}).values()
        if namespace_of(each) == namespace and (each["metadata"].get("labels") or {}).get(_SERVICE) == name_of(service)
    ]
    shown = {
        str(one["targetRef"]["name"]): bool(one["conditions"].get("ready"))
        for each in slices
        for one in each.get("endpoints") or ()
        if one.get("targetRef")
    }
    if shown != ready:
        newest = max(slices, key=version_of, default=service)
        yield ("endpointslices", key), (newest, [("the ready pods", ready, shown)])
    older = objects.others.get("endpoints", {}).get(key)
    there = {name_of(pod): early or _is_ready(pod) for pod in pods if not is_deleting(pod)}
    listed = {
        str(one["targetRef"]["name"]): is_ready
        for subset in ((older or {}).get("subsets") or ())
        for is_ready, name in ((True, "addresses"), (False, "notReadyAddresses"))
        for one in subset.get(name) or ()
        if one.get("targetRef")
    }
    if listed != there:
        yield ("endpoints", key), (older or service, [("the ready pods", there, listed)])
