"""What a pod's annotations say about the choice of its devices (``names.HINT``, ``JOINT``, ``PARTITION_SPEC``). Pure.

What is not known here is refused: a hint that nobody follows would be worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from msgspec import Struct

from mews.kube.api.quantities import whole
from mews.kube.api.selectors import expression_holds, match_expressions
from mews.systems.koordinator.devices import parsed_json
from mews.systems.koordinator.errors import BadDeviceError, InvalidRequestError
from mews.systems.koordinator.names import HINT, JOINT, PARTITION_SPEC

Strategy = Literal["", "ApplyForAll", "RequestsAsCount"]
Scope = Literal["", "Device", "PCIe", "NUMANode", "Node"]
Exclusive = Literal["", "DeviceLevel", "PCIeLevel"]
PartitionPolicy = Literal["BestEffort", "Restricted"]


@dataclass(frozen=True, slots=True)
class DeviceHint:
    """What a pod hints about its devices of one type. ``selector`` and ``vf_selector`` are label selectors, None for
    none; with a ``vf_selector`` each device is given with one of its virtual functions that matches.

    ``strategy``: ApplyForAll, so much of every device that the selector matches; RequestsAsCount, the amount is the
    number of devices, of each 1, or all of it where DeviceLevel is exclusive. ``scope``: all within one PCIe
    switch or NUMA node. ``exclusive``: with no other pod on the device, or on any of its type below the same switch,
    now or later.
    """

    selector: Mapping[str, Any] | None = field(default=None, hash=False)
    vf_selector: Mapping[str, Any] | None = field(default=None, hash=False)
    strategy: Strategy = ""
    scope: Scope = ""
    exclusive: Exclusive = ""

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Return whether a device with these labels may be given."""
        return self.selector is None or match_expressions(self.selector, labels)

    def selects_function(self, labels: Mapping[str, str]) -> bool:
        """Return whether a virtual function with these labels may be given."""
        return self.vf_selector is None or match_expressions(self.vf_selector, labels)


NO_HINT = DeviceHint()


class JointAllocation(Struct, frozen=True):
    """Devices of these types belong together, the first leads. ``same_pcie``: it must be below the same switches; else
    it should."""

    types: tuple[str, ...]
    same_pcie: bool = False


class PartitionSpec(Struct, frozen=True):
    """Only partitions will do. ``restricted``: only those of the highest score; ``bandwidth``: of the ring, at least,
    bytes/s."""

    restricted: bool = False
    bandwidth: int = 0


@dataclass(frozen=True, slots=True)
class PodHints:
    """All that a pod says about the choice."""

    by_type: Mapping[str, DeviceHint] = field(default_factory=dict, hash=False)
    joint: JointAllocation | None = None
    partition: PartitionSpec | None = None


NO_HINTS = PodHints()


def hints_of(annotations: Mapping[str, str]) -> PodHints:
    """Read a pod's annotations.

    Raises InvalidRequestError for what cannot be read or is not known.
    """
    try:
        return PodHints(
            {kind: _hint(hint, f"{HINT}.{kind}") for kind, hint in _mapping(annotations, HINT).items()},
            _joint(_mapping(annotations, JOINT)) if JOINT in annotations else None,
            _partition(_mapping(annotations, PARTITION_SPEC)) if PARTITION_SPEC in annotations else None,
        )
    except BadDeviceError as error:
        raise InvalidRequestError(str(error)) from None


def _mapping(annotations: Mapping[str, str], key: str) -> Mapping[str, Any]:
    text = annotations.get(key, "")
    value = parsed_json(text, key) if text else {}
    if not isinstance(value, Mapping):
        raise InvalidRequestError(f"{key}: must be a JSON object")
    return value


def _only(value: Any, where: str, *known: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidRequestError(f"{where}: must be a JSON object")
    for key in value:
        if key not in known:
            raise InvalidRequestError(f"{where}.{key}: must be one of {', '.join(known)}")
    return value


def _word(value: Any, allowed: tuple[str, ...], where: str) -> Any:
    if value not in allowed:
        raise InvalidRequestError(f"{where}: {value!r}: must be one of {', '.join(word for word in allowed if word)}")
    return value


def _selector(value: Any, where: str) -> Mapping[str, Any] | None:
    if value is None:
        return None
    checked = _only(value, where, "matchLabels", "matchExpressions")
    try:
        if not isinstance(checked.get("matchLabels") or {}, Mapping):
            raise TypeError("matchLabels: must be an object")
        for expression in checked.get("matchExpressions") or ():
            expression_holds(expression, {})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidRequestError(f"{where}: {error}: must be a label selector") from None
    return checked


def _hint(value: Any, where: str) -> DeviceHint:
    known = ("selector", "vfSelector", "allocateStrategy", "requiredTopologyScope", "exclusivePolicy")
    hint = _only(value, where, *known)
    return DeviceHint(
        selector=_selector(hint.get("selector"), f"{where}.selector"),
        vf_selector=_selector(hint.get("vfSelector"), f"{where}.vfSelector"),
        strategy=_word(hint.get("allocateStrategy", ""), get_args(Strategy), f"{where}.allocateStrategy"),
        scope=_word(hint.get("requiredTopologyScope", ""), get_args(Scope), f"{where}.requiredTopologyScope"),
        exclusive=_word(hint.get("exclusivePolicy", ""), get_args(Exclusive), f"{where}.exclusivePolicy"),
    )


def _joint(value: Mapping[str, Any]) -> JointAllocation | None:
    joint = _only(value, JOINT, "deviceTypes", "requiredScope")
    types = joint.get("deviceTypes") or ()
    if not isinstance(types, list) or not all(isinstance(each, str) and each for each in types):
        raise InvalidRequestError(f"{JOINT}.deviceTypes: {types!r}: must be a list of types")
    scope = _word(joint.get("requiredScope", ""), ("", "SamePCIe"), f"{JOINT}.requiredScope")
    return JointAllocation(tuple(dict.fromkeys(types)), scope == "SamePCIe") if types else None


def _partition(value: Mapping[str, Any]) -> PartitionSpec:
    spec = _only(value, PARTITION_SPEC, "allocatePolicy", "ringBusBandwidth")
    where = f"{PARTITION_SPEC}.allocatePolicy"
    policy = _word(spec.get("allocatePolicy") or "BestEffort", get_args(PartitionPolicy), where)
    try:
        bandwidth = whole(spec.get("ringBusBandwidth") or 0)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise InvalidRequestError(f"{PARTITION_SPEC}.ringBusBandwidth: {error}") from None
    return PartitionSpec(policy == "Restricted", bandwidth)
