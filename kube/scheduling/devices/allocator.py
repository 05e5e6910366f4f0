"""The search for devices: exhaustive, depth first, the first full solution is taken.

Claims, requests and devices are tried in their order; within a request combinations, not permutations, which finds the
same first solution. Source: allocateOne of k8s.io/dynamic-resource-allocation/structured/internal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from math import inf
from typing import Any, NamedTuple

from msgspec import Struct, field

from mews.kube.api.objects import Object, name_of
from mews.kube.scheduling.devices import capacity, results
from mews.kube.scheduling.devices.constraints import DeviceConstraint, constraints_of
from mews.kube.scheduling.devices.counters import Counters
from mews.kube.scheduling.devices.errors import (
    AllocationError,
    NodeAllocationError,
    SearchTimeoutError,
    SelectorError,
)
from mews.kube.scheduling.devices.features import DeviceFeatures
from mews.kube.scheduling.devices.inventory import (
    DeviceId,
    DeviceInventory,
    NodePlace,
    OfferedDevice,
    Pool,
    chosen,
)
from mews.kube.scheduling.devices.requests import ClaimedRequest, Spec, claim_key, requests_of
from mews.kube.scheduling.devices.results import Granted
from mews.kube.scheduling.devices.selectors import holds, worded
from mews.kube.scheduling.devices.taints import untolerated
from mews.kube.scheduling.devices.walk import DeviceWalk, devices_of

STEPS_PER_S = 100_000
"""Devices that a search may try for each second of the filter timeout: virtual time stands still while it runs."""
FILTER_TIMEOUT_S = 10.0
"""For the search on one node (DynamicResourcesArgs.filterTimeout)."""
MOST_RESULTS = 32
"""Devices of one claim (AllocationResultsMaxSize)."""

_TIMED_OUT = "timed out trying to allocate devices"


class _TooManyError(Exception):
    """This claim would get more devices than a result holds: other devices for its earlier requests do not help."""


class Taken(Struct, frozen=True):
    """What earlier allocations hold: devices as a whole, and of shared ones how much of each capacity."""

    devices: AbstractSet[DeviceId] = frozenset()
    shared: Mapping[DeviceId, Mapping[str, Decimal]] = field(default_factory=dict)


class _Sought(Struct):
    """A request to be satisfied: one way, or several in order; ``picked`` is the way of the solution."""

    ways: list[ClaimedRequest]
    everything: list[list[tuple[Pool, OfferedDevice]]]
    """Of each way all devices that it asks for; empty where it asks for a number of them."""
    picked: int = 0

    def number(self, way: int) -> int:
        """Return how many devices a way needs."""
        count = self.ways[way].count
        return len(self.everything[way]) if count is None else count


class _At(NamedTuple):
    """Where the search is: which claim, request, way (None before one is chosen) and device of it."""

    claim: int
    request: int = 0
    way: int | None = None
    device: int = 0


class Allocator:
    """Allocates claims on one node after another from one state of the cluster.

    ``class_of`` finds a device class, None where there is none; ``new_share`` makes the id of a share; a search that
    tries more than ``most_steps`` devices is given up.
    """

    def __init__(
        self,
        inventory: DeviceInventory,
        taken: Taken,
        *,
        class_of: Callable[[str], Object | None],
        features: DeviceFeatures,
        new_share: Callable[[], str],
        most_steps: float = FILTER_TIMEOUT_S * STEPS_PER_S,
    ) -> None:
        self.inventory = inventory
        self.taken = taken
        self.class_of = class_of
        self.features = features
        self.new_share = new_share
        self.most_steps = most_steps if features.scheduler_filter_timeout else inf

    def allocate(self, place: NodePlace, claims: Sequence[Object]) -> list[dict[str, Any]] | None:
        """Return an ``allocation`` for each claim, None where the node has no solution.

        Raises AllocationError; NodeAllocationError and SearchTimeoutError concern this node alone.
        """
        return _Search(self, place, claims).run()


class _Search:
    """One attempt on one node."""

    def __init__(self, allocator: Allocator, place: NodePlace, claims: Sequence[Object]) -> None:
        self._features = allocator.features
        self._allocator = allocator
        self._place = place
        self._claims = claims
        self._pools = allocator.inventory.pools(place)
        self._sought: list[list[_Sought]] = []
        self._constraints: list[list[DeviceConstraint]] = []
        self._granted: list[list[Granted]] = [[] for _ in claims]
        self._allocating: dict[DeviceId, list[int]] = {}
        self._using: dict[DeviceId, dict[str, Decimal]] = {}
        self._shares: dict[DeviceId, int] = {}
        self._counters = Counters(by_pool=self._features.settled, is_taken=self._is_held)
        self._steps = 0
        self._orders = 0
        self._walk = DeviceWalk(self._pools, settled=self._features.settled)

    def run(self) -> list[dict[str, Any]] | None:
        for claim in self._claims:
            self._sought.append(self._seek_all(claim))
            self._constraints.append(constraints_of(claim, self._features))
        try:
            found = self._search(_At(0))
        except _TooManyError:
            return None
        if not found:
            if self._features.settled and any(pool.invalid for pool in self._pools):
                raise NodeAllocationError("invalid resource pools were encountered")
            return None
        return [
            results.allocation(
                claim,
                self._granted[index],
                [sought.ways[sought.picked] for sought in self._sought[index]],
                features=self._features,
                node=self._place.name,
            )
            for index, claim in enumerate(self._claims)
        ]

    # ------------------------------------------------------------------------------------------------ what is asked for

    def _seek_all(self, claim: Object) -> list[_Sought]:
        """Return what the claim asks for; from 1.36 on it may be too much before all of it is looked at."""
        several, total = [], 0
        for request in requests_of(claim):
            sought = self._seek(claim, request)
            least = min(sought.number(way) for way in range(len(sought.ways)))
            if self._features.settled and least > MOST_RESULTS - total:
                raise AllocationError(
                    f"claim {claim_key(claim)}, request {request['name']}: adding {least} devices exceeds the claim "
                    f"limit of {MOST_RESULTS}, with {total} already accounted for"
                )
            several.append(sought)
            total += least
        if total > MOST_RESULTS:
            raise AllocationError(
                f"claim {claim_key(claim)}: number of requested devices {total} "
                f"exceeds the claim limit of {MOST_RESULTS}"
            )
        return several

    def _seek(self, claim: Object, request: Spec) -> _Sought:
        parts = request.get("firstAvailable") or ()
        if parts and not self._features.prioritized_list:
            text = "has subrequests, but the DRAPrioritizedList feature is disabled"
            raise AllocationError(f"claim {claim_key(claim)}, request {request['name']}: {text}")
        if parts:
            ways = [self._request(claim, part, str(part["name"]), str(request["name"])) for part in parts]
        else:
            ways = [self._request(claim, request.get("exactly") or {}, str(request["name"]), "")]
        everything = [list(self._all_of(claim, way)) if way.count is None else [] for way in ways]
        if not self._features.settled and len(ways) > 1 and ways[0].count is None and ways[1].count is None:
            everything[1] = everything[0]  # 1.34 remembers what the first selects under the key of the second
        return _Sought(ways, everything)

    def _request(self, claim: Object, spec: Spec, name: str, parent: str) -> ClaimedRequest:
        where = f"claim {claim_key(claim)}, request {name}"
        if spec.get("capacity") is not None and not self._features.consumable_capacity:
            raise AllocationError(f"{where}: has capacity requests, but the DRAConsumableCapacity feature is disabled")
        if spec.get("adminAccess") is not None and not self._features.admin_access:
            raise AllocationError(f"{where}: admin access is requested, but the feature is disabled")
        class_name = str(spec.get("deviceClassName") or "")
        if not class_name:
            raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
        device_class = self._allocator.class_of(class_name)
        if device_class is None:
            missing = f'deviceclass.resource.k8s.io "{class_name}" not found'
            raise AllocationError(f"{where}: could not retrieve device class {class_name}: {missing}")
        mode = spec.get("allocationMode") or "ExactCount"
        if mode not in ("ExactCount", "All"):
            raise AllocationError(f"{where}: unsupported count mode {mode}")
        count = int(spec.get("count") or 1) if mode == "ExactCount" else None
        return ClaimedRequest(name, parent, spec, device_class, count, bool(spec.get("adminAccess")))

    def _all_of(self, claim: Object, request: ClaimedRequest) -> Iterator[tuple[Pool, OfferedDevice]]:
        """Yield every device that a request for all of them means."""
        where = f"claim {claim_key(claim)}, request {request.name}: asks for all devices, but resource pool"
        for pool in self._pools:
            if pool.incomplete:
                raise AllocationError(f"{where} {pool.id} is currently being updated")
            if pool.invalid:
                raise AllocationError(f"{where} {pool.id} is currently invalid")
            for device in devices_of(pool):
                if self._is_selected(claim, request, device) and self._has_room(request, device):
                    yield pool, device

    def _has_room(self, request: ClaimedRequest, device: OfferedDevice) -> bool:
        if not self._features.consumable_capacity:
            return True
        wanted = capacity.consumed(request, device)
        return wanted is not None and capacity.is_left(wanted, device, self._used(device))

    # ----------------------------------------------------------------------------------------------------- the search

    def _search(self, at: _At, start: int = 0) -> bool:
        """Return whether everything from here on can be had. ``start``: which device of the pools to begin with."""
        if self._steps > self._allocator.most_steps:
            raise SearchTimeoutError(_TIMED_OUT)
        if at.claim >= len(self._claims):
            return True
        several = self._sought[at.claim]
        if at.request >= len(several):
            try:
                return self._search(_At(at.claim + 1))
            except _TooManyError:
                return False
        sought = several[at.request]
        if at.way is None:
            return self._any_way(at, sought)
        request, number = sought.ways[at.way], sought.number(at.way)
        if request.count is None and not number:
            return False
        if at.device >= number:
            return self._search(_At(at.claim, at.request + 1))
        if len(self._granted[at.claim]) + number - at.device > MOST_RESULTS:
            raise _TooManyError
        if request.count is None:
            pool, device = sought.everything[at.way][at.device]
            return self._try(at, sought, pool, device)
        return self._any_device(at, sought, request, start)

    def _any_device(self, at: _At, sought: _Sought, request: ClaimedRequest, start: int) -> bool:
        """Take the first device after ``start`` that leads to a solution.

        Before 1.36 all permutations were tried: ``orders`` steps, where one device more can stand in one place more.
        """
        orders = 0
        for place, pool, device in self._walk.after(start):
            self._steps += 1
            self._orders = 0
            if self._fits(at, request, device) and self._try(at, sought, pool, device, place):
                return True
            orders += 1 + self._orders * (at.device + 1)
        self._orders = orders
        if not at.device and not self._features.settled and orders > self._allocator.most_steps:
            raise SearchTimeoutError(_TIMED_OUT)
        return False

    def _any_way(self, at: _At, sought: _Sought) -> bool:
        """Take the first alternative that leads to a solution."""
        too_many = True
        for way in range(len(sought.ways)):
            try:
                found = self._search(at._replace(way=way))
            except _TooManyError:
                continue
            too_many = False
            if found:
                sought.picked = way
                return True
        if too_many:
            raise _TooManyError
        return False

    def _fits(self, at: _At, request: ClaimedRequest, device: OfferedDevice) -> bool:
        """Return whether the device may be tried: not in use, and selected."""
        if request.admin:
            if at.claim in self._allocating.get(device.id, ()):
                return False
        elif device.id in self._allocator.taken.devices or self._allocating.get(device.id):
            return False
        return self._is_selected(self._claims[at.claim], request, device)

    def _try(self, at: _At, sought: _Sought, pool: Pool, device: OfferedDevice, place: int = 0) -> bool:
        """Take the device and go on after ``place``; given back where that leads nowhere."""
        assert at.way is not None
        request = sought.ways[at.way]
        granted = self._take(at.claim, request, pool, device)
        if granted is None:
            return False
        following = at._replace(device=at.device + 1)
        if request.count is None and not self._features.settled:
            following = following._replace(way=0)  # 1.34 forgets which alternative it is at
        found = False
        try:
            found = self._search(following, place)
        finally:
            if not found:
                self._give_back(at.claim, granted)
        return found

    # Complex: each condition gives the device up, in upstream's order.
    def _take(self, claim: int, request: ClaimedRequest, pool: Pool, device: OfferedDevice) -> Granted | None:  # noqa: C901
        """Take the device for the request, None where it is not to be had."""
        shared = device.is_shared and self._features.consumable_capacity
        if not self._is_free(claim, request, device, shared=shared):
            return None
        if device.counters and not self._features.partitionable_devices:
            return None
        amounts: dict[str, Decimal] = {}
        if self._features.consumable_capacity:
            wanted = capacity.consumed(request, device)
            if wanted is None or not capacity.is_left(wanted, device, self._used(device)):
                return None
            amounts = wanted if shared else {}
        if self._features.device_taints and untolerated(device, request) is not None:
            return None
        counted = bool(device.counters) and not (shared and self._is_shared_already(device.id))
        if counted and not self._counters.take(device, pool):
            return None
        if not self._constrain(claim, request, device):
            if counted:
                self._counters.give_back(device, pool)
            return None
        if shared:
            self._shares[device.id] = self._shares.get(device.id, 0) + 1
            using = self._using.setdefault(device.id, {})
            for name, amount in amounts.items():
                using[name] = using.get(name, Decimal(0)) + amount
        else:
            self._allocating.setdefault(device.id, []).append(claim)
        share = self._allocator.new_share() if shared else ""
        granted = Granted(request, device, pool, amounts, share, counted)
        self._granted[claim].append(granted)
        return granted

    def _is_free(self, claim: int, request: ClaimedRequest, device: OfferedDevice, *, shared: bool) -> bool:
        if shared:
            return request.admin or device.id not in self._allocator.taken.devices
        users = self._allocating.get(device.id, ())
        if request.admin:
            return claim not in users
        return not users and device.id not in self._allocator.taken.devices

    def _constrain(self, claim: int, request: ClaimedRequest, device: OfferedDevice) -> bool:
        added: list[DeviceConstraint] = []
        for constraint in self._constraints[claim]:
            if constraint.add(request, device):
                added.append(constraint)
                continue
            for other in added:
                other.remove(request, device)
            if request.count is None:
                raise AllocationError(
                    f"claim {claim_key(self._claims[claim])}, request {request.name}: cannot add device {device.id} "
                    "because a claim constraint would not be satisfied"
                )
            return False
        return True

    def _give_back(self, claim: int, granted: Granted) -> None:
        device = granted.device
        self._granted[claim].pop()
        for constraint in self._constraints[claim]:
            constraint.remove(granted.request, device)
        if granted.share:
            self._shares[device.id] -= 1
            using = self._using[device.id]
            for name, amount in granted.consumed.items():
                using[name] -= amount
        else:
            self._allocating[device.id].remove(claim)
        if granted.counted:
            self._counters.give_back(device, granted.pool)

    def _is_held(self, device: DeviceId) -> bool:
        """Return whether an earlier allocation has it, or a share of it."""
        return device in self._allocator.taken.devices or device in self._allocator.taken.shared

    def _is_shared_already(self, device: DeviceId) -> bool:
        """Return whether the counters of a shared device are taken, by an earlier allocation or in this attempt; before
        1.36 each share takes them."""
        return self._features.settled and (bool(self._shares.get(device)) or self._is_held(device))

    def _used(self, device: OfferedDevice) -> dict[str, Decimal]:
        used = dict(self._allocator.taken.shared.get(device.id, {}))
        for name, amount in self._using.get(device.id, {}).items():
            used[name] = used.get(name, Decimal(0)) + amount
        return used

    # -------------------------------------------------------------------------------------------------------- selectors

    def _is_selected(self, claim: Object, request: ClaimedRequest, device: OfferedDevice) -> bool:
        """Return whether class and request select the device, and it is for the node."""
        if device.spec.get("bindingConditions") and not self._features.binding_conditions:
            return False
        of_class = request.device_class["spec"].get("selectors") or ()
        return (
            self._all_hold(lambda: f"class {name_of(request.device_class)}", of_class, device)
            and self._all_hold(lambda: f"claim {claim_key(claim)}", request.selectors, device)
            and (not device.slice.per_device or chosen(device.spec, self._place))
        )

    def _all_hold(self, whose: Callable[[], str], selectors: Sequence[Spec], device: OfferedDevice) -> bool:
        for index, selector in enumerate(selectors):
            try:
                if not holds(str(selector["cel"]["expression"]), device):
                    return False
            except SelectorError as failed:
                raise AllocationError(
                    worded(f"{whose()}: selector #{index}", device, str(failed), self._features)
                ) from failed
        return True
