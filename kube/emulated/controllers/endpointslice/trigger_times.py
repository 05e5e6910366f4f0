"""Since when a service's endpoints ought to be other, for an annotation (k8s.io/endpointslice trigger_time_tracker)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mews.kube.api.objects import Object, condition_of, key_of, name_of

ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time"


class TriggerTimes:
    """Per service the times that were seen at its last sync."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, Mapping[str, str]]] = {}

    def forget(self, key: str) -> None:
        """The service is gone."""
        self._seen.pop(key, None)

    def since(self, service: Object, pods: Sequence[Object]) -> str:
        """Return the earliest time that is later than at the last sync (RFC 3339), "" where none is. Called once a
        sync."""
        key, created = key_of(service), str(service["metadata"].get("creationTimestamp") or "")
        known = self._seen.get(key)
        times = {name_of(pod): _ready_since(pod) for pod in pods if _ready_since(pod)}
        self._seen[key] = created, times
        if known is None:
            return created
        fresh = [created] if created > known[0] else []  # another service of that name
        return min([*fresh, *(time for name, time in times.items() if time > known[1].get(name, ""))], default="")


def annotated(metadata: Mapping[str, object], since: str) -> dict[str, object]:
    """Metadata with the annotation, or without it where there is no time."""
    given = metadata.get("annotations")
    annotations = {**given} if isinstance(given, Mapping) else {}
    annotations.pop(ANNOTATION, None)
    if since:
        annotations[ANNOTATION] = since
    others = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**others, "annotations": annotations} if annotations else others


def _ready_since(pod: Object) -> str:
    return str((condition_of(pod, "Ready") or {}).get("lastTransitionTime") or "")
