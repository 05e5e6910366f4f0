"""Objects of resource.k8s.io/v1beta1 over those of v1: a request's fields are its own there and not those of
``exactly``, and a device's are in ``basic``. Pure.

Source: pkg/apis/resource/v1beta1/conversion.go of Kubernetes 1.34 to 1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mews.kube.api.objects import Object

Change = Callable[[Object], Object]
_CLASS = "deviceClassName"
_OF_A_REQUEST = ("name", "firstAvailable")


def shown(plural: str, obj: Object) -> Object:
    """Return an object of v1 as v1beta1 has it; of its spec alone, all else is the same."""
    return _SHOWN[plural](obj) if plural in _SHOWN else obj


def stored(plural: str, obj: Object) -> Object:
    """And back."""
    return _STORED[plural](obj) if plural in _STORED else obj


def _at(*path: str, change: Callable[[Any], Any]) -> Change:
    """Change what is at that path, where it is there."""

    def changed(value: Any, at: int = 0) -> Any:
        if at == len(path):
            return change(value)
        if not isinstance(value, Mapping) or value.get(path[at]) is None:
            return value
        return {**value, path[at]: changed(value[path[at]], at + 1)}

    return changed


def _each(change: Change) -> Callable[[Any], Any]:
    def changed(entries: Any) -> Any:
        return [change(entry) for entry in entries]

    return changed


def _shown_request(request: Object) -> Object:
    shown = {key: value for key, value in request.items() if key != "exactly"}
    return {_CLASS: "", **shown, **(request.get("exactly") or {})}


def _stored_request(request: Object) -> Object:
    """One without any of the fields of ``exactly`` gets none (hasAnyMainRequestFieldsSet): it has alternatives."""
    exact = {key: value for key, value in request.items() if key not in _OF_A_REQUEST and _is_set(value)}
    kept = {key: value for key, value in request.items() if key in _OF_A_REQUEST}
    return {**kept, "exactly": {_CLASS: "", **exact}} if exact else kept


def _is_set(value: Any) -> bool:
    """Numbers and words are set where they are not zero; what may be absent, a boolean or a list, where it is there."""
    return isinstance(value, (bool, list, dict)) or bool(value)


def _shown_device(device: Object) -> Object:
    return {"name": device.get("name", ""), "basic": {key: value for key, value in device.items() if key != "name"}}


def _stored_device(device: Object) -> Object:
    return {"name": device.get("name", ""), **(device.get("basic") or {})}


def _stored_slice(spec: Object) -> Object:
    """``nodeName`` and ``allNodes`` are no pointers there: empty ones are left out."""
    kept = {key: value for key, value in spec.items() if value or key not in ("nodeName", "allNodes")}
    return _at("devices", change=_each(_stored_device))(kept)


def _requests(change: Change, *path: str) -> Change:
    return _at(*path, "devices", "requests", change=_each(change))


_SHOWN: Mapping[str, Change] = {
    "resourceclaims": _requests(_shown_request, "spec"),
    "resourceclaimtemplates": _requests(_shown_request, "spec", "spec"),
    "resourceslices": _at("spec", "devices", change=_each(_shown_device)),
}
_STORED: Mapping[str, Change] = {
    "resourceclaims": _requests(_stored_request, "spec"),
    "resourceclaimtemplates": _requests(_stored_request, "spec", "spec"),
    "resourceslices": _at("spec", change=_stored_slice),
}
