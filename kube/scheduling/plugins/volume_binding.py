"""Binds the claims of a pod before the pod (upstream volumebinding/volume_binding.go).

Its score counts only with a feature that is off in 1.34 (StorageCapacityScoring), so there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, annotations_of, is_deleting, name_of
from mews.kube.api.quantities import parse
from mews.kube.api.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from mews.kube.api.volumes import claims_of, has_claims, not_made_for
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
)
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.claim_binder import ClaimBinder, PodClaims, VolumeError, VolumesOnNode, volume_limit
from mews.kube.scheduling.plugins.pod_volumes import names_claim, needs_volumes, relabelled
from mews.kube.scheduling.podinfo import PodInfo

UNBOUND = unresolvable("pod has unbound immediate PersistentVolumeClaims")
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


class _Volumes(Struct):
    """What this attempt knows: the claims, by node what the pod would get there, and what Reserve took for it."""

    claims: PodClaims
    on_node: dict[str, VolumesOnNode] = field(default_factory=dict)
    reserved: VolumesOnNode | None = None


class VolumeBinding:
    """Finds nodes on which a pod's claims are or can be bound, and has them bound before the pod is."""

    name = "VolumeBinding"

    def __init__(self, handle: Handle) -> None:
        self._claims = handle.late_informer(PERSISTENT_VOLUME_CLAIMS, needs_volumes)
        self._binder = ClaimBinder(handle)
        handle.late_informer(CSI_NODES, needs_volumes)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Refuse pods with a claim that is missing, lost, going, or yet to be bound by the controller."""
        if not has_claims(pod.pod):
            return SKIP
        if refusal := self._refusal(pod):
            return unresolvable(refusal)
        try:
            claims = self._binder.claims(pod)
        except VolumeError as failed:
            return error(str(failed))
        if claims.immediate:
            return UNBOUND
        state.data[self.name] = _Volumes(claims)
        return SUCCESS

    def _refusal(self, pod: PodInfo) -> str:
        for name, own in claims_of(pod.pod):
            claim = self._claims.get(name, pod.namespace)
            if claim is None and own:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            if claim is None:
                return messages.not_found("persistentvolumeclaim", name)
            if (claim.get("status") or {}).get("phase") == "Lost":
                volume = claim["spec"].get("volumeName", "")
                return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
            if is_deleting(claim):
                return f'persistentvolumeclaim "{name}" is being deleted'
            if own and (why := not_made_for(pod.pod, claim)):
                return why
        return ""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Refuse nodes that cannot reach the bound volumes, or on which the other claims cannot be bound."""
        volumes: _Volumes = state.data[self.name]
        assert node.node is not None
        try:
            found = self._binder.find(volumes.claims, node.node)
        except VolumeError as failed:
            return error(str(failed))
        if found.reasons:
            return unresolvable(*found.reasons)
        volumes.on_node[node.name] = found.volumes
        return SUCCESS

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Take the volumes found for the node."""
        volumes: _Volumes | None = state.data.get(self.name)
        if volumes is not None and node in volumes.on_node:
            volumes.reserved = self._binder.assume(pod, node, volumes.on_node[node])
        return SUCCESS

    async def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Give them back, as far as that is not written."""
        volumes: _Volumes | None = state.data.get(self.name)
        if volumes is not None and volumes.reserved is not None:
            self._binder.revert(volumes.reserved)

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Have everything bound that is not; nothing of what is written by then is taken back if it fails."""
        volumes: _Volumes | None = state.data.get(self.name)
        if volumes is None or volumes.reserved is None:
            return SUCCESS
        try:
            await self._binder.bind(pod, node, volumes.reserved)
        except (VolumeError, ApiError, UnavailableError) as failed:
            return error(str(failed))
        return SUCCESS

    def wakes_on(self) -> Sequence[Wake]:
        """Return whatever may bind a claim or lets a node reach a volume."""
        added = Action.ADD | Action.UPDATE
        return (
            Wake(STORAGE_CLASSES, added, _class_opens),
            Wake(PERSISTENT_VOLUME_CLAIMS, added, _is_own),
            Wake(PERSISTENT_VOLUMES, added),
            Wake(NODES, added, relabelled),
            Wake(CSI_NODES, added, _migrates),
            Wake(CSI_DRIVERS, Action.UPDATE, _stops_counting),
            Wake(CSI_STORAGE_CAPACITIES, added, _grows),
        )


def _is_own(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    return new is not None and names_claim(pod, new)


def _class_opens(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    return new is not None and (old is None or old.get("allowedTopologies") != new.get("allowedTopologies"))


def _migrates(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    if old is None or new is None:
        return new is not None
    return annotations_of(old).get(_MIGRATED) != annotations_of(new).get(_MIGRATED)


def _stops_counting(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    """Return it as upstream asks: of volumes that the pod itself names by their driver."""
    if old is None or new is None:
        return False
    named = {(volume.get("csi") or {}).get("driver") for volume in pod.pod["spec"].get("volumes") or ()}
    return name_of(new) in named and bool(old["spec"].get("storageCapacity") and not new["spec"].get("storageCapacity"))


def _grows(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    if old is None or new is None:
        return new is not None
    before, after = volume_limit(old), volume_limit(new)
    return after is not None and (before is None or parse(after) > parse(before))
