"""Extended resources that devices of a class stand for (KEP-5004): the claim that the scheduler makes for them.

The claim is drafted in PreFilter, given its requests for each node in Filter and made in PreBind. One that is left
from an attempt that failed is deleted, and the pod tried again. Source: extendeddynamicresources.go of
pkg/scheduler/framework/plugins/dynamicresources, shouldDelegateResourceToDRA of noderesources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mews.kube.api.errors import ApiError, ConflictError, NotFoundError
from mews.kube.api.extended_resources import CLASS_PREFIX, is_extended_resource, may_be_a_class
from mews.kube.api.objects import Object, annotations_of, name_of, namespace_of
from mews.kube.api.resource_claims import DELETE_PROTECTION, names_claims, owns
from mews.kube.api.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS
from mews.kube.client.port import KubeApi, Patch
from mews.kube.clock import rest
from mews.kube.scheduling.devices.class_resources import ClassResources, resource_of
from mews.kube.scheduling.devices.extended_requests import Drafted, drafted
from mews.kube.scheduling.devices.features import DeviceFeatures
from mews.kube.scheduling.framework import Action, CycleState, Handle, Status, Wake, unresolvable
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.claim_attempt import ClaimAttempt
from mews.kube.scheduling.podinfo import Amounts, PodInfo
from mews.kube.scheduling.podstatus import FIELD_MANAGER

OF_EXTENDED = "resource.kubernetes.io/extended-resource-claim"
IN_MEMORY = "<extended-resources>"
"""The claim's name before it is made."""
STALE = unresolvable("cannot schedule extended resource claim")
NO_SUCH = unresolvable("cannot fit resource")
SEEN_WITHIN_S = 120.0
LOOK_S = 1.0
"""How long, and how often, the made claim is waited for in the cache (waitForExtendedClaimInAssumeCache)."""
_TRIES = 5
_PAUSE_S = 0.01


def needs_devices(pod: PodInfo) -> bool:
    """Return whether a pod names claims, or asks for what devices of a class may stand for."""
    return names_claims(pod.pod) or any(may_be_a_class(resource) for resource in pod.requests)


class OnNode(Struct):
    """The claim as it is for one node; which container has which of its requests."""

    claim: Object
    mappings: list[dict[str, str]]


class SpecialClaim(Struct):
    """What one attempt knows of it: the draft, or what the API has of it, and what it is by node."""

    claim: Object
    left: bool
    """Whether an attempt before this one left it."""
    on_node: dict[str, OnNode] = field(default_factory=dict)
    made: Object | None = None
    """What PreBind made of it."""


