"""Constraints between the devices of a claim: one value of an attribute for all, or another for each.

Source: matchAttributeConstraint and distinctAttributeConstraint of structured/internal/experimental.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mews.kube.api.objects import Object
from mews.kube.scheduling.devices.errors import AllocationError
from mews.kube.scheduling.devices.features import DeviceFeatures
from mews.kube.scheduling.devices.inventory import OfferedDevice
from mews.kube.scheduling.devices.requests import ClaimedRequest, Spec, claim_key

Value = tuple[str, Any]
_KINDS = ("string", "int", "bool", "version")


class DeviceConstraint(Protocol):
    """Told of each device that is taken and given back; once it has refused one, more devices do not help."""

    def add(self, request: ClaimedRequest, device: OfferedDevice) -> bool:
        """Return whether the device may join those taken."""
        ...

    def remove(self, request: ClaimedRequest, device: OfferedDevice) -> None:
        """Undo the last addition."""
        ...


class MatchAttribute:
    """All devices have the attribute, with one value of one type."""

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        self._attribute = attribute
        self._requests = requests
        self._value: Value | None = None
        self._devices = 0

    def add(self, request: ClaimedRequest, device: OfferedDevice) -> bool:
        """Return whether the device has the value of the first."""
        if not request.is_named_by(self._requests):
            return True
        value = attribute_of(device, self._attribute)
        if value is None or (self._devices and value != self._value):
            return False
        self._value = value
        self._devices += 1
        return True

    def remove(self, request: ClaimedRequest, device: OfferedDevice) -> None:
        """One device less; after the last any value will do."""
        if request.is_named_by(self._requests):
            self._devices -= 1


class DistinctAttribute:
    """All devices have the attribute, each with another value."""

    def __init__(self, attribute: str, requests: Sequence[str]) -> None:
        self._attribute = attribute
        self._requests = requests
        self._values: list[Value] = []

    def add(self, request: ClaimedRequest, device: OfferedDevice) -> bool:
        """Return whether no other device has the device's value."""
        if not request.is_named_by(self._requests):
            return True
        value = attribute_of(device, self._attribute)
        if value is None or value in self._values:
            return False
        self._values.append(value)
        return True

    def remove(self, request: ClaimedRequest, device: OfferedDevice) -> None:
        """Forget the device's value."""
        value = attribute_of(device, self._attribute)
        if value is not None and request.is_named_by(self._requests):
            self._values.remove(value)


def constraints_of(claim: Object, features: DeviceFeatures) -> list[DeviceConstraint]:
    """Return the constraints of a claim.

    Raises AllocationError for one of a kind that is not known.
    """
    made: list[DeviceConstraint] = []
    for index, each in enumerate((claim["spec"].get("devices") or {}).get("constraints") or ()):
        names = each.get("requests") or ()
        if each.get("matchAttribute") is not None:
            made.append(MatchAttribute(str(each["matchAttribute"]), names))
        elif each.get("distinctAttribute") is not None and features.consumable_capacity:
            made.append(DistinctAttribute(str(each["distinctAttribute"]), names))
        else:
            text = "empty constraint (unsupported constraint type?)"
            raise AllocationError(f"claim {claim_key(claim)}, constraint #{index}: {text}")
    return made


def attribute_of(device: OfferedDevice, name: str) -> Value | None:
    """(type, value) of the attribute with that full name; in a slice those of the driver may lack their domain."""
    attributes: Spec = device.spec.get("attributes") or {}
    domain, _, key = name.partition("/")
    found = attributes.get(name)
    if found is None and domain == device.id.driver:
        found = attributes.get(key)
    if found is None:
        return None
    return next(((kind, found[kind]) for kind in _KINDS if kind in found), None)
