"""The scale subresource of workloads and of custom kinds that declare it."""

from __future__ import annotations

from typing import Any

from mews.harness.clusters.embedded.kinds import Kind
from mews.kube.api.objects import Object


def scale_of(_kind: Kind, obj: Object) -> Object:
    """An object's autoscaling/v1 Scale."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    metadata = obj["metadata"]
    shown = {
        key: metadata[key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if key in metadata
    }
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    body: dict[str, Any] = {"replicas": status.get("replicas", 0)}
    if labels:
        body["selector"] = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": shown,
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": body,
    }
