"""Reading dict-shaped Kubernetes objects. Nothing here changes its argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

Object = dict[str, Any]


def name_of(obj: Mapping[str, Any]) -> str:
    """Return ``metadata.name``, "" when absent."""
    return str(obj.get("metadata", {}).get("name", ""))


def namespace_of(obj: Mapping[str, Any]) -> str:
    """``metadata.namespace``, "" for cluster-scoped objects."""
    return str(obj.get("metadata", {}).get("namespace", ""))


def uid_of(obj: Mapping[str, Any]) -> str:
    """Return ``metadata.uid``, "" when absent."""
    return str(obj.get("metadata", {}).get("uid", ""))


def key_of(obj: Mapping[str, Any]) -> str:
    """``namespace/name``, or ``name`` for cluster-scoped objects: unique within a resource."""
    metadata = obj.get("metadata", {})
    name, namespace = metadata.get("name", ""), metadata.get("namespace")
    return f"{namespace}/{name}" if namespace else str(name)


def version_of(obj: Mapping[str, Any]) -> int:
    """``metadata.resourceVersion`` as a number (comparable since Kubernetes 1.35, in fact always); 0 when absent."""
    return int(obj.get("metadata", {}).get("resourceVersion") or 0)


def annotations_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """Return ``metadata.annotations``, empty when absent."""
    return obj.get("metadata", {}).get("annotations") or {}


def labels_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """Return ``metadata.labels``, empty when absent."""
    return obj.get("metadata", {}).get("labels") or {}


def phase_of(pod: Mapping[str, Any]) -> str:
    """Return ``status.phase``, "Pending" when absent."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def node_name_of(pod: Mapping[str, Any]) -> str:
    """Return ``spec.nodeName``, "" while the pod is not bound."""
    return str(pod.get("spec", {}).get("nodeName") or "")


def is_terminal(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod's phase is Succeeded or Failed: it holds no resources any more."""
    return phase_of(pod) in ("Succeeded", "Failed")


def is_deleting(obj: Mapping[str, Any]) -> bool:
    """Return whether the object's deletion has begun."""
    return bool(obj.get("metadata", {}).get("deletionTimestamp"))


def containers_of(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the pod's main containers, in order."""
    yield from pod.get("spec", {}).get("containers") or ()


def init_containers_of(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the pod's init containers and sidecars (restartPolicy Always), in order."""
    yield from pod.get("spec", {}).get("initContainers") or ()


def ephemeral_containers_of(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the containers that were put into the pod while it ran, in order."""
    yield from pod.get("spec", {}).get("ephemeralContainers") or ()


def all_containers_of(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Init containers and sidecars, main containers, ephemeral ones."""
    yield from init_containers_of(pod)
    yield from containers_of(pod)
    yield from ephemeral_containers_of(pod)


def requests_of(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the container's requests; a limit without a request counts as one (API server default)."""
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def condition_of(obj: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """Return the status condition of that type, or None."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == kind:
            return condition  # type: ignore[no-any-return]
    return None


@lru_cache(maxsize=64)
def _written(unix_s: float, timespec: str) -> str:
    """What is done in one instant is stamped alike."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def timestamp(unix_s: float) -> str:
    """RFC 3339 in whole seconds, as metav1.Time: ``2026-01-01T00:00:00Z``."""
    return _written(unix_s, "seconds")


def micro_timestamp(unix_s: float) -> str:
    """RFC 3339 with six decimals, as metav1.MicroTime."""
    return _written(unix_s, "microseconds")


def seconds(stamp: str) -> float:
    """Unix seconds of a Time or MicroTime.

    Raises ValueError for anything else.
    """
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


SCALARS = frozenset({str, int, float, bool, type(None)})
"""The types of JSON values that have no parts: to ask for a type is cheaper than to ask for an instance."""


def clone(value: Any) -> Any:
    """Return a deep copy of a JSON value, several times faster than ``copy.deepcopy``; other mappings and sequences
    become dicts and lists."""
    kind = type(value)
    if kind is dict:
        return {key: item if type(item) in SCALARS else clone(item) for key, item in value.items()}
    if kind is list:
        return [item if type(item) in SCALARS else clone(item) for item in value]
    if kind in SCALARS:
        return value
    if isinstance(value, Mapping):
        return {str(key): clone(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clone(item) for item in value]
    return value
