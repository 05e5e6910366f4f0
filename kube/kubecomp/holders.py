"""Which devices pods hold on a node, out of what its kubelet says (contract kubelet.md section 7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mews.kube.deviceplugin.port import PodDevices


@dataclass(frozen=True, slots=True)
class Holders:
    """GPUID -> ``namespace/name`` of the pod holding it; ``known`` is False while the kubelet's word cannot be had.

    ``empties`` counts empty lists in a row; ``grants`` are devices that Allocate handed out (GPUID -> loop seconds)
    and that no list has shown yet.
    """

    held: Mapping[str, str] = field(default_factory=dict)
    known: bool = False
    empties: int = 0
    grants: Mapping[str, float] = field(default_factory=dict)

    def uses(self, gpuid: str) -> bool:
        """Whether the device is or may be in use: held, just granted, or nobody knows."""
        return not self.known or gpuid in self.held or gpuid in self.grants


def listed(holders: Holders, pods: Sequence[PodDevices], resource: str, *, empty_reads: int) -> Holders:
    """After a pod-resources List. An empty one (a kubelet in its first second) counts once it is repeated."""
    if not pods and holders.empties + 1 < empty_reads:
        return replace(holders, known=False, empties=holders.empties + 1)
    held = {
        gpuid: f"{pod.namespace}/{pod.name}"
        for pod in pods
        for _, devices in pod.containers
        for entry in devices
        if entry.resource == resource
        for gpuid in entry.device_ids
    }
    grants = {gpuid: since for gpuid, since in holders.grants.items() if gpuid not in held}
    return Holders(held, known=True, empties=0 if pods else holders.empties + 1, grants=grants)


def unknown(holders: Holders) -> Holders:
    """After a List that failed, or a kubelet's restart: the last word stands, and counts as in use."""
    return replace(holders, known=False, empties=0)


def granted(holders: Holders, gpuids: Collection[str], now_s: float) -> Holders:
    """After Allocate handed these out."""
    return replace(holders, grants={**holders.grants, **dict.fromkeys(gpuids, now_s)})


def grants_aged(holders: Holders, now_s: float, grace_s: float) -> Holders:
    """Grants older than the grace that no list ever showed are forgotten: their pod failed admission elsewhere."""
    return replace(holders, grants={gpuid: since for gpuid, since in holders.grants.items() if now_s - since < grace_s})
