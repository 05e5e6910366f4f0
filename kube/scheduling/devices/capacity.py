"""How much of a device a request consumes, and whether that is left (structured/internal/…/consumable_capacity.go)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any

from mews.kube.api.quantities import parse, total_text
from mews.kube.scheduling.devices.inventory import OfferedDevice
from mews.kube.scheduling.devices.requests import ClaimedRequest, Spec

Amounts = Mapping[str, Decimal]


def consumed(request: ClaimedRequest, device: OfferedDevice) -> dict[str, Decimal] | None:
    """Return those of each capacity of the device how much the request takes; None where the device cannot give
    that."""
    capacities: Mapping[str, Spec] = device.spec.get("capacity") or {}
    if not capacities and not request.capacity:
        return {}
    if any(name not in capacities for name in request.capacity):
        return None
    taken: dict[str, Decimal] = {}
    for name, capacity in capacities.items():
        amount = _amount(request.capacity.get(name), capacity)
        if _violates(amount, capacity.get("requestPolicy") or {}):
            return None
        taken[name] = amount
    return taken


def is_left(taken: Amounts, device: OfferedDevice, used: Amounts) -> bool:
    """Return whether the device has that much beside what is used of it."""
    if not taken:
        return True
    capacities: Mapping[str, Spec] = device.spec.get("capacity") or {}
    return all(
        amount + used.get(name, Decimal(0)) <= parse(capacities[name]["value"]) for name, amount in taken.items()
    )


def written(taken: Amounts, device: OfferedDevice) -> dict[str, str]:
    """Return the amounts as an allocation shows them: with suffixes of the family in which the device writes its
    own."""
    return {name: total_text(amount, device.spec["capacity"][name]["value"]) for name, amount in taken.items()}


def _amount(wanted: Any, capacity: Spec) -> Decimal:
    policy: Spec = capacity.get("requestPolicy") or {}
    if wanted is None:
        return parse(policy["default"] if policy.get("default") is not None else capacity["value"])
    amount = parse(wanted)
    valid: Spec = policy.get("validRange") or {}
    if valid.get("min") is not None:
        least = parse(valid["min"])
        if amount < least:
            return least
        step = parse(valid["step"]) if valid.get("step") is not None else None
        return amount if step is None else least + ((amount - least) / step).to_integral_value(ROUND_CEILING) * step
    return next((parse(value) for value in policy.get("validValues") or () if amount <= parse(value)), amount)


def _violates(amount: Decimal, policy: Spec) -> bool:
    if policy.get("default") is not None and amount == parse(policy["default"]):
        return False
    valid: Spec | None = policy.get("validRange")
    if valid is not None:
        if valid.get("max") is not None and amount > parse(valid["max"]):
            return True
        return valid.get("step") is not None and bool((amount - parse(valid["min"])) % parse(valid["step"]))
    values = policy.get("validValues") or ()
    return bool(values) and all(parse(value) != amount for value in values)
