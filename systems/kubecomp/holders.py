"""Which devices pods hold on a node, out of what its kubelet says (contract kubelet.md section 7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from mews.kube.deviceplugin.port import PodDevices


class GpuHolders(Struct, frozen=True):
    """GPUID -> ``namespace/name`` of the pod holding it; ``known`` is False while the kubelet's word cannot be had.

    ``empty_since_s`` is when the lists began to be empty, None while they are not; ``grants`` are devices that Allocate
    handed out (GPUID -> unix seconds) and that no list has shown yet.
    """

    held: Mapping[str, str] = field(default_factory=dict)
    known: bool = False
    empty_since_s: float | None = None
    grants: Mapping[str, float] = field(default_factory=dict)

    def uses(self, gpuid: str) -> bool:
        """Return whether the device is or may be in use: held, just granted, or nobody knows."""
        return not self.known or gpuid in self.held or gpuid in self.grants


def listed(
    holders: GpuHolders, pods: Sequence[PodDevices], resource: str, *, now_s: float, empty_settle_s: float
) -> GpuHolders:
    """Return it after a pod-resources List. An empty one (a kubelet in its first second) counts once it stays so long
    enough."""
    since_s = None if pods else now_s if holders.empty_since_s is None else holders.empty_since_s
    if since_s is not None and now_s - since_s < empty_settle_s:
        return replace(holders, known=False, empty_since_s=since_s)
    held = {
        gpuid: f"{pod.namespace}/{pod.name}"
        for pod in pods
        for _, devices in pod.containers
        for entry in devices
        if entry.resource == resource
        for gpuid in entry.device_ids
    }
    grants = {gpuid: since for gpuid, since in holders.grants.items() if gpuid not in held}
    return GpuHolders(held, known=True, empty_since_s=since_s, grants=grants)


def unknown(holders: GpuHolders) -> GpuHolders:
    """Return it after a List that failed, or a kubelet's restart: the last word stands, and counts as in use."""
    return replace(holders, known=False, empty_since_s=None)


def granted(holders: GpuHolders, gpuids: Collection[str], now_s: float) -> GpuHolders:
    """Return it after Allocate handed these out."""
    return replace(holders, grants={**holders.grants, **dict.fromkeys(gpuids, now_s)})


def grants_aged(holders: GpuHolders, now_s: float, grace_s: float) -> GpuHolders:
    """Grants older than the grace that no list ever showed are forgotten: their pod failed admission elsewhere."""
    return replace(holders, grants={gpuid: since for gpuid, since in holders.grants.items() if now_s - since < grace_s})
