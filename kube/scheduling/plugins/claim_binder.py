"""Which volumes a pod would get on a node, and how they are bound (upstream volumebinding/binder.go).

Volumes of cloud providers are taken as they are: upstream translates those to their CSI drivers first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mews.kube.api.objects import Object, annotations_of, key_of, labels_of, name_of, version_of
from mews.kube.api.quantities import parse
from mews.kube.api.resources import (
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Resource,
)
from mews.kube.api.selectors import match_expressions
from mews.kube.api.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    annotated,
    bound_to,
    claims_of,
    class_of,
    is_fully_bound,
    is_reachable,
    not_made_for,
    request_of,
    smallest_match,
    waits_for_consumer,
)
from mews.kube.clock import rest
from mews.kube.events import reference
from mews.kube.scheduling import messages
from mews.kube.scheduling.framework import Handle
from mews.kube.scheduling.plugins.assumed_objects import AssumedObjects
from mews.kube.scheduling.plugins.pod_volumes import needs_volumes
from mews.kube.scheduling.podinfo import PodInfo

OTHER_NODE = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"
NO_SUCH_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
BIND_TIMEOUT_S = 600.0
"""VolumeBindingArgs.bindTimeoutSeconds."""
_POLL_S = 1.0
MANAGER = "kube-scheduler"


class VolumeError(Exception):
    """Volumes cannot be decided or bound; the text is upstream's."""


class PodClaims(Struct, frozen=True):
    """A pod's claims by what has to be done about them, in the order of its volumes."""

    bound: tuple[Object, ...] = ()
    delayed: tuple[Object, ...] = ()
    immediate: tuple[Object, ...] = ()


class VolumesOnNode(Struct, frozen=True):
    """What a pod gets on one node: volumes for claims, and claims for which a volume is to be made there."""

    bindings: tuple[tuple[Object, Object], ...] = ()
    """(volume, claim)."""
    provisions: tuple[Object, ...] = ()


class VolumeFindings(Struct):
    """What came of looking at one node."""

    volumes: VolumesOnNode = field(default_factory=VolumesOnNode)
    reasons: list[str] = field(default_factory=list)


