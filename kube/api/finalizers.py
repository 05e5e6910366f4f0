"""Finalizers that more than one component knows."""

from __future__ import annotations

from collections.abc import Mapping

from mews.kube.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES, Resource

IN_USE: Mapping[Resource, str] = {
    PERSISTENT_VOLUME_CLAIMS: "kubernetes.io/pvc-protection",
    PERSISTENT_VOLUMES: "kubernetes.io/pv-protection",
    VOLUME_ATTRIBUTES_CLASSES: "kubernetes.io/vac-protection",
}
"""Admission gives it to each, a controller takes it from one that is being deleted and that nothing uses."""
