"""What a pod asks of devices: read, checked and translated once, before any node is looked at (contract section 2).

100 is one device. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from mews.systems.koordinator.devices import Amounts, NodeDevice
from mews.systems.koordinator.errors import InvalidRequestError
from mews.systems.koordinator.hints import (
    NO_HINT,
    NO_HINTS,
    DeviceHint,
    JointAllocation,
    PartitionSpec,
    PodHints,
    hints_of,
)
from mews.systems.koordinator.names import (
    CORE,
    DOMAIN,
    GPU,
    HAMI_CORE,
    HINT,
    ISOLATION,
    MEMORY,
    NVIDIA,
    RATIO,
    SHARED,
    VENDORS,
    WHOLE,
    today,
    type_of_resource,
)

_COMBINATIONS = (
    *(frozenset({vendor}) for vendor in VENDORS),
    frozenset({WHOLE}),
    frozenset({MEMORY}),
    frozenset({RATIO}),
    frozenset({CORE, MEMORY}),
    frozenset({CORE, RATIO}),
    frozenset({CORE, RATIO, MEMORY}),
    frozenset({SHARED, MEMORY}),
    frozenset({SHARED, RATIO}),
    frozenset({SHARED, CORE, MEMORY}),
    frozenset({SHARED, CORE, RATIO}),
    frozenset({SHARED, CORE, RATIO, MEMORY}),
    *(frozenset({vendor, CORE, RATIO}) for vendor in VENDORS),
)


@dataclass(frozen=True, slots=True)
class DeviceDemand:
    """So many devices of one type, and so much of each; of a GPU's memory either bytes or a ratio may be missing."""

    type: str
    count: int
    each: Amounts = field(default_factory=dict, hash=False)
    total: int = 0
    """What was asked of the type's own resource in all, for hints that take it for a number of devices."""

    def on(self, device: NodeDevice) -> Amounts | None:
        """Return what that is of this device: of a GPU always memory and ratio, and core where it is asked. None where
        bytes and ratio are both asked and are not the same on it."""
        if self.type != GPU:
            return self.each
        whole = device.resources.get(MEMORY, 0)
        core = {CORE: self.each[CORE]} if CORE in self.each else {}
        memory, ratio = self.each.get(MEMORY), self.each.get(RATIO)
        if memory is None:
            return {**core, MEMORY: bytes_of(ratio or 0, whole), RATIO: ratio or 0}
        if ratio is None:
            return {**core, MEMORY: memory, RATIO: ratio_of(memory, whole)}
        if memory == bytes_of(ratio, whole) or ratio == ratio_of(memory, whole):
            return {**core, MEMORY: memory, RATIO: ratio}
        return None

    @property
    def whole_devices(self) -> bool:
        """Whether nobody else has some of its devices: of a GPU all memory decides, as a ratio, whatever the core."""
        if self.type == GPU:
            return self.each.get(RATIO, 0) >= 100
        return all(value >= 100 for value in self.each.values())


def bytes_of(ratio: int, whole: int) -> int:
    """Hundredths of a GPU's memory in bytes."""
    return ratio * whole // 100


def ratio_of(memory: int, whole: int) -> int:
    """Return bytes in hundredths of a GPU's memory, truncated; more than any GPU has where it has none."""
    return memory * 100 // whole if whole else 101


class DeviceAsk(Struct, frozen=True):
    """All that a pod asks of devices and says about their choice. Demands are in order of their types."""

    demands: tuple[DeviceDemand, ...]
    hints: PodHints = NO_HINTS

    def demand(self, kind: str) -> DeviceDemand | None:
        """Return what it asks of one type."""
        return next((each for each in self.demands if each.type == kind), None)

    def hint(self, kind: str) -> DeviceHint:
        """Return what it says about the choice among devices of one type."""
        return self.hints.by_type.get(kind, NO_HINT)

    @property
    def joint(self) -> JointAllocation | None:
        """Which types are to be near each other."""
        return self.hints.joint

    @property
    def partition(self) -> PartitionSpec | None:
        """What it says about partitions."""
        return self.hints.partition


