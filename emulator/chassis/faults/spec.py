"""A fault as data: ``{"kind": …, parameters…, and when it fires}``, checked against the fault's own fields.

When it fires: ``operation`` (attach, detach, read), ``device``, ``count`` (how often; null = until cleared),
``probability``. ``skip`` lets the first n matching operations pass; ``expires_s`` removes the fault after that time.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal

from msgspec import Struct

from mews.emulator.chassis.faults.bench import ChassisFault
from mews.emulator.chassis.operation import Operation, OperationKind
from mews.emulator.hardware.latency import Latency, parse_latency
from mews.names import among, must_be
from mews.registry import ValueRegistry


class FaultTrigger(Struct):
    """Decides whether a fault fires, and counts how often it did."""

    operation: str | None
    device: str | None
    count: int | None
    skip: int
    probability: float
    expires_s: float | None
    fired: int = 0

    @property
    def spent(self) -> bool:
        """Whether the fault has fired as often as its spec allows."""
        return self.count is not None and self.fired >= self.count


DECLARED = ("kind", "on", "count", "may_break", "grace_s")
"""What every fault says of itself, as class attributes."""

FILTERS = ("operation", "device", "count", "skip", "probability", "expires_s")


def fault_registry(
    ours: Mapping[str, str], sits_in: Literal["chassis", "host", "component"]
) -> ValueRegistry[type[Any]]:
    """Return the faults that sit in a chassis, in a host, or between a component and its API: ours by
    ``module:attribute``, and those of other packages that say so by ``sits_in``."""

    def accept(name: str, value: Any) -> type[Any]:
        if not isinstance(value, type) or not is_dataclass(value):
            raise TypeError(f"is a {type(value).__name__}; must be a dataclass with {', '.join(DECLARED)}")
        for attribute in DECLARED:
            if not hasattr(value, attribute):
                raise TypeError(f"has no {attribute}; a fault is a dataclass with {', '.join(DECLARED)}")
        there = getattr(value, "sits_in", sits_in if name in ours else "chassis")
        if there != sits_in:
            raise ValueError(f"sits in a {there}, not in a {sits_in}")
        return value

    return ValueRegistry("fault kind", "mews.faults", ours, accept)


def parse_fault(
    spec: Mapping[str, Any], registry: ValueRegistry[type[Any]], filters: Sequence[str] = FILTERS
) -> tuple[ChassisFault, FaultTrigger]:
    """Return the fault that a spec describes, and when it fires: of that, the spec may say those ``filters``.

    Raises ValueError naming what is allowed.
    """
    if not isinstance(spec, Mapping):
        raise ValueError(f"fault {spec!r}: must be a mapping with a kind")
    kind = spec.get("kind")
    if not isinstance(kind, str):
        raise ValueError(f"fault kind {kind!r}: {must_be(kind, registry.names())}")
    made = registry.find(kind)
    parameters = {field.name: field for field in fields(made)}
    for key in spec:
        if key != "kind" and key not in parameters and key not in filters:
            allowed = dict.fromkeys((*parameters, *filters))
            raise ValueError(f"fault {kind}: unknown key {key!r}; allowed: {among(key, allowed)}")
    hints = typing.get_type_hints(made)
    values = {name: _value(kind, name, spec[name], hints[name]) for name in parameters if name in spec}
    missing = [n for n, f in parameters.items() if n not in values and f.default is MISSING]
    if missing:
        raise ValueError(f"fault {kind}: {missing[0]} is required")
    fault: ChassisFault = made(**values)
    return fault, _when(kind, spec, fault)


def check_names(spec: Mapping[str, Any], *, devices: Sequence[str], ports: Sequence[str] | None = None) -> None:
    """Refuse a spec that names a device, or a port, which is not among those.

    Raises ValueError naming what is allowed.
    """
    for key, known in (("device", devices), ("edit", devices), ("port", ports)):
        name = spec.get(key)
        if name is not None and known is not None and name not in known:
            raise ValueError(f"fault {spec.get('kind')}: {key} {name!r}: {must_be(name, known)}")


def _when(kind: str, spec: Mapping[str, Any], fault: ChassisFault) -> FaultTrigger:
    operation = _value(kind, "operation", spec.get("operation"), str | None)
    if operation is not None and operation not in fault.on:
        raise ValueError(f"fault {kind}: operation {operation!r}: must be one of {', '.join(fault.on) or 'none'}")
    count = _value(kind, "count", spec.get("count", fault.count), int | None)
    if count is not None and count < 1:
        raise ValueError(f"fault {kind}: count {count}: must be at least 1, or null for no limit")
    probability = _value(kind, "probability", spec.get("probability", 1.0), float)
    if not 0 <= probability <= 1:
        raise ValueError(f"fault {kind}: probability {probability}: must be from 0 to 1")
    return FaultTrigger(
        operation=operation,
        device=_value(kind, "device", spec.get("device"), str | None),
        count=count,
        skip=_value(kind, "skip", spec.get("skip", 0), int),
        probability=probability,
        expires_s=_value(kind, "expires_s", spec.get("expires_s"), float | None),
    )


def _value(kind: str, name: str, value: Any, hint: Any) -> Any:
    if hint is Latency or hint == (Latency | None):
        return value if value is None or hasattr(value, "draw") else parse_latency(value)
    allowed = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if typing.get_origin(hint) is typing.Literal:
        if value in typing.get_args(hint):
            return value
        raise ValueError(f"fault {kind}: {name} {value!r}: must be one of {', '.join(map(str, typing.get_args(hint)))}")
    if float in allowed and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if isinstance(value, bool) and bool not in allowed:
        pass
    elif any(isinstance(value, each) for each in allowed if isinstance(each, type)):
        if isinstance(value, int | float) and not isinstance(value, bool) and not 0 <= value < 1e12:
            raise ValueError(f"fault {kind}: {name} {value!r}: must be 0 or more")
        return value
    names = " or ".join("null" if each is types.NoneType else each.__name__ for each in allowed)
    raise ValueError(f"fault {kind}: {name} {value!r}: must be of type {names}")


def admits(when: FaultTrigger, operation: Operation, on: tuple[str, ...]) -> bool:
    """Return whether the operation is one that this fault looks at (chance and count not considered)."""
    if operation.kind not in on:
        return False
    if when.operation is not None and operation.kind != when.operation:
        return False
    return when.device is None or operation.kind is OperationKind.READ or operation.device == when.device
