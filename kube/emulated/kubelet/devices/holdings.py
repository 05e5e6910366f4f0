"""Which container holds which devices, and what it was given with them (upstream pod_devices.go)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from mews.kube.deviceplugin.port import Allocation, ContainerDevices, PluginDevice
from mews.kube.emulated.kubelet.devices.order import union, without

NO_NUMA = -1


class Holding(Struct, frozen=True):
    """Devices of one resource held by one container: IDs per NUMA node (-1 without topology)."""

    pod_uid: str
    container: str
    resource: str
    by_numa: Mapping[int, tuple[str, ...]]
    allocation: Allocation

    @property
    def ids(self) -> tuple[str, ...]:
        """All device IDs; a device of two NUMA nodes counts once."""
        return union(*self.by_numa.values())

    def devices(self) -> tuple[ContainerDevices, ...]:
        """Return them as podresources shows them: one entry per device."""
        nodes: dict[str, tuple[int, ...]] = {}
        for node, ids in self.by_numa.items():
            for device in ids if node != NO_NUMA else ():
                nodes[device] = (*nodes.get(device, ()), node)
        return tuple(ContainerDevices(self.resource, (device,), nodes.get(device, ())) for device in self.ids)


def per_numa(ids: Iterable[str], known: Mapping[str, PluginDevice]) -> dict[int, tuple[str, ...]]:
    """Return the IDs by the NUMA nodes that the plugin's last list names for them."""
    grouped: dict[int, list[str]] = {}
    for device in ids:
        nodes = known[device].numa_nodes if device in known else ()
        for node in nodes or (NO_NUMA,):
            grouped.setdefault(node, []).append(device)
    return {node: tuple(found) for node, found in grouped.items()}


class Holdings:
    """The table of holdings; only the device manager writes it."""

    def __init__(self, entries: Iterable[Holding] = ()) -> None:
        self._table: dict[str, dict[tuple[str, str], Holding]] = {}
        self.version = 0
        """Counts the changes."""
        for entry in entries:
            self.put(entry)

    def put(self, holding: Holding) -> None:
        """Add or replace one container's devices of one resource."""
        self._table.setdefault(holding.pod_uid, {})[holding.container, holding.resource] = holding
        self.version += 1

    def forget(self, pod_uids: Iterable[str]) -> None:
        """Drop all that these pods hold."""
        for uid in pod_uids:
            self._table.pop(uid, None)
        self.version += 1

    def pods(self) -> tuple[str, ...]:
        """UIDs of pods that hold anything."""
        return tuple(self._table)

    def entries(self) -> tuple[Holding, ...]:
        """Return everything, in the order it was given out."""
        return tuple(holding for held in self._table.values() for holding in held.values())

    def of_container(self, pod_uid: str, container: str) -> tuple[Holding, ...]:
        """Return one container's devices over all resources."""
        return tuple(h for (name, _), h in self._table.get(pod_uid, {}).items() if name == container)

    def of_resource(self, pod_uid: str, container: str, resource: str) -> Holding | None:
        """Return one container's devices of one resource."""
        return self._table.get(pod_uid, {}).get((container, resource))

    def allocated(self) -> dict[str, tuple[str, ...]]:
        """Device IDs given to anyone, by resource."""
        found: dict[str, tuple[str, ...]] = {}
        for holding in self.entries():
            found[holding.resource] = union(found.get(holding.resource, ()), holding.ids)
        return found


def left_for_reuse(reusable: Mapping[str, tuple[str, ...]], held: Iterable[Holding]) -> dict[str, tuple[str, ...]]:
    """Return them after an init container: its devices serve later containers too."""
    left = dict(reusable)
    for holding in held:
        left[holding.resource] = union(left.get(holding.resource, ()), holding.ids)
    return left


def kept_from_reuse(reusable: Mapping[str, tuple[str, ...]], held: Iterable[Holding]) -> dict[str, tuple[str, ...]]:
    """Return them after a sidecar or main container: it keeps its own."""
    left = dict(reusable)
    for holding in held:
        left[holding.resource] = without(left.get(holding.resource, ()), holding.ids)
    return left
