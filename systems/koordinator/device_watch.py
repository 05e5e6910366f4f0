"""What the scheduler learns of devices: Device objects, and what labels of Nodes say of partitions."""

from __future__ import annotations

from mews.kube.api.objects import Object, labels_of, name_of
from mews.kube.api.resources import NODES
from mews.kube.component import record
from mews.kube.events import EventRecorder, reference
from mews.kube.scheduling.framework import Handle
from mews.systems.koordinator.cache import NodeDeviceCache
from mews.systems.koordinator.errors import BadDeviceError
from mews.systems.koordinator.names import DEVICES


class DeviceWatch:
    """Brings Device objects and partitions into the scheduler's cache; what cannot be read is told by an event about
    the object."""

    def __init__(self, handle: Handle, cache: NodeDeviceCache) -> None:
        self._handle, self._cache = handle, cache
        self._noted: dict[str, tuple[str, ...]] = {}
        self._events: EventRecorder | None = None
        handle.informer(NODES).on_change(self._node_changed)
        handle.informer(DEVICES).on_change(self._device_changed)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self._cache.remove_node(name_of(old))
            return
        if old is not None and labels_of(old) == labels_of(new):
            return
        try:
            self._cache.set_node(new)
        except BadDeviceError as bad:
            self._warn(new, "UnreadableLabel", str(bad), kind=NODES.kind)

    def _device_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self._cache.remove_device(name_of(old))
            return
        try:
            self._cache.set_device(new)
        except BadDeviceError as bad:
            record(self._handle.context.log, "device-unreadable", node=name_of(new), error=str(bad))
            self._warn(new, "UnreadableDevice", str(bad))
            return
        for each in self._cache.unknown.get(name_of(new), ()):
            if old is None or each not in self._noted.get(name_of(new), ()):
                note = f"{each} is held on node {name_of(new)} and not listed: it counts as soon as it is"
                self._warn(new, "UnknownDevice", note)
        self._noted[name_of(new)] = self._cache.unknown.get(name_of(new), ())

    def _warn(self, about: Object, reason: str, message: str, *, kind: str = DEVICES.kind) -> None:
        if self._events is None:
            self._events = EventRecorder(self._handle.context, self._handle.scheduler_name)
            self._handle.spawn(self._events.run())
        self._events.event(reference(about, kind=kind), "Warning", reason, message)
