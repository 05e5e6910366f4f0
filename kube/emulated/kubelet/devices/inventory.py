"""What the plugins' last lists say, and the node's resource numbers (contract kubelet.md section 2)."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.deviceplugin.port import HEALTHY, PluginDevice
from mews.kube.emulated.kubelet.devices.order import union


class Inventory:
    """Devices by resource: healthy, unhealthy, and all of the last list. Only the device manager writes it."""

    def __init__(self, restored: Sequence[str] = ()) -> None:
        self._healthy: dict[str, tuple[str, ...]] = dict.fromkeys(restored, ())
        self._unhealthy: dict[str, tuple[str, ...]] = dict.fromkeys(restored, ())
        self._known: dict[str, dict[str, PluginDevice]] = {}

    def replace(self, resource: str, devices: Sequence[PluginDevice]) -> None:
        """A plugin's list: always the full one; anything but exactly Healthy is unhealthy."""
        self._known[resource] = {device.id: device for device in devices}
        listed = self._known[resource].values()
        self._healthy[resource] = tuple(d.id for d in listed if d.health == HEALTHY)
        self._unhealthy[resource] = tuple(d.id for d in listed if d.health != HEALTHY)

    def fail(self, resource: str) -> None:
        """The plugin is gone: nothing of it is healthy."""
        gone = self._healthy.get(resource, ())
        if resource in self._healthy:
            self._healthy[resource] = ()
        self._unhealthy[resource] = union(self._unhealthy.get(resource, ()), gone)

    def forget(self, resource: str) -> None:
        """The grace is over. (The last list stays known, as upstream's does.)"""
        self._healthy.pop(resource, None)
        self._unhealthy.pop(resource, None)

    def healthy(self, resource: str) -> tuple[str, ...] | None:
        """Healthy IDs; None for a resource of which no list is known."""
        return self._healthy.get(resource)

    def known(self, resource: str) -> dict[str, PluginDevice]:
        """Return the devices of the last list by ID."""
        return self._known.get(resource, {})

    def registered(self) -> dict[str, tuple[str, ...]]:
        """``RegisteredDevices`` of the checkpoint: resource -> healthy IDs."""
        return dict(self._healthy)

    def resources(self) -> tuple[str, ...]:
        """Return every resource with a number on the node."""
        return union(self._healthy, self._unhealthy)

    def numbers(self, resource: str) -> tuple[int, int]:
        """(capacity, allocatable): healthy + unhealthy, healthy."""
        healthy = len(self._healthy.get(resource, ()))
        return healthy + len(self._unhealthy.get(resource, ())), healthy
