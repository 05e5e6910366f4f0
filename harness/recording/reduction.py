"""What of an object is looked at: an allow-list, so that secrets, environments, arguments and annotations never are.

A pod's annotations are left out except for their names and the node that a system's scheduler has chosen. Command lines
and arguments are left out as well: tokens are passed in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from mews.harness.recording.observations import Object
from mews.harness.systems import all_systems
from mews.kube.system.facility import Facility
from mews.kube.system.system import Pooled

WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController")
"""Kinds of Kubernetes that make pods."""

_METADATA = ("name", "namespace", "uid", "labels", "creationTimestamp", "deletionTimestamp", "ownerReferences")
_POD = (
    "schedulerName",
    "restartPolicy",
    "terminationGracePeriodSeconds",
    "nodeSelector",
    "nodeName",
    "tolerations",
    "affinity",
    "topologySpreadConstraints",
    "overhead",
    "resources",
)
_CONTAINER = ("name", "image", "resources", "restartPolicy")
_POD_STATUS = ("phase", "reason", "startTime")
_CONDITION = ("type", "status", "reason", "message", "lastTransitionTime")
_NODE_STATUS = ("allocatable", "capacity")
_EVENT = (
    *("involvedObject", "regarding", "reason", "message", "note", "type", "count"),
    *("firstTimestamp", "lastTimestamp", "eventTime", "deprecatedLastTimestamp"),
)
_OWNER = (
    *("replicas", "selector", "parallelism", "completions", "completionMode", "backoffLimit", "serviceName"),
    *("podManagementPolicy", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "suspend"),
)
_UNPLAYED = ("volumes", "priorityClassName", "resourceClaims", "schedulingGates", "hostNetwork", "runtimeClassName")
"""Fields of a pod that a replay leaves out although they may matter to where it goes; their names are kept."""
_HIDDEN = frozenset(
    {
        *("env", "envFrom", "args", "command", "volumes", "volumeMounts", "volumeDevices", "imagePullSecrets"),
        *("serviceAccount", "serviceAccountName", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"),
        *("securityContext", "annotations", "data", "stringData", "binaryData", "hostAliases", "dnsConfig"),
    }
)
"""Keys that are taken out at any depth of a kind that only its system knows."""

LEFT_OUT = "leftOut"
"""Key of a reduced pod: names of the fields and annotations that it had and has no more."""
CHOSEN = "chosenNode"
"""Key of a reduced pod: the node to which devices are moved for it, as its system's annotations say."""


def reduced(obj: Object) -> dict[str, Any] | None:
    """Return what of it is looked at; None for a kind that is not."""
    kind = str(obj.get("kind", ""))
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        return None
    owners = [
        _picked(each, ("kind", "apiVersion", "name", "uid", "controller"))
        for each in _rows(metadata.get("ownerReferences"))
    ]
    kept = {**_picked(metadata, _METADATA), "ownerReferences": owners}
    head = {"kind": kind, "apiVersion": str(obj.get("apiVersion", "")), "metadata": kept}
    if kind == "Pod":
        return {**head, **_pod(obj)}
    if kind == "Node":
        return {**head, **_node(obj)}
    if kind == "Event":
        return {**head, **_picked(obj, _EVENT)}
    if kind in WORKLOADS:
        return {**head, "spec": _workload(obj)}
    if kind in system_kinds():
        return {**head, "spec": _bared(obj.get("spec") or {})}
    return None


@cache
def system_kinds() -> Mapping[str, str]:
    """Namespaced kinds that the systems under test define, from which users make pods -> the system's name."""
    return {
        str(crd["spec"]["names"]["kind"]): system.name
        for system in all_systems()
        for crd in system.kinds()
        if crd.get("kind") == "CustomResourceDefinition" and crd["spec"].get("scope") == "Namespaced"
    }


def _pod(obj: Object) -> dict[str, Any]:
    spec, status = _mapping(obj.get("spec")), _mapping(obj.get("status"))
    annotations = _mapping(obj["metadata"].get("annotations"))
    left_out = sorted(name for name in annotations if not str(name).startswith("kubectl.kubernetes.io/"))
    volumes = [each for each in _rows(spec.get("volumes")) if not str(each.get("name")).startswith("kube-api-access-")]
    fields = [name for name in _UNPLAYED if (volumes if name == "volumes" else spec.get(name))]
    return {
        "spec": _pod_spec(spec),
        "status": {
            **_picked(status, _POD_STATUS),
            "conditions": [_picked(each, _CONDITION) for each in _rows(status.get("conditions"))],
            "containerStatuses": [_container_status(each) for each in _rows(status.get("containerStatuses"))],
        },
        CHOSEN: _chosen(obj),
        LEFT_OUT: [*fields, *(f"annotation {name}" for name in left_out)],
    }


def _pod_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    found = _picked(spec, _POD)
    found["tolerations"] = [
        each
        for each in _rows(spec.get("tolerations"))
        if not str(each.get("key", "")).startswith("node.kubernetes.io/")
    ]
    for name in ("containers", "initContainers"):
        found[name] = [_picked(each, _CONTAINER) for each in _rows(spec.get(name))]
    return {key: value for key, value in found.items() if value not in ([], {}, None)}


def _container_status(status: Mapping[str, Any]) -> dict[str, Any]:
    state = _mapping(status.get("state"))
    times = {
        name: _picked(_mapping(state.get(name)), ("startedAt", "finishedAt", "exitCode", "reason"))
        for name in ("running", "terminated", "waiting")
        if state.get(name)
    }
    return {**_picked(status, ("name", "restartCount")), "state": times}


def _node(obj: Object) -> dict[str, Any]:
    spec, status = _mapping(obj.get("spec")), _mapping(obj.get("status"))
    conditions = [
        _picked(each, (*_CONDITION, "lastHeartbeatTime"))
        for each in _rows(status.get("conditions"))
        if each.get("type") == "Ready"
    ]
    taints = [_picked(each, ("key", "value", "effect")) for each in _rows(spec.get("taints"))]
    return {
        "spec": {**_picked(spec, ("unschedulable",)), "taints": taints},
        "status": {**_picked(status, _NODE_STATUS), "conditions": conditions},
    }


def _workload(obj: Object) -> dict[str, Any]:
    spec = _mapping(obj.get("spec"))
    template = _mapping(spec.get("template"))
    labels = _mapping(_mapping(template.get("metadata")).get("labels"))
    return {
        **_picked(spec, _OWNER),
        "template": {"metadata": {"labels": dict(labels)}, "spec": _pod_spec(_mapping(template.get("spec")))},
    }


def _bared(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _bared(each) for key, each in value.items() if key not in _HIDDEN}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_bared(each) for each in value]
    return value


def _chosen(pod: Object) -> str:
    """Asked of every system: each knows its own annotations."""
    return next((chosen for pooled in _pooled() if (chosen := pooled.chosen(dict(pod)))), "")


@cache
def _pooled() -> tuple[Pooled, ...]:
    made = (system.pooled(system.configure(system.options(), Facility())) for system in all_systems())
    return tuple(pooled for pooled in made if pooled is not None)


def _picked(value: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value[name] for name in names if value.get(name) is not None}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _rows(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, Sequence) else []
