"""The devices of a cluster as resource slices offer them, and what of them a node can reach.

Source: structured/internal/incubating/pools_incubating.go (1.34) and stable/pools_stable.go (1.37).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mews.kube.api.objects import Object, name_of
from mews.kube.api.selectors import expression_holds
from mews.kube.scheduling.devices.errors import AllocationError
from mews.kube.scheduling.devices.features import DeviceFeatures

Spec = Mapping[str, Any]


class DeviceId(NamedTuple):
    """A device by driver, pool and name: unique in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class PoolId(NamedTuple):
    """A pool by driver and name."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class NodePlace(NamedTuple):
    """A node as slices choose it."""

    name: str
    labels: Mapping[str, str]


class OfferedDevice:
    """One device of a slice, and what selectors said of it."""

    __slots__ = ("counters", "id", "is_shared", "matches", "slice", "spec", "variables")

    def __init__(self, device_id: DeviceId, spec: Spec, of_slice: PoolSlice) -> None:
        self.id = device_id
        self.spec = spec
        self.slice = of_slice
        self.matches: dict[str, bool] = {}
        self.variables: dict[str, Any] | None = None
        self.is_shared = bool(spec.get("allowMultipleAllocations"))
        """Whether it may be given several times."""
        self.counters: Sequence[Spec] = spec.get("consumesCounters") or ()
        """What it takes of its pool's counter sets."""


class PoolSlice:
    """One resource slice."""

    __slots__ = (
        *("binds", "count", "counter_sets", "devices", "driver", "generation", "name", "per_device", "pool", "spec"),
    )

    def __init__(self, resource_slice: Object) -> None:
        spec = self.spec = resource_slice["spec"]
        self.name = name_of(resource_slice)
        self.driver = str(spec["driver"])
        self.pool = str(spec["pool"]["name"])
        self.generation = int(spec["pool"].get("generation") or 0)
        self.count = int(spec["pool"].get("resourceSliceCount") or 0)
        self.counter_sets: Sequence[Spec] = spec.get("sharedCounters") or ()
        self.devices = [
            OfferedDevice(DeviceId(self.driver, self.pool, str(device["name"])), device, self)
            for device in spec.get("devices") or ()
        ]
        self.binds = any(device.spec.get("bindingConditions") is not None for device in self.devices)
        self.per_device = bool(spec.get("perDeviceNodeSelection"))
        """Whether each of its devices chooses nodes for itself."""

    def reaches(self, place: NodePlace) -> bool:
        """Return whether the node can use any of its devices."""
        if self.per_device:
            return any(chosen(device.spec, place) for device in self.devices)
        return chosen(self.spec, place)


class Pool:
    """The slices of one generation that a node can reach; ``others``: those of the same pool that it cannot."""

    __slots__ = ("id", "incomplete", "invalid", "others", "slices")

    def __init__(
        self,
        pool_id: PoolId,
        slices: Sequence[PoolSlice],
        others: Sequence[PoolSlice] = (),
        *,
        incomplete: bool = False,
        invalid: str = "",
    ) -> None:
        self.id = pool_id
        self.slices = slices
        self.others = others
        self.incomplete = incomplete
        self.invalid = invalid

    @property
    def binds(self) -> bool:
        """Whether any of its devices waits for binding conditions."""
        return any(each.binds for each in self.slices)