def ask_of(
    requests: Mapping[str, int],
    annotations: Mapping[str, str],
    kinds: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> DeviceAsk | None:
    """Return what a pod with these requests, annotations and labels asks of devices; None for none.

    ``kinds``: resource -> type, as the Device objects of the cluster have them. Raises InvalidRequestError.
    """
    demands = parse_demands(requests, kinds)
    if not demands:
        return None
    isolation = (labels or {}).get(ISOLATION, HAMI_CORE)
    if isolation != HAMI_CORE:
        raise InvalidRequestError(f"{ISOLATION}: {isolation!r}: must be {HAMI_CORE}")
    hints = hints_of(annotations)
    asks_gpus = any(each.type == GPU for each in demands)
    if asks_gpus and hints.by_type.get(GPU, NO_HINT).strategy == "RequestsAsCount":
        raise InvalidRequestError(
            f"{HINT}.{GPU}.allocateStrategy: 'RequestsAsCount': a number of GPUs is asked for by {NVIDIA}"
        )
    return DeviceAsk(demands, hints)


def device_type(resource: str, kinds: Mapping[str, str] | None = None) -> str:
    """Return the type of device that a resource, by its name of today, is of; "" for none."""
    return (kinds or {}).get(resource) or type_of_resource(resource)


def parse_demands(requests: Mapping[str, int], kinds: Mapping[str, str] | None = None) -> tuple[DeviceDemand, ...]:
    """Return the demands in a pod's requests.

    Raises InvalidRequestError for what no node could serve.
    """
    by_type: dict[str, dict[str, int]] = {}
    for name, value in requests.items():
        kind = device_type(today(name), kinds)
        if not kind or not value:
            continue
        asked = by_type.setdefault(kind, {})
        if today(name) in asked:
            raise InvalidRequestError(f"{today(name)} is requested under two names")
        asked[today(name)] = value
    return tuple(
        _gpu_demand(asked) if kind == GPU else _other_demand(kind, asked) for kind, asked in sorted(by_type.items())
    )


def _gpu_demand(asked: Amounts) -> DeviceDemand:
    names = frozenset(asked)
    if names not in _COMBINATIONS:
        raise _combination(asked)
    vendor = next((name for name in VENDORS if name in names), None)
    if vendor is not None:
        total = asked[vendor] * 100
        if len(names) > 1 and (asked[CORE], asked[RATIO]) != (total, total):
            raise _combination(asked)
        return DeviceDemand(GPU, asked[vendor], {CORE: 100, RATIO: 100}, asked[vendor])
    if WHOLE in names:
        _check_unit(WHOLE, asked[WHOLE])
        asked = {CORE: asked[WHOLE], RATIO: asked[WHOLE]}
    if SHARED in names:
        return _shared_demand(asked)
    for name in (CORE, RATIO):
        _check_unit(name, asked.get(name, 0))
    ratio = asked.get(RATIO, 0)
    count = ratio // 100 if ratio > 100 else 1
    if asked.get(MEMORY, 0) % count:
        raise _combination(asked)
    return DeviceDemand(GPU, count, {name: value // count for name, value in asked.items()}, ratio)


def _shared_demand(asked: Amounts) -> DeviceDemand:
    count = asked[SHARED]
    each: dict[str, int] = {}
    for name, value in asked.items():
        if name == SHARED:
            continue
        if name != MEMORY and (value % count or value // count > 100):
            raise _combination(asked)  # bytes are divided with the rest left over, as upstream does
        each[name] = value // count
    return DeviceDemand(GPU, count, each, count)


def _other_demand(kind: str, asked: Amounts) -> DeviceDemand:
    """Return that of a type that has one resource in hundredths, and perhaps more."""
    own = DOMAIN + kind if DOMAIN + kind in asked else min(asked)
    _check_unit(own, asked[own])
    count = asked[own] // 100 if asked[own] > 100 else 1
    if any(value % count for value in asked.values()):
        raise _combination(asked)
    return DeviceDemand(kind, count, {name: value // count for name, value in asked.items()}, asked[own])


def _check_unit(name: str, value: int) -> None:
    if value > 100 and value % 100:
        raise InvalidRequestError(f"invalid resource unit {name}: {value}: must be at most 100 or a multiple of it")


def _combination(asked: Amounts) -> InvalidRequestError:
    names: Sequence[str] = [f"{name}: {value}" for name, value in sorted(asked.items())]
    return InvalidRequestError(f"invalid resource device requests: {', '.join(names)}")