class ClaimBinder:
    """One for a profile."""

    def __init__(self, handle: Handle) -> None:
        self._kube = handle.context.kube
        self._clock = handle.context.clock
        self._handle = handle
        self._pods = handle.informer(PODS)
        self._claims = AssumedObjects(handle.late_informer(PERSISTENT_VOLUME_CLAIMS, needs_volumes))
        self._volumes = AssumedObjects(handle.late_informer(PERSISTENT_VOLUMES, needs_volumes))
        self._classes = handle.late_informer(STORAGE_CLASSES, needs_volumes)
        self._drivers = handle.late_informer(CSI_DRIVERS, needs_volumes)
        self._capacities = handle.late_informer(CSI_STORAGE_CAPACITIES, needs_volumes)

    # Deciding

    def claims(self, pod: PodInfo) -> PodClaims:
        """Return the pod's claims, sorted.

        Raises VolumeError for one that is not there or not the pod's.
        """
        bound: list[Object] = []
        delayed: list[Object] = []
        immediate: list[Object] = []
        for name, own in claims_of(pod.pod):
            claim = self._claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                key = f"{pod.namespace}/{name}"
                raise VolumeError(f'error getting PVC "{key}": {_lost(PERSISTENT_VOLUME_CLAIMS, key)}')
            if own and (why := not_made_for(pod.pod, claim)):
                raise VolumeError(why)
            waits = waits_for_consumer(self._classes.at(class_of(claim))) and not claim["spec"].get("volumeName")
            (bound if is_fully_bound(claim) else delayed if waits else immediate).append(claim)
        return PodClaims(tuple(bound), tuple(delayed), tuple(immediate))

    def find(self, claims: PodClaims, node: Object) -> VolumeFindings:
        """Return what the pod would get on that node, or why it cannot run there.

        Raises VolumeError.
        """
        found = VolumeFindings()
        self._check_bound(claims.bound, node, found)
        chosen = [(claim, annotations_of(claim).get(SELECTED_NODE)) for claim in claims.delayed]
        if any(place is not None and place != name_of(node) for _, place in chosen):
            found.reasons.insert(1 if OTHER_NODE in found.reasons else 0, NO_VOLUME)
            return found
        bindings, unmatched = self._match([claim for claim, place in chosen if place is None], node)
        to_make = [*(claim for claim, place in chosen if place is not None), *unmatched]
        refusal = self._cannot_make(to_make, node)
        if refusal:
            found.reasons.insert(1 if OTHER_NODE in found.reasons else 0, refusal)
        found.volumes = VolumesOnNode(tuple(bindings), () if refusal else tuple(to_make))
        return found

    def _check_bound(self, claims: Sequence[Object], node: Object, found: VolumeFindings) -> None:
        for claim in claims:
            volume = self._volumes.get(claim["spec"]["volumeName"])
            if volume is None:
                found.reasons.append(NO_SUCH_VOLUME)
                return
            if not is_reachable(volume, node):
                found.reasons.append(OTHER_NODE)
                return

    def _match(self, claims: Sequence[Object], node: Object) -> tuple[list[tuple[Object, Object]], list[Object]]:
        """Volumes that are there for claims, the smallest claim first, and the claims without any."""
        bindings: list[tuple[Object, Object]] = []
        unmatched: list[Object] = []
        taken: set[str] = set()
        for claim in sorted(claims, key=request_of):
            free = [
                volume
                for volume in self._volumes.items()
                if class_of(volume) == class_of(claim) and name_of(volume) not in taken
            ]
            volume = smallest_match(claim, free, waits=True, node=node)
            if volume is None:
                unmatched.append(claim)
            else:
                taken.add(name_of(volume))
                bindings.append((volume, claim))
        return bindings, unmatched

    def _cannot_make(self, claims: Sequence[Object], node: Object) -> str:
        """Return why volumes for these claims cannot be made on that node; "" if they can.

        Raises VolumeError for a class that is not there.
        """
        for claim in claims:
            storage_class = self._classes.at(class_of(claim))
            if storage_class is None:
                raise VolumeError(f'failed to find storage class "{class_of(claim)}"')
            provisioner = str(storage_class.get("provisioner") or NO_PROVISIONER)
            if provisioner == NO_PROVISIONER or not in_topology(storage_class.get("allowedTopologies"), node):
                return NO_VOLUME
            if not self._has_room(provisioner, claim, name_of(storage_class), node):
                return NO_ROOM
        return ""

    def _has_room(self, provisioner: str, claim: Object, storage_class: str, node: Object) -> bool:
        """Return whether a driver that announces its free storage has enough for the claim on that node."""
        driver = self._drivers.at(provisioner)
        if driver is None or not driver["spec"].get("storageCapacity"):
            return True
        return any(
            capacity["storageClassName"] == storage_class
            and (limit := volume_limit(capacity)) is not None
            and parse(limit) >= request_of(claim)
            and capacity.get("nodeTopology") is not None
            and match_expressions(capacity["nodeTopology"], labels_of(node))
            for capacity in self._capacities.items()
        )

    # Assuming

    def assume(self, pod: PodInfo, node: str, wanted: VolumesOnNode) -> VolumesOnNode | None:
        """Take what was found to be written already; None where all is bound. What is returned is to be written."""
        if all(self._is_bound(f"{pod.namespace}/{name}") for name, _ in claims_of(pod.pod)):
            return None
        bindings = []
        for volume, claim in wanted.bindings:
            changed = bound_to(volume, claim, reference({**claim, "kind": "PersistentVolumeClaim", "apiVersion": "v1"}))
            if changed is not volume:
                self._volumes.assume(changed)
            bindings.append((changed, claim))
        provisions = [annotated(claim, **{SELECTED_NODE: node}) for claim in wanted.provisions]
        for claim in provisions:
            self._claims.assume(claim)
        return VolumesOnNode(tuple(bindings), tuple(provisions))

    def _is_bound(self, key: str) -> bool:
        claim = self._claims.get(key)
        return claim is not None and is_fully_bound(claim)

    def revert(self, volumes: VolumesOnNode) -> None:
        """Take back what was assumed."""
        for volume, _ in volumes.bindings:
            self._volumes.restore(name_of(volume))
        for claim in volumes.provisions:
            self._claims.restore(key_of(claim))

    # Binding

    async def bind(self, pod: PodInfo, node: str, volumes: VolumesOnNode) -> None:
        """Write it and wait until the controller has bound everything.

        Raises VolumeError, ApiError, UnavailableError.
        """
        written = await self._write(volumes)
        end_s = self._clock.now() + BIND_TIMEOUT_S
        while True:
            await rest(_POLL_S)
            try:
                if self._has_happened(pod, node, written):
                    return
            except VolumeError as error:
                raise VolumeError(f"binding volumes: {error}") from error
            if self._clock.now() >= end_s:
                raise VolumeError("binding volumes: context deadline exceeded")

    async def _write(self, volumes: VolumesOnNode) -> VolumesOnNode:
        """Volumes first; what is not written is assumed no longer."""
        bindings: list[tuple[Object, Object]] = []
        provisions: list[Object] = []
        try:
            for volume, claim in volumes.bindings:
                bindings.append((await self._kube.replace(PERSISTENT_VOLUMES, volume, field_manager=MANAGER), claim))
            for claim in volumes.provisions:
                namespace = claim["metadata"]["namespace"]
                provisions.append(
                    await self._kube.replace(
                        PERSISTENT_VOLUME_CLAIMS, claim, namespace=namespace, field_manager=MANAGER
                    )
                )
        finally:
            left = VolumesOnNode(volumes.bindings[len(bindings) :], volumes.provisions[len(provisions) :])
            self.revert(left)
        return VolumesOnNode(tuple(bindings), tuple(provisions))

    def _has_happened(self, pod: PodInfo, node: str, written: VolumesOnNode) -> bool:
        """Return whether all is bound.

        Raises VolumeError where it will not be.
        """
        book = self._handle.nodes.get(node)
        if book is None or book.node is None:
            raise VolumeError(f'failed to get node "{node}": {messages.not_found("node", node)}')
        if self._pods.get(pod.name, pod.namespace) is None:
            text = messages.not_found("pod", pod.name)
            raise VolumeError(f"pod does not exist any more: {text}")
        return all(self._is_given(volume, claim, book.node) for volume, claim in written.bindings) and all(
            self._is_made(claim, book.node) for claim in written.provisions
        )

    def _is_given(self, written: Object, claim: Object, node: Object) -> bool:
        volume, now = self._volumes.known(name_of(written)), self._claims.known(key_of(claim))
        if volume is None:
            raise VolumeError(f"failed to check binding: {_lost(PERSISTENT_VOLUMES, name_of(written))}")
        if now is None:
            raise VolumeError(f"failed to check binding: {_lost(PERSISTENT_VOLUME_CLAIMS, key_of(claim))}")
        if version_of(written) > version_of(volume):
            return False
        self._check_reach(volume, node)
        if not (volume["spec"].get("claimRef") or {}).get("uid"):
            raise VolumeError(f'ClaimRef got reset for pv "{name_of(volume)}"')
        return is_fully_bound(now)

    def _is_made(self, written: Object, node: Object) -> bool:
        claim = self._claims.known(key_of(written))
        if claim is None:
            raise VolumeError(f"failed to check provisioning pvc: {_lost(PERSISTENT_VOLUME_CLAIMS, key_of(written))}")
        if version_of(written) > version_of(claim):
            return False
        if not annotations_of(claim):
            raise VolumeError(f'selectedNode annotation reset for PVC "{name_of(claim)}"')
        if annotations_of(claim).get(SELECTED_NODE) != name_of(node):
            raise VolumeError(f'provisioning failed for PVC "{name_of(claim)}"')
        if claim["spec"].get("volumeName"):
            volume = self._volumes.known(claim["spec"]["volumeName"])
            if volume is None:
                return False
            self._check_reach(volume, node)
        return is_fully_bound(claim)

    @staticmethod
    def _check_reach(volume: Object, node: Object) -> None:
        if not is_reachable(volume, node):
            raise VolumeError(
                f'pv "{name_of(volume)}" node affinity doesn\'t match node "{name_of(node)}": '
                "no matching NodeSelectorTerms"
            )


def volume_limit(capacity: Object) -> Any:
    """Return how large a volume may be: a quantity, None where that is not known."""
    return capacity.get("maximumVolumeSize") or capacity.get("capacity")


def in_topology(terms: Sequence[Mapping[str, Any]] | None, node: Object) -> bool:
    """Return whether a node is in one of the places where a class makes volumes; without any, everywhere."""
    if not terms:
        return True
    labels = labels_of(node)
    return any(
        all(labels.get(each["key"]) in each["values"] for each in term.get("matchLabelExpressions") or ())
        for term in terms
        if term.get("matchLabelExpressions")
    )


def _lost(resource: Resource, key: str) -> str:
    return f'could not find v1.{resource.kind} "{key}"'