class ExtendedResources:
    """What the plugins know of the resources behind which device classes stand; nothing while the gate is off."""

    def __init__(self, handle: Handle, features: DeviceFeatures) -> None:
        self._features = features
        self._classes = ClassResources(features)
        if features.extended_resource:
            self._informer = handle.late_informer(DEVICE_CLASSES, needs_devices)
            self._informer.on_change(self._classes.changed)

    def class_of(self, resource: str) -> str | None:
        """Return the device class behind a resource, None where it has none."""
        return self._classes.class_of(resource)

    def left_to_devices(self, requests: Amounts, allocatable: Amounts) -> list[str]:
        """Return the resources that the node has no device plugin for, and that devices may be allocated for."""
        if not self._features.extended_resource:
            return []
        if not self._features.names_classes:
            known = any(is_extended_resource(resource) for resource in requests)
            return [
                resource
                for resource in requests
                if "/" in resource and resource not in allocatable and (not known or self.class_of(resource))
            ]
        return [
            resource for resource in requests if not allocatable.get(resource) and self.class_of(resource) is not None
        ]

    def devices(self, state: CycleState, resource: str, node: NodeInfo) -> tuple[int, int]:
        """Return how many devices stand for the resource on a node, and how many are taken; none before 1.35, or where
        the pod gets none."""
        attempt: ClaimAttempt | None = state.data.get("DynamicResources")
        class_name = self.class_of(resource) if self._features.names_classes else None
        if attempt is None or attempt.allocator is None or class_name is None:
            return 0, 0
        from mews.kube.scheduling.devices.class_counts import counted
        from mews.kube.scheduling.devices.inventory import NodePlace

        allocator = attempt.allocator
        device_class = allocator.class_of(class_name)
        if device_class is None:
            return 0, 0
        return counted(allocator.inventory, allocator.taken, device_class, NodePlace(node.name, node.labels))

    def special(self, pod: PodInfo, claims: Callable[[], Sequence[Object]]) -> SpecialClaim | None:
        """Return the claim of a pod that asks for such a resource: the one that is left of an attempt, or a new
        draft."""
        if not self._features.extended_resource:
            return None
        if not any(self._is_named(resource) and self.class_of(resource) for resource in pod.requests):
            return None
        for claim in claims():
            if is_special(claim) and owns(pod.uid, claim) and namespace_of(claim) == pod.namespace:
                return SpecialClaim(claim, left=True)
        return SpecialClaim(_draft(pod, blocks=not self._features.names_classes), left=False)

    def _is_named(self, resource: str) -> bool:
        return may_be_a_class(resource) if self._features.names_classes else is_extended_resource(resource)

    def judge(self, special: SpecialClaim, pod: PodInfo, node: NodeInfo, *, alone: bool) -> Status | None:
        """Return None once the node's claim is known; else why the node cannot be had. Where ``alone``, a node that has
        device plugins for all the resources has no claim."""
        if special.left:
            return STALE
        named = [resource for resource in pod.requests if self._is_named(resource)]
        wanted: list[str] = []
        for resource in named:
            there = node.allocatable.get(resource)
            lacks = not there if self._features.names_classes else there is None
            if self.class_of(resource) is not None and lacks:
                wanted.append(resource)
            elif there is None:
                return NO_SUCH
        if alone and not wanted:
            return None
        if not self._features.names_classes:
            wanted = named  # 1.34 asks for what device plugins have, too
        draft: Drafted = drafted(pod.pod, wanted, self.class_of, reuses=self._features.names_classes)
        spec = {"devices": {"requests": draft.requests}} if draft.requests else {}
        special.on_node[node.name] = OnNode({**special.claim, "spec": spec}, draft.mappings)
        return None

    def wakes_on(self) -> Sequence[Wake]:
        """Return a class that gives the pod's resource its devices."""
        if not self._features.extended_resource:
            return ()
        return (Wake(DEVICE_CLASSES, Action.ADD | Action.UPDATE, self._names_a_request),)

    @staticmethod
    def _names_a_request(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
        assert new is not None
        if old is not None and resource_of(old) == resource_of(new):
            return False
        if old is None and f"{CLASS_PREFIX}{name_of(new)}" in pod.requests:
            return True
        return resource_of(new) in pod.requests


class SpecialClaimWriter:
    """What is written of it beside allocation and reservation."""

    def __init__(self, kube: KubeApi) -> None:
        self._kube = kube

    async def make(self, claim: Object) -> Object:
        """Make the claim of a node.

        Raises ApiError, in upstream's words, and UnavailableError.
        """
        metadata = {key: value for key, value in claim["metadata"].items() if key not in ("name", "uid")}
        namespace = namespace_of(claim)
        try:
            body = {"metadata": metadata, "spec": claim["spec"]}
            return await self._kube.create(RESOURCE_CLAIMS, body, namespace=namespace, field_manager=FIELD_MANAGER)
        except ApiError as failed:
            text = f"create claim for extended resources {namespace}/: {failed}"
            raise ApiError(text, code=failed.code, reason=failed.reason) from failed

    async def note(self, pod: PodInfo, claim: Object, mappings: Sequence[Mapping[str, str]]) -> None:
        """Tell the pod's status which container has which request of the claim.

        Raises as ``make`` does.
        """
        if not mappings:
            what = f"no update of pod {pod.key} ExtendedResourceClaimStatus"
            raise ApiError(f"nil or empty request mappings, {what}")
        noted = {"requestMappings": list(mappings), "resourceClaimName": name_of(claim)}
        body: dict[str, Any] = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": noted}}
        try:
            await self._kube.patch(
                PODS,
                pod.name,
                body,
                kind=Patch.STRATEGIC,
                namespace=pod.namespace,
                subresource="status",
                field_manager=FIELD_MANAGER,
            )
        except ApiError as failed:
            text = f"update pod {pod.key} ExtendedResourceClaimStatus: {failed}"
            raise ApiError(text, code=failed.code, reason=failed.reason) from failed

    async def delete(self, claim: Object) -> None:
        """Delete the claim, its finalizer first. Raises ApiError, UnavailableError."""
        for attempt in range(_TRIES):
            if attempt:
                await rest(_PAUSE_S)
                claim = await self._kube.get(RESOURCE_CLAIMS, name_of(claim), namespace=namespace_of(claim))
            finalizers = [each for each in claim["metadata"].get("finalizers") or () if each != DELETE_PROTECTION]
            try:
                freed = {**claim, "metadata": {**claim["metadata"], "finalizers": finalizers}}
                await self._kube.replace(RESOURCE_CLAIMS, freed, field_manager=FIELD_MANAGER)
                break
            except ConflictError:
                if attempt == _TRIES - 1:
                    raise
        try:
            await self._kube.delete(RESOURCE_CLAIMS, name_of(claim), namespace=namespace_of(claim))
        except NotFoundError:
            return


def is_special(claim: Object) -> bool:
    """Return whether it stands for a pod's extended resources."""
    return annotations_of(claim).get(OF_EXTENDED) == "true"


def _draft(pod: PodInfo, *, blocks: bool) -> Object:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    if blocks:
        owner["blockOwnerDeletion"] = True
    metadata = {
        "namespace": pod.namespace,
        "name": IN_MEMORY,
        "uid": f"{IN_MEMORY} of {pod.uid}",
        "generateName": f"{pod.name}-extended-resources-",
        "ownerReferences": [owner],
        "annotations": {OF_EXTENDED: "true"},
    }
    return {"metadata": metadata, "spec": {}}
