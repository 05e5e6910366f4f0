"""What is dropped of objects while feature gates are off, where that is more than the field itself.

Source: dropDisabledFields of pkg/api/pod/util.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.emulated.types.gated_fields import Drop
from mews.kube.releases.feature_gates import FeatureGates

_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")


def _drop_from_pod(spec: dict[str, Any], gates: FeatureGates) -> None:
    if not gates.on("ImageVolume"):
        _drop_image_volumes(spec)
    for name in _CONTAINER_LISTS:
        for container in spec.get(name) or ():
            if not gates.on("ContainerRestartRules") and not _is_sidecar(name, container):
                container.pop("restartPolicy", None)
            if not gates.on("ContainerStopSignals"):
                _drop_stop_signal(container)


def _drop_stop_signal(container: dict[str, Any]) -> None:
    lifecycle = container.get("lifecycle")
    if lifecycle and lifecycle.pop("stopSignal", None) is not None and not lifecycle:
        del container["lifecycle"]


def _is_sidecar(name: str, container: Mapping[str, Any]) -> bool:
    return name == "initContainers" and container.get("restartPolicy") == "Always"


def _drop_image_volumes(spec: dict[str, Any]) -> None:
    images = [volume.get("name") for volume in spec.get("volumes") or () if volume.get("image") is not None]
    if not images:
        return
    spec["volumes"] = [volume for volume in spec["volumes"] if volume.get("image") is None]
    for name in _CONTAINER_LISTS:
        for container in spec.get(name) or ():
            if "volumeMounts" in container:
                mounts = [mount for mount in container["volumeMounts"] if mount.get("name") not in images]
                container["volumeMounts"] = mounts


DROPS: Mapping[str, Drop] = {"core/v1.PodSpec": _drop_from_pod}
"""Struct -> what is dropped of it beside its fields."""

GATED_HOOKS: Mapping[str, tuple[str, Mapping[str, str | None]]] = {
    "horizontalpodautoscalers.autoscaling": (
        "HPAScaleToZero",
        {
            "validate": "kinds.horizontal_pod_autoscalers:zero_errors",
            "validate_update": "kinds.horizontal_pod_autoscalers:zero_change_errors",
        },
    ),
    "statefulsets.apps": ("MaxUnavailableStatefulSet", {"prepare_update": None, "prepare_create": None}),
    "deployments.apps": ("DeploymentReplicaSetTerminatingReplicas", {"prepare_update": None}),
    "replicasets.apps": ("DeploymentReplicaSetTerminatingReplicas", {"prepare_update": None}),
    **{
        kind: ("DRAConsumableCapacity", {hook: f"packs.devices.claim_kinds:{rules}.{hook}" for hook in hooks})
        for kind, rules, hooks in (
            ("deviceclasses.resource.k8s.io", "SHARING_CLASSES", ("validate", "validate_update")),
            ("resourceclaims.resource.k8s.io", "SHARING_CLAIMS", ("admit", "validate", "validate_update")),
            ("resourceclaimtemplates.resource.k8s.io", "SHARING_TEMPLATES", ("admit", "validate", "validate_update")),
        )
    },
    "devicetaintrules.resource.k8s.io": (
        "DRAConsumableCapacity",
        {"validate": "packs.devices.device_taint_rules:sharing_errors"},
    ),
    "csinodes.storage.k8s.io": (
        "MutableCSINodeAllocatableCount",
        {"compare": "packs.storage.csi_nodes:compare_identities"},
    ),
}
"""Kind -> a gate, and what stands in the place of hooks of its rules where the gate is on (None: nothing)."""