class DeviceInventory:
    """All slices, indexed; remembers the pools of a node until one of both changes."""

    def __init__(self, features: DeviceFeatures) -> None:
        self._features = features
        self._slices: dict[str, PoolSlice] = {}
        self._on_node: dict[str, dict[str, PoolSlice]] = {}
        self._anywhere: dict[str, PoolSlice] = {}
        self._of_pool: dict[PoolId, dict[str, PoolSlice]] = {}
        self._pools: dict[str, tuple[Mapping[str, str], list[Pool]]] = {}

    @classmethod
    def of(cls, slices: Iterable[Object], features: DeviceFeatures) -> DeviceInventory:
        """Return the inventory of these slices."""
        made = cls(features)
        for each in slices:
            made.set(each)
        return made

    def set(self, resource_slice: Object) -> None:
        """Add a slice, or put it in the place of an older one of that name."""
        self.remove(name_of(resource_slice))
        added = PoolSlice(resource_slice)
        self._slices[added.name] = added
        node = str(added.spec.get("nodeName") or "")
        shelf = self._on_node.setdefault(node, {}) if node else self._anywhere
        shelf[added.name] = added
        self._of_pool.setdefault(PoolId(added.driver, added.pool), {})[added.name] = added
        self._changed(added)

    def remove(self, name: str) -> None:
        """Take a slice away; an unknown name changes nothing."""
        known = self._slices.pop(name, None)
        if known is None:
            return
        self._on_node.get(str(known.spec.get("nodeName") or ""), {}).pop(name, None)
        self._anywhere.pop(name, None)
        self._of_pool[PoolId(known.driver, known.pool)].pop(name, None)
        self._changed(known)

    def _changed(self, changed: PoolSlice) -> None:
        """Forget the pools of the nodes that the slice, or another of its pool, may reach."""
        pool = self._of_pool.get(PoolId(changed.driver, changed.pool), {})
        nodes = {str(each.spec.get("nodeName") or "") for each in (changed, *pool.values())}
        if "" in nodes:
            self._pools.clear()
        for node in nodes:
            self._pools.pop(node, None)

    def pools(self, place: NodePlace) -> list[Pool]:
        """Return the pools whose devices the node can reach, in the order in which they are searched."""
        known = self._pools.get(place.name)
        if known is not None and (known[0] is place.labels or known[0] == place.labels):
            return known[1]
        found = self._gather(place)
        self._pools[place.name] = (place.labels, found)
        return found

    def devices(self, place: NodePlace) -> Iterator[OfferedDevice]:
        """Yield the devices of all slices that the node can reach, of whatever generation and in whatever pool."""
        for each in (*self._on_node.get(place.name, {}).values(), *self._anywhere.values()):
            if each.per_device:
                yield from (device for device in each.devices if chosen(device.spec, place))
            elif chosen(each.spec, place):
                yield from each.devices

    def _gather(self, place: NodePlace) -> list[Pool]:
        near = {**self._on_node.get(place.name, {}), **self._anywhere}
        reached: dict[PoolId, list[PoolSlice]] = {}
        for name in sorted(near):
            each = near[name]
            if not self._features.partitionable_devices and (
                each.spec.get("perDeviceNodeSelection") is not None or (self._features.settled and each.counter_sets)
            ):
                continue
            if each.reaches(place) or (self._features.settled and each.counter_sets):
                _add(reached.setdefault(PoolId(each.driver, each.pool), []), each)
        made = [self._pool(pool_id, reached[pool_id]) for pool_id in sorted(reached)]
        pools = [pool for pool in made if pool is not None]
        return [pool for pool in pools if not pool.binds] + [pool for pool in pools if pool.binds]

    def _pool(self, pool_id: PoolId, slices: list[PoolSlice]) -> Pool | None:
        """Return the pool, None where a newer generation of it is anywhere."""
        if not self._features.settled:
            # Slices with binding conditions come after the others.
            ordered = [each for each in slices if not each.binds] + [each for each in slices if each.binds]
            incomplete = len(slices) != slices[0].count
            return Pool(pool_id, ordered, incomplete=incomplete, invalid=_twice_named(slices))
        generation, everywhere = slices[0].generation, self._of_pool[pool_id].values()
        if len(slices) != slices[0].count:
            if any(each.generation > generation for each in everywhere):
                return None
            if sum(each.generation == generation for each in everywhere) != slices[0].count:
                return Pool(pool_id, (), incomplete=True)
        others = [each for each in everywhere if each.generation == generation and each not in slices]
        return self._validated(pool_id, slices, others)

    def _validated(self, pool_id: PoolId, slices: list[PoolSlice], others: list[PoolSlice]) -> Pool:
        if not self._features.partitionable_devices:
            return Pool(pool_id, slices, others, invalid=_twice_named(slices))
        with_devices = [each for each in slices if not each.counter_sets]
        invalid = _twice_named(with_devices) or _wrong_counters([*slices, *others])
        return Pool(pool_id, () if invalid else slices, others, invalid=invalid)


def _add(pool: list[PoolSlice], added: PoolSlice) -> None:
    if pool and added.generation < pool[0].generation:
        return
    if pool and added.generation > pool[0].generation:
        pool.clear()
    pool.append(added)


def _twice_named(slices: Iterable[PoolSlice]) -> str:
    seen: set[str] = set()
    for each in slices:
        for device in each.devices:
            if device.id.device in seen:
                return f"duplicate device name {device.id.device}"
            seen.add(device.id.device)
    return ""


def _wrong_counters(slices: Sequence[PoolSlice]) -> str:
    sets: dict[str, Mapping[str, Any]] = {}
    for each in slices:
        for counter_set in each.counter_sets:
            if counter_set["name"] in sets:
                return f"duplicate counter set name {counter_set['name']}"
            sets[counter_set["name"]] = counter_set.get("counters") or {}
    for each in slices:
        for device in each.devices:
            for taken in device.counters:
                if taken["counterSet"] not in sets:
                    return f"counter set {taken['counterSet']} not found"
                for counter in taken.get("counters") or ():
                    if counter not in sets[taken["counterSet"]]:
                        return f"counter {counter} not found in counter set {taken['counterSet']}"
    return ""


def chosen(spec: Spec, place: NodePlace) -> bool:
    """Return whether a slice, or a device that chooses for itself, is for the node."""
    if spec.get("nodeName"):
        return bool(spec["nodeName"] == place.name)
    if spec.get("allNodes"):
        return True
    selector = spec.get("nodeSelector")
    return selector is not None and selected(selector, place)


def selected(selector: Spec, place: NodePlace) -> bool:
    """Return whether one of a node selector's terms holds; an empty one holds nowhere."""
    return any(_holds(term, place) for term in selector.get("nodeSelectorTerms") or ())


def _holds(term: Spec, place: NodePlace) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    return bool(expressions or fields) and (
        all(expression_holds(each, place.labels) for each in expressions)
        and all(expression_holds(each, {"metadata.name": place.name}) for each in fields)
    )


def refuse_invalid(pool: Pool) -> None:
    """Before 1.36 an invalid pool that is reached ends the attempt.

    Raises AllocationError.
    """
    if pool.invalid:
        raise AllocationError(f"pool {pool.id.pool} is invalid: {pool.invalid}")
