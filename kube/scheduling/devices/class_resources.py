"""Which device class stands behind an extended resource (KEP-5004)."""

from __future__ import annotations

from mews.kube.api.extended_resources import CLASS_PREFIX
from mews.kube.api.objects import Object, name_of
from mews.kube.scheduling.devices.features import DeviceFeatures


class ClassResources:
    """Follows the device classes, change by change, as upstream's cache does
    (k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache): of two classes with one resource the newer
    counts, and once that one is gone the older is found again only when it changes."""

    def __init__(self, features: DeviceFeatures) -> None:
        self._implicit = features.names_classes
        self._class_of: dict[str, tuple[str, str]] = {}
        """Resource -> when its class was made, and the class's name."""

    def class_of(self, resource: str) -> str | None:
        """Return the name of the class behind a resource."""
        found = self._class_of.get(resource)
        return None if found is None else found[1]

    def changed(self, old: Object | None, new: Object | None) -> None:
        """Take a class that came, changed or went."""
        if new is None:
            if old is not None:
                self._forget(old)
            return
        resource = resource_of(new)
        mine = (str(new["metadata"].get("creationTimestamp", "")), name_of(new))
        known = self._class_of.get(resource)
        if known is not None and (mine[0] < known[0] or (mine[0] == known[0] and mine[1] >= known[1])):
            return
        if old is not None:
            self._forget(old)
        if resource:
            self._class_of[resource] = mine
        if self._implicit or not resource:
            self._class_of[f"{CLASS_PREFIX}{name_of(new)}"] = mine

    def _forget(self, device_class: Object) -> None:
        self._class_of.pop(f"{CLASS_PREFIX}{name_of(device_class)}", None)
        self._class_of.pop(resource_of(device_class), None)


def resource_of(device_class: Object) -> str:
    """Return the extended resource that a class names, "" where none."""
    return str(device_class["spec"].get("extendedResourceName") or "")
