"""What a StatefulSet's controller decides (k8s.io/kubernetes pkg/controller/statefulset)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, clone, is_deleting, labels_of, name_of, namespace_of, phase_of
from mews.kube.api.resources import STATEFUL_SETS
from mews.kube.emulated.controllers.conditions import nonzero
from mews.kube.emulated.controllers.owners import controller_reference
from mews.kube.emulated.controllers.pods import is_available, is_ready, pod_of
from mews.kube.emulated.controllers.revisions import data_of, next_number
from mews.kube.emulated.controllers.template_hash import safe

REVISION_LABEL = "controller-revision-hash"
_POD_NAME, _POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
_ORDINAL = re.compile(r".*-([0-9]+)")
_ESCAPES = (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"))


def replicas_of(stateful_set: Object) -> int:
    """``spec.replicas``."""
    return int(stateful_set["spec"].get("replicas", 1))


def first_ordinal(stateful_set: Object) -> int:
    """``spec.ordinals.start``."""
    return int((stateful_set["spec"].get("ordinals") or {}).get("start", 0))


def min_ready_s(stateful_set: Object) -> int:
    """``spec.minReadySeconds``."""
    return int(stateful_set["spec"].get("minReadySeconds") or 0)


def is_ordered(stateful_set: Object) -> bool:
    """Return whether each pod waits for the one before."""
    return bool(stateful_set["spec"].get("podManagementPolicy", "OrderedReady") != "Parallel")


def _rolling(stateful_set: Object) -> Mapping[str, Any] | None:
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    return None if strategy.get("type") == "OnDelete" else strategy.get("rollingUpdate") or {}


def ordinal_of(pod: Object) -> int:
    """Return the number at the end of its name, -1 where there is none."""
    match = _ORDINAL.fullmatch(name_of(pod))
    return -1 if match is None else int(match[1])


def revision_name(stateful_set: Object, collisions: int) -> str:
    """FNV-1 of the revision's data as Go writes JSON, and the count of collisions."""
    text = json.dumps(data_of(stateful_set), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for char, escape in _ESCAPES:
        text = text.replace(char, escape)
    value = 2166136261
    for byte in f"{text}{collisions}".encode():
        value = value * 16777619 & 0xFFFFFFFF ^ byte
    return f"{name_of(stateful_set)}-{safe(value)}"


def revision(stateful_set: Object, known: Sequence[Object], collisions: int) -> dict[str, Any]:
    """Return a new revision of the StatefulSet's template."""
    name = revision_name(stateful_set, collisions)
    labels = {**(stateful_set["spec"].get("selector") or {}).get("matchLabels", {})}
    labels |= {**labels_of(stateful_set["spec"]["template"]), "controller.kubernetes.io/hash": name.rpartition("-")[2]}
    metadata = {"name": name, "namespace": namespace_of(stateful_set), "labels": labels}
    owners = [controller_reference(stateful_set, STATEFUL_SETS)]
    body = {"metadata": {**metadata, "ownerReferences": owners}, "data": data_of(stateful_set)}
    return {**body, "revision": next_number(known)}


def pod(stateful_set: Object, ordinal: int, made_from: Object) -> dict[str, Any]:
    """Return the pod of an ordinal, from the template of a revision."""
    template = clone(made_from["data"]["spec"]["template"])
    template.pop("$patch", None)
    name = f"{name_of(stateful_set)}-{ordinal}"
    body = pod_of(template, name_of(stateful_set), controller_reference(stateful_set, STATEFUL_SETS))
    metadata = body["metadata"]
    metadata["name"] = name
    labels = {_POD_NAME: name, _POD_INDEX: str(ordinal), REVISION_LABEL: name_of(made_from)}
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    body["spec"]["hostname"] = name
    body["spec"]["subdomain"] = stateful_set["spec"].get("serviceName", "")
    return body


def is_of(pod_: Object, made_from: Object) -> bool:
    """Return whether the pod was made from that revision."""
    return labels_of(pod_).get(REVISION_LABEL) == name_of(made_from)


def source(stateful_set: Object, ordinal: int, *, current: Object, update: Object) -> Object:
    """Return the revision from which a new pod is made: below the partition the current one."""
    rolling = _rolling(stateful_set) or {}
    return current if ordinal < first_ordinal(stateful_set) + int(rolling.get("partition") or 0) else update


class StatefulSetStep(Struct, frozen=True):
    """What to do now: ordinals to make, pods to delete."""

    create: tuple[int, ...] = ()
    delete: tuple[Object, ...] = ()


def step(stateful_set: Object, pods: Sequence[Object], update: Object, now: float) -> StatefulSetStep:
    """Return the next step. An ordered set takes one at a time, and waits for it to be available."""
    first, ordered, span_s = first_ordinal(stateful_set), is_ordered(stateful_set), min_ready_s(stateful_set)
    wanted = range(first, first + replicas_of(stateful_set))
    known = {ordinal_of(found): found for found in pods}
    create: list[int] = []
    delete: list[Object] = []
    for ordinal in wanted:
        found = known.get(ordinal)
        if found is None:
            create.append(ordinal)
        elif phase_of(found) in ("Failed", "Succeeded"):
            delete += [] if is_deleting(found) else [found]
        elif not ordered or (not is_deleting(found) and is_available(found, span_s, now)):
            continue
        if ordered:
            return StatefulSetStep(tuple(create), tuple(delete))
    if create or delete:
        return StatefulSetStep(tuple(create), tuple(delete))
    surplus = sorted((found for found in pods if ordinal_of(found) not in wanted), key=ordinal_of, reverse=True)
    if surplus:
        return _shrink(surplus, ordered=ordered, span_s=span_s, now=now)
    return StatefulSetStep(delete=tuple(_to_update(stateful_set, [known[ordinal] for ordinal in wanted], update, now)))


def _shrink(surplus: Sequence[Object], *, ordered: bool, span_s: int, now: float) -> StatefulSetStep:
    alive = [found for found in surplus if not is_deleting(found)]
    if not ordered:
        return StatefulSetStep(delete=tuple(alive))
    unhealthy = [found for found in reversed(surplus) if is_deleting(found) or not is_available(found, span_s, now)]
    top = surplus[0]
    waits = is_deleting(top) or (top in unhealthy and top is not unhealthy[0])
    return StatefulSetStep() if waits else StatefulSetStep(delete=(top,))


def _to_update(stateful_set: Object, pods: Sequence[Object], update: Object, now: float) -> list[Object]:
    rolling = _rolling(stateful_set)
    if rolling is None:
        return []
    for found in reversed(pods[int(rolling.get("partition") or 0) :]):
        if not is_of(found, update) and not is_deleting(found):
            return [found]
        if is_deleting(found) or not is_available(found, min_ready_s(stateful_set), now):
            return []
    return []


def status(
    stateful_set: Object, pods: Sequence[Object], *, current: Object, update: Object, now: float
) -> dict[str, Any]:
    """Return the status that the StatefulSet should have, given its pods."""
    alive = [found for found in pods if not is_deleting(found)]
    running = [found for found in pods if phase_of(found) == "Running" and is_ready(found)]
    old: Mapping[str, Any] = stateful_set.get("status") or {}
    total, updated = len(pods), sum(is_of(found, update) for found in alive)
    made: dict[str, Any] = {
        "observedGeneration": stateful_set["metadata"].get("generation", 0),
        "replicas": total,
        "readyReplicas": len(running),
        "currentReplicas": sum(is_of(found, current) for found in alive),
        "updatedReplicas": updated,
        "currentRevision": name_of(current),
        "updateRevision": name_of(update),
        "collisionCount": int(old.get("collisionCount") or 0),
        "availableReplicas": sum(is_available(found, min_ready_s(stateful_set), now) for found in running),
    }
    wanted = replicas_of(stateful_set)
    if _rolling(stateful_set) is not None and updated == len(running) == total == wanted:
        made |= {"currentReplicas": updated, "currentRevision": name_of(update)}
    return nonzero(made, "replicas", "availableReplicas", "collisionCount")
