"""Expressions over a device, as requests and classes select by (k8s.io/dynamic-resource-allocation/cel)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mews.kube.cel.evaluation import Program
from mews.kube.cel.expressions import program
from mews.kube.cel.libraries import Quantity
from mews.kube.cel.semver import Semver
from mews.kube.cel.syntax import ExpressionSyntaxError, report
from mews.kube.cel.values import CelError, Defaulting, type_of
from mews.kube.scheduling.devices.errors import SelectorError
from mews.kube.scheduling.devices.features import DeviceFeatures
from mews.kube.scheduling.devices.inventory import OfferedDevice, Spec

COST_LIMIT = 1_000_000
"""Of one evaluation (CELSelectorExpressionMaxCost)."""
ADVICE = (
    "consider using CEL optional chaining (.? followed by orValue()) "
    + "or guarding the check with has() for optional fields"
)


def holds(expression: str, device: OfferedDevice) -> bool:
    """Return whether the expression is true of the device; asked once for both.

    Raises SelectorError.
    """
    known = device.matches.get(expression)
    if known is None:
        known = device.matches[expression] = _evaluated(expression, device)
    return known


def worded(where: str, device: OfferedDevice, text: str, features: DeviceFeatures) -> str:
    """Return an error of a selector; from 1.37 on what goes wrong at run time names the device."""
    if features.minor < 37 or "runtime error" not in text:
        return f"{where}: {text}"
    advice = f". {ADVICE}" if "no such key" in text else ""
    return f"{where} on device {device.id}: {text}{advice}"


def _evaluated(expression: str, device: OfferedDevice) -> bool:
    if device.variables is None:
        device.variables = {"device": _shown(device)}
    try:
        value, _ = _program(expression).evaluate(device.variables, COST_LIMIT)
    except ExpressionSyntaxError as error:
        raise SelectorError(f"CEL compile error: compilation failed: {report(expression, error.errors)}") from error
    except CelError as error:
        raise SelectorError(f"CEL runtime error: {error}") from error
    if not isinstance(value, bool):
        kind = type_of(value)
        raise SelectorError(
            f"CEL runtime error: CEL result of type {kind} could not be converted to bool: "
            f"unsupported native conversion from {kind} to 'bool'"
        )
    return value


@lru_cache(maxsize=1024)
def _program(expression: str) -> Program:
    return program(expression, bindings=True)


def _shown(device: OfferedDevice) -> dict[str, Any]:
    """``device`` as expressions see it: an unknown domain is an empty map."""
    attributes, capacity = Defaulting(), Defaulting()
    for name, attribute in (device.spec.get("attributes") or {}).items():
        domain, key = _split(name, device.id.driver)
        attributes.setdefault(domain, {})[key] = _value(attribute)
    for name, amount in (device.spec.get("capacity") or {}).items():
        domain, key = _split(name, device.id.driver)
        capacity.setdefault(domain, {})[key] = Quantity.parse(str(amount["value"]))
    return {
        "driver": device.id.driver,
        "allowMultipleAllocations": device.is_shared,
        "attributes": attributes,
        "capacity": capacity,
    }


def _split(name: str, driver: str) -> tuple[str, str]:
    domain, slash, key = name.partition("/")
    return (domain, key) if slash else (driver, name)


def _value(attribute: Spec) -> Any:
    for kind in ("int", "bool", "string"):
        if kind in attribute:
            return attribute[kind]
    return Semver.parse(str(attribute["version"]))
