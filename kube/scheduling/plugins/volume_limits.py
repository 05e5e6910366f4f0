"""How many volumes of a CSI driver a node takes (upstream nodevolumelimits/csi.go).

Volumes that a pod names without a claim are not counted: upstream counts those of cloud providers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, node_name_of
from mews.kube.api.resources import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from mews.kube.api.volumes import claims_of, class_of, has_claims, not_made_for
from mews.kube.scheduling import messages
from mews.kube.scheduling.framework import (
    SKIP,
    SUCCESS,
    Action,
    CycleState,
    Handle,
    Status,
    Wake,
    error,
    unresolvable,
    unschedulable,
)
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.pod_volumes import names_claim, needs_volumes
from mews.kube.scheduling.podinfo import PodInfo

TOO_MANY = unschedulable("node(s) exceed max volume count")
_Attached = Mapping[str, str]
"""Driver/handle -> driver."""


class NodeVolumeLimits:
    """Refuses nodes that have as many volumes of a driver as it says they take."""

    name = "NodeVolumeLimits"

    def __init__(self, handle: Handle) -> None:
        self._claims = handle.late_informer(PERSISTENT_VOLUME_CLAIMS, needs_volumes)
        self._volumes = handle.late_informer(PERSISTENT_VOLUMES, needs_volumes)
        self._classes = handle.late_informer(STORAGE_CLASSES, needs_volumes)
        self._nodes = handle.late_informer(CSI_NODES, needs_volumes)
        self._attachments = handle.late_informer(VOLUME_ATTACHMENTS, needs_volumes)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """SKIP pods without claims."""
        return SUCCESS if has_claims(pod.pod) else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Count the volumes of the node's pods, those that are attached to it, and the pod's."""
        for name, own in claims_of(pod.pod):
            claim = self._claims.get(name, pod.namespace)
            if claim is None:
                missing = messages.not_found("persistentvolumeclaim", name)
                return unresolvable(f"looking up PVC {pod.namespace}/{name}: {missing}")
            if own and (why := not_made_for(pod.pod, claim)):
                return error(why)
        wanted = self._attached_by(pod)
        limits = _limits(self._nodes.at(node.name))
        if not wanted or not limits:
            return SUCCESS
        there: dict[str, str] = {}
        for other in node.pods.values():
            there |= self._attached_by(other)
        added = [driver for volume, driver in wanted.items() if volume not in there]
        held = list((self._attached_to(node.name) | there).values())
        is_over = any(
            driver in limits and held.count(driver) + added.count(driver) > limits[driver] for driver in set(added)
        )
        return TOO_MANY if is_over else SUCCESS

    def _attached_by(self, pod: PodInfo) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, _ in claims_of(pod.pod):
            claim = self._claims.get(name, pod.namespace)
            driver, handle = ("", "") if claim is None else self._driver_of(claim)
            if driver and handle:
                found[f"{driver}/{handle}"] = driver
        return found

    def _driver_of(self, claim: Object) -> tuple[str, str]:
        """Return the driver and the volume's handle; for a claim without a volume, stand-ins by its class."""
        volume = self._volumes.get(claim["spec"].get("volumeName") or "")
        if volume is not None:
            source = volume["spec"].get("csi") or {}
            return str(source.get("driver", "")), str(source.get("volumeHandle", ""))
        storage_class = self._classes.get(class_of(claim)) if class_of(claim) else None
        if storage_class is None:
            return "", ""
        metadata = claim["metadata"]
        return str(storage_class["provisioner"]), f"{metadata['namespace']}/{metadata['name']}"

    def _attached_to(self, node: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for attachment in self._attachments.items():
            spec = attachment["spec"]
            volume = self._volumes.get((spec.get("source") or {}).get("persistentVolumeName") or "")
            source = {} if volume is None else volume["spec"].get("csi") or {}
            if spec.get("nodeName") == node and source:
                found[f"{spec['attacher']}/{source['volumeHandle']}"] = str(spec["attacher"])
        return found

    def wakes_on(self) -> Sequence[Wake]:
        """Return a node that takes more, a pod with volumes that is gone, a volume that is detached."""
        return (
            Wake(CSI_NODES, Action.ADD | Action.UPDATE, _takes_more),
            Wake(NODES, Action.ADD),
            Wake(PODS, Action.DELETE, _leaves_volumes),
            Wake(PERSISTENT_VOLUME_CLAIMS, Action.ADD, _is_own),
            Wake(VOLUME_ATTACHMENTS, Action.DELETE),
        )


def _limits(node: Object | None) -> dict[str, int]:
    drivers: Sequence[Mapping[str, Any]] = () if node is None else (node.get("spec") or {}).get("drivers") or ()
    return {
        driver["name"]: int(driver["allocatable"]["count"])
        for driver in drivers
        if (driver.get("allocatable") or {}).get("count") is not None
    }


def _takes_more(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    if new is None or old is None:
        return new is not None
    before = _limits(old)
    return any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())


def _leaves_volumes(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    return old is not None and bool(node_name_of(old)) and has_claims(old)


def _is_own(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    return new is not None and names_claim(pod, new)
