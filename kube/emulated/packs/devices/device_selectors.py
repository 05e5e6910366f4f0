"""What is wrong with expressions over a device: they must compile, be true or false, and not cost too much.

Source: validateCELSelector of pkg/apis/resource/validation, and the environment and size estimator of
k8s.io/dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.cel import types
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.types.cel_types import Declared

_LONGEST_EXPRESSION = 10 * 1024
_COST_LIMIT = 1_000_000
"""CELSelectorExpressionMaxCost."""
_MOST, _LONGEST_DOMAIN, _LONGEST_NAME, _LONGEST_VALUE = 32, 63, 32, 64
"""Attributes and capacities of a device, and characters of the parts of their names and of a value."""


def _maps_to(value: Declared) -> Declared:
    """Values by domain and name."""
    name, domain = Declared(types.STRING, _LONGEST_NAME), Declared(types.STRING, _LONGEST_DOMAIN)
    inner = Declared(types.map_of(types.STRING, value.type), _MOST, item=value, key=name)
    return Declared(types.map_of(types.STRING, inner.type), _MOST, item=inner, key=domain)


def _device(*, shares: bool) -> Declared:
    fields = {
        "driver": Declared(types.STRING, _LONGEST_DOMAIN),
        "attributes": _maps_to(Declared(types.ANY, _LONGEST_VALUE)),
        "capacity": _maps_to(Declared(types.opaque("kubernetes.Quantity"))),
    }
    if shares:
        fields["allowMultipleAllocations"] = Declared(types.BOOL, 1)
    shape = types.struct("kubernetes.DRADevice", {name: each.type for name, each in fields.items()})
    return Declared(shape, fields=fields)


_DEVICES = {shares: _device(shares=shares) for shares in (False, True)}


def selector_errors(selector: Mapping[str, Any], path: str, *, shares: bool) -> Iterator[FieldError]:
    """Yield the errors of one selector; ``shares``: an expression may ask whether the device is shared."""
    cel, path = selector.get("cel"), f"{path}.cel"
    if cel is None:
        yield refusals.required(path)
        return
    from mews.kube.cel.costs import cost
    from mews.kube.cel.expressions import compiled

    path, expression = f"{path}.expression", cel.get("expression", "")
    if len(expression.encode()) > _LONGEST_EXPRESSION:
        yield common.too_long(path, _LONGEST_EXPRESSION)
        return
    device = _DEVICES[shares]
    found = compiled(expression, {"device": device.type}, bindings=True)
    if found.error or found.checked is None:
        yield refusals.bad(path, expression, f"compilation failed: {found.error}")
    elif found.type not in (types.BOOL, types.ANY):
        yield refusals.bad(path, expression, f"must evaluate to bool or the unknown type, not {found.type.full_name}")
    elif cost(found.checked, lambda at: _size_at(device, at)) > _COST_LIMIT:
        yield refusals.forbidden_field(path, "too complex, exceeds cost limit")


def _size_at(device: Declared, path: tuple[str, ...]) -> int | None:
    """Return the most elements of what is at a path below ``device``; any name may be that of an attribute."""
    if path[0] != "device":
        return None
    named = len(path) == 4 and path[1:3] == ("attributes", "@values") and not path[3].startswith("@")
    return device.size_at((*path[:3], "@values") if named else path)
