"""Allocates the devices of resource claims to pods (upstream dynamicresources/dynamicresources.go).

What needs the allocator is imported with the first pod that has a claim.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msgspec import Struct

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, key_of, name_of, uid_of
from mews.kube.api.resource_claims import (
    allocation_of,
    can_be_reserved,
    consumers_of,
    is_reserved_for,
    names_claims,
)
from mews.kube.api.resources import DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES, taint_rules_of
from mews.kube.clock import rest
from mews.kube.scheduling import messages
from mews.kube.scheduling.devices.errors import AllocationError, NodeAllocationError, SearchTimeoutError
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.scheduling.devices.requests import has_alternatives, preference, requested_classes
from mews.kube.scheduling.devices.taint_rules import concern, with_rules
from mews.kube.scheduling.framework import (
    SKIP,
    SUCCESS,
    Action,
    CycleState,
    Handle,
    PostFilterResult,
    Status,
    Wake,
    error,
    unresolvable,
    unschedulable,
)
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins.binding_conditions import (
    BindingFailedError,
    has_conditions,
    is_ready,
)
from mews.kube.scheduling.plugins.claim_attempt import ClaimAttempt
from mews.kube.scheduling.plugins.claim_changes import had_devices, node_differs
from mews.kube.scheduling.plugins.device_wait import DeviceWait
from mews.kube.scheduling.plugins.extended_resources import (
    LOOK_S,
    SEEN_WITHIN_S,
    ExtendedResources,
    OnNode,
    SpecialClaim,
    SpecialClaimWriter,
    needs_devices,
)
from mews.kube.scheduling.plugins.pod_claims import NoClaimError, claims_of
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.scores import spread_out

if TYPE_CHECKING:
    from mews.kube.client.informer import Informer
    from mews.kube.scheduling.devices.allocator import Allocator
    from mews.kube.scheduling.devices.inventory import DeviceInventory, NodePlace
    from mews.kube.scheduling.devices.known_allocations import KnownAllocations
    from mews.kube.scheduling.plugins.claim_writer import ClaimWriter
    from mews.kube.scheduling.plugins.device_ledger import DeviceLedger

NOT_ALLOCATED = unresolvable("cannot allocate all claims")
NOT_AVAILABLE = unresolvable("resourceclaim not available on the node")


class _Books(Struct):
    """What the plugin knows of the cluster, once it needs to."""

    ledger: DeviceLedger
    inventory: DeviceInventory
    writer: ClaimWriter
    known: KnownAllocations


class DynamicResources:
    """Finds nodes on which a pod's claims are or can be allocated, and has that written before the pod is bound."""

    name = "DynamicResources"
    weight = 2

    def __init__(self, handle: Handle, features: DeviceFeatures = DEFAULT_FEATURES) -> None:
        self._handle = handle
        self._features = features
        needs = needs_devices if features.extended_resource else _needs_claims
        self._claims = handle.late_informer(RESOURCE_CLAIMS, needs)
        self._classes = handle.late_informer(DEVICE_CLASSES, needs)
        self._slices = handle.late_informer(RESOURCE_SLICES, needs)
        self._rules = self._taint_rules(handle, needs)
        self._extended = ExtendedResources(handle, features)
        self._special = SpecialClaimWriter(handle.context.kube)
        self._wait = DeviceWait(handle, features, lambda key: self._books.ledger.claim(key))
        self._known: _Books | None = None

    def _taint_rules(self, handle: Handle, needs: Callable[[PodInfo], bool]) -> Informer | None:
        """DeviceTaintRules, None where they do not act."""
        if not self._features.taint_rules:
            return None
        return handle.late_informer(taint_rules_of(self._features.taint_rules), needs)

    @property
    def _books(self) -> _Books:
        if self._known is None:
            from mews.kube.scheduling.devices.inventory import DeviceInventory
            from mews.kube.scheduling.devices.known_allocations import KnownAllocations
            from mews.kube.scheduling.plugins.claim_writer import ClaimWriter
            from mews.kube.scheduling.plugins.device_ledger import DeviceLedger

            context, binds = self._handle.context, self._features.binding_conditions
            ledger = DeviceLedger(self._claims, shares=self._features.consumable_capacity)
            inventory = DeviceInventory(self._features)
            writer = ClaimWriter(context.kube, context.clock, stamps=binds)
            known = KnownAllocations(ledger.changes_of, self._classes.get)
            self._known = _Books(ledger, inventory, writer, known)
            self._slices.on_change(self._slice_changed)
            if self._rules is not None:
                self._rules.on_change(self._rule_changed)
                if self._features.tracks_rules:
                    self._classes.on_change(self._class_changed)
        return self._known

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._books.inventory.set(self._tainted(new))
        elif old is not None:
            self._books.inventory.remove(name_of(old))

    def _tainted(self, resource_slice: Object) -> Object:
        rules = () if self._rules is None else tuple(self._rules.items())
        return with_rules(resource_slice, rules, self._classes.get) if rules else resource_slice

    def _rule_changed(self, old: Object | None, new: Object | None) -> None:
        """Taint the devices anew that the rule was about, or is now."""
        rules = [rule for rule in (old, new) if rule is not None]
        for each in self._slices.items():
            if concern(rules, each):
                self._books.inventory.set(self._tainted(each))

    def _class_changed(self, _old: Object | None, new: Object | None) -> None:
        """Taint all devices anew: rules may select by class. Upstream's tracker misses the end of one."""
        for each in () if new is None else self._slices.items():
            self._books.inventory.set(self._tainted(each))

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Keep a pod out of the queue while one of its claims is missing, being deleted or another pod's."""
        if not _needs_claims(pod):
            return SUCCESS
        try:
            list(self._claims_of(pod))
        except NoClaimError as missing:
            return unresolvable(str(missing))
        return SUCCESS

    def _claims_of(self, pod: PodInfo) -> Iterator[Object]:
        """Raises NoClaimError for the first that is not there."""
        return claims_of(pod, self._books.ledger.claim)

    # -------------------------------------------------------------------------------------------------------- the cycle

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Refuse a pod whose claims are in use, being allocated or ask for a class that is not there."""
        found = state.data[self.name] = ClaimAttempt()
        special = self._extended.special(pod, lambda: self._books.ledger.claims())
        if not _needs_claims(pod) and special is None:
            return SKIP
        try:
            claims = list(self._claims_of(pod))
        except NoClaimError as missing:
            return unresolvable(str(missing))
        if not claims and special is None:
            return SKIP
        for claim in claims:
            if refusal := self._refusal(pod, claim):
                return unresolvable(refusal)
        if special is not None or any(allocation_of(claim) is None for claim in claims):
            found.allocator = self._allocator()
        found.claims, found.special = claims, special
        found.unallocated = [claim for claim in claims if allocation_of(claim) is None]
        if special is None and found.unallocated:
            found.known = self._books.known.of(found.unallocated)
        return SUCCESS

    def _refusal(self, pod: PodInfo, claim: Object) -> str:
        if allocation_of(claim) is not None:
            mine = is_reserved_for(claim, pod.uid)
            return "" if mine or can_be_reserved(claim) else "resourceclaim in use"
        if self._books.ledger.is_in_flight(uid_of(claim)):
            return f"resource claim {key_of(claim)} is in the process of being allocated"
        for request, device_class in requested_classes(claim):
            if self._classes.get(device_class) is None:
                return f"request {request}: device class {device_class} does not exist"
        return ""

    def _allocator(self) -> Allocator:
        from mews.kube.scheduling.devices.allocator import Allocator

        return Allocator(
            self._books.inventory,
            self._books.ledger.taken(),
            class_of=self._classes.get,
            features=self._features,
            new_share=self._new_share,
        )

    def _new_share(self) -> str:
        return str(UUID(int=self._handle.context.rng.getrandbits(128), version=4))

    # Complex: upstream's order of conditions.
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:  # noqa: C901
        """Refuse nodes that an allocation excludes, or on which the claims that have none cannot get one."""
        from mews.kube.scheduling.devices.inventory import NodePlace, selected

        found: ClaimAttempt = state.data[self.name]
        special: OnNode | None = None
        if found.special is not None:
            refusal = self._extended.judge(found.special, pod, node, alone=not found.claims)
            special = found.special.on_node.get(node.name)
            if refusal is not None or (special is None and not found.claims):
                return refusal or SUCCESS
        place = NodePlace(node.name, node.labels)
        unavailable = []
        for index, claim in enumerate(found.claims):
            if (allocation := allocation_of(claim)) is None:
                continue
            selector = allocation.get("nodeSelector")
            if (selector is not None and not selected(selector, place)) or self._is_to_free(claim):
                unavailable.append(index)
        if found.allocator is not None:
            try:
                given = self._allocated(found, found.allocator, place, special)
            except NodeAllocationError as failed:
                return unresolvable(str(failed))
            except SearchTimeoutError as failed:
                is_new = self._features.minor >= 36
                return error(f"node {node.name}: {failed}") if is_new else unresolvable(str(failed))
            except AllocationError as failed:
                return error(str(failed))
            if given is None:
                return NOT_ALLOCATED
            found.on_node[node.name] = given
        if unavailable:
            found.unavailable.update(dict.fromkeys(unavailable))
            return NOT_AVAILABLE
        return SUCCESS

    def _allocated(
        self, found: ClaimAttempt, allocator: Allocator, place: NodePlace, special: OnNode | None
    ) -> list[dict[str, Any]] | None:
        """Return what the allocator finds on the node, or found there for claims like these.

        Raises AllocationError.
        """
        if found.known is None:
            return allocator.allocate(place, found.waiting(special))
        pools = self._books.inventory.pools(place)
        is_known, given = found.known.get(place, pools)
        if not is_known:
            given = allocator.allocate(place, found.unallocated)
            found.known.put(place, pools, given)
        return given

    def _is_to_free(self, claim: Object) -> bool:
        """Return whether a device of the claim failed to become ready, or had its time."""
        if not self._features.binding_conditions or allocation_of(claim) is None:
            return False
        try:
            ready = is_ready(claim, minor=self._features.minor)
        except BindingFailedError:
            return True
        return not ready and self._wait.is_late(claim)

    def post_filter(self, state: CycleState, pod: PodInfo, refusals: Mapping[str, Status]) -> PostFilterResult:
        """Unschedulable, and free a claim that no node could use; upstream's error "not found" where an earlier
        plugin's PreFilter refused the pod outright."""
        found: ClaimAttempt | None = state.data.get(self.name)
        if found is None:
            return PostFilterResult(error(messages.NO_STATE))
        if not found.claims and found.special is None:
            return PostFilterResult(unschedulable(messages.NO_CLAIMS) if self._features.minor < 37 else unschedulable())
        free = [
            found.claims[index]
            for index in found.unavailable
            if all(entry.get("uid") == pod.uid for entry in consumers_of(found.claims[index]))
        ]
        if free:
            chosen = free[0] if len(free) == 1 else self._handle.context.rng.choice(free)
            self._handle.spawn(self._books.writer.deallocate(chosen))
            return PostFilterResult(unschedulable(messages.DEALLOCATED))
        if found.special is not None and found.special.left:
            self._handle.spawn(self._special.delete(found.special.claim))
            return PostFilterResult(unschedulable(messages.DELETED))
        return PostFilterResult(unschedulable(messages.STILL) if self._features.minor < 37 else unschedulable())

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        """Return it without alternatives all nodes are alike; before 1.35 they always are."""
        found: ClaimAttempt | None = state.data.get(self.name)
        if found is None or self._features.minor < 35 or not self._features.prioritized_list:
            return SKIP
        return SUCCESS if any(has_alternatives(claim) for claim in found.claims) else SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the earlier the alternatives that the node offers, the more."""
        found: ClaimAttempt = state.data[self.name]
        special = found.special.on_node.get(node.name) if found.special is not None else None
        given = dict(zip(map(uid_of, found.waiting(special)), found.on_node.get(node.name, ()), strict=False))
        return sum(preference(claim, allocation_of(claim) or given.get(uid_of(claim)) or {}) for claim in found.claims)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Mapping[str, int]) -> Mapping[str, int]:
        """Bring the best to 100."""
        return spread_out(scores)

    # ---------------------------------------------------------------------------------------------------------- binding

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Count the devices as taken from now on."""
        found: ClaimAttempt | None = state.data.get(self.name)
        if found is None or found.allocator is None:
            return SUCCESS
        special = found.special.on_node.get(node) if found.special is not None else None
        if node not in found.on_node:
            is_needed = special is not None or any(allocation_of(claim) is None for claim in found.claims)
            return error("claim allocation not found for node") if is_needed else SUCCESS
        for claim, allocation in zip(found.waiting(special), deepcopy(found.on_node[node]), strict=True):
            self._books.ledger.begin(claim, allocation)
            found.reserved[uid_of(claim)] = allocation
        return SUCCESS

    async def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Give back what is not written, and the reservation of what is; an allocation stays for the next attempt."""
        found: ClaimAttempt | None = state.data.get(self.name)
        if found is None:
            return
        found.end(self._books.ledger)
        for claim in found.claims:
            if allocation_of(claim) is not None and is_reserved_for(claim, pod.uid):
                try:
                    self._books.ledger.wrote(await self._books.writer.unreserve(claim, pod))
                except (ApiError, UnavailableError) as failed:
                    self._handle.context.log.warning("unreserve of claim %s: %s", key_of(claim), failed)
        if found.special is not None:
            await self._give_up(found, found.special)

    async def _give_up(self, found: ClaimAttempt, special: SpecialClaim) -> None:
        """Take back what a claim for extended resources holds, and delete it where it was made."""
        if found.reserved.pop(uid_of(special.claim), None) is not None:
            self._books.ledger.end(special.claim, None)
        if special.made is not None:
            try:
                await self._special.delete(special.made)
            except (ApiError, UnavailableError) as failed:
                self._handle.context.log.warning("delete of claim %s: %s", key_of(special.made), failed)

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Have every claim allocated and reserved, then wait for the conditions of its devices."""
        found: ClaimAttempt | None = state.data.get(self.name)
        if found is None or not (found.claims or found.special):
            return SUCCESS
        for index, claim in enumerate(found.claims):
            if is_reserved_for(claim, pod.uid):
                continue
            allocation = found.reserved.get(uid_of(claim))
            written: Object | None = None
            try:
                written = await self._books.writer.bind(claim, pod, allocation)
            except (ApiError, UnavailableError) as failed:
                return error(str(failed))
            finally:
                if allocation is not None and self._features.minor < 37:
                    found.reserved.pop(uid_of(claim), None)
                    self._books.ledger.end(claim, written)
                elif written is not None:
                    self._books.ledger.wrote(written)
            found.claims[index] = written
        claims = list(found.claims)
        if found.special is not None and (special := found.special.on_node.get(node)) is not None:
            try:
                claims.append(await self._make(found, found.special, special, pod))
            except (ApiError, UnavailableError) as failed:
                return error(str(failed))
        waits = self._features.binding_conditions and any(map(has_conditions, claims))
        status = await self._wait.until_ready(claims, pod, node) if waits else SUCCESS
        if status.ok:
            found.end(self._books.ledger)
        return status

    async def _make(self, found: ClaimAttempt, special: SpecialClaim, here: OnNode, pod: PodInfo) -> Object:
        """Make the claim for extended resources, allocated and reserved, and name it in the pod's status.

        Raises ApiError, UnavailableError.
        """
        special.made = await self._special.make(here.claim)
        allocation = found.reserved[uid_of(special.claim)]
        special.made = await self._books.writer.bind(special.made, pod, allocation)
        await self._special.note(pod, special.made, here.mappings)
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + SEEN_WITHIN_S
        while not self._books.ledger.has_seen(special.made) and loop.time() < ends_s:
            await rest(LOOK_S)
        del found.reserved[uid_of(special.claim)]
        self._books.ledger.end(special.claim, special.made)
        return special.made

    # ----------------------------------------------------------------------------------------------------------- waking

    def wakes_on(self) -> Sequence[Wake]:
        """Claims, classes, devices, and nodes with other labels or amounts. That the pod itself is told the name of a
        claim made for it, the queue knows."""
        added = Action.ADD | Action.UPDATE
        rules = () if self._rules is None else (Wake(taint_rules_of(self._features.taint_rules)),)
        return (
            Wake(NODES, added, node_differs),
            Wake(RESOURCE_CLAIMS, added, self._helps),
            *((Wake(RESOURCE_CLAIMS, Action.DELETE, had_devices),) if self._features.minor >= 37 else ()),
            Wake(DEVICE_CLASSES, added),
            Wake(RESOURCE_SLICES, added),
            *rules,
        )

    def _helps(self, pod: PodInfo, old: Object | None, new: Object | None) -> bool:
        assert new is not None
        is_freed = old is not None and allocation_of(old) is not None and allocation_of(new) is None
        if not is_freed and key_of(new) not in pod.claims:
            return False
        try:
            uses = any(uid_of(claim) == uid_of(new) for claim in self._claims_of(pod))
        except NoClaimError:
            return False
        if is_freed:
            return True
        return uses and (old is None or old.get("status") != new.get("status"))


def _needs_claims(pod: PodInfo) -> bool:
    return names_claims(pod.pod)
