"""The scheduler's books of devices: Total, Free, Used and AllocateSet of each node (contract koordinator.md section 2).

Rebuilt from Device objects and the annotations of bound pods; what is reserved for pods on their way to a node comes on
top. A Device that is deleted, or a device that is unhealthy, takes nobody's use away. One writer: the plugin.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from mews.kube.api.objects import Object, annotations_of, is_terminal, key_of, labels_of, name_of, node_name_of, uid_of
from mews.systems.koordinator.allocations import allocations_of
from mews.systems.koordinator.devices import GpuPartition, NodeDeviceReport, parse, partition_policy, quantities
from mews.systems.koordinator.errors import InvalidRequestError
from mews.systems.koordinator.hints import Exclusive, hints_of
from mews.systems.koordinator.names import ALLOCATED, GPU, GPU_MODEL
from mews.systems.koordinator.partition_tables import table_of_model, with_node_table
from mews.systems.koordinator.usage import NodeUse, PodUse, found_uses

_BySlot = dict[str, dict[str, dict[str, str]]]
"""Type -> minor -> resource -> quantity."""


class NodeDeviceCache:
    """All nodes that have a Device object, or had one, or have pods with devices."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeUse] = {}
        self._where: dict[str, str] = {}
        self._annotated: set[str] = set()
        self._ended: set[str] = set()
        self._kinds: dict[str, str] = {}
        self._naming: dict[str, frozenset[str]] = {}
        self._tables: dict[str, tuple[tuple[GpuPartition, ...], bool]] = {}
        self._reported: dict[str, NodeDeviceReport] = {}
        self.unknown: dict[str, tuple[str, ...]] = {}
        """Node -> ids that its checkpoint names and its Device does not list."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """Resource -> type, of all devices but GPUs: so that a new kind needs no code."""
        return self._kinds

    @property
    def nodes(self) -> Mapping[str, NodeUse]:
        """By name."""
        return self._nodes

    def use(self, node: str) -> NodeUse | None:
        """Return what is used on a node; None for one that no Device was seen of."""
        found = self._nodes.get(node)
        return found if found is not None and found.report.devices else None

    def node_of(self, uid: str) -> str:
        """Return where a pod with devices is counted; "" for nowhere."""
        return self._where.get(uid, "")

    # Devices

    def set_device(self, device: Object) -> None:
        """A Device is there or has changed.

        Raises BadDeviceError; what was known before stays.
        """
        self._report(parse(device))

    def remove_device(self, node: str) -> None:
        """A Device is gone: nothing can be given there, and what is given stays."""
        if node in self._nodes:
            before = self._nodes[node].report
            self._report(NodeDeviceReport(node, held=before.held, found=before.found))

    def set_node(self, node: Object) -> None:
        """A Node's labels say which GPUs may be given together where its Device does not.

        Raises BadDeviceError; what was known before stays.
        """
        labels, name = labels_of(node), name_of(node)
        table = table_of_model(labels.get(GPU_MODEL, "")), partition_policy(node, f"Node {name}")
        if table != self._tables.get(name, ((), False)):
            self._tables[name] = table
            if name in self._reported:
                self._report(self._reported[name])

    def remove_node(self, node: str) -> None:
        """A Node is gone: of one of its name nothing is known."""
        self._tables.pop(node, None)

    def _report(self, report: NodeDeviceReport) -> None:
        self._reported[report.node] = report
        table, honour = self._tables.get(report.node, ((), False))
        report = with_node_table(report, table, honour=honour)
        before = self._nodes.get(report.node)
        self._nodes[report.node] = NodeUse.of(report) if before is None else before.reported(report)
        # Uids that entries name, of the nodes that have entries: few, or none, where pods come and go all the time.
        named = frozenset(entry.pod_uid for entry in (*report.held, *report.found))
        if named:
            self._naming[report.node] = named
        else:
            self._naming.pop(report.node, None)
        self._count_held(report.node)
        kinds = _kinds_of(report)
        if before is None or _kinds_of(before.report).keys() <= kinds.keys():
            self._kinds |= kinds
        else:
            self._kinds = {name: kind for use in self._nodes.values() for name, kind in _kinds_of(use.report).items()}

    def _count_held(self, node: str) -> None:
        use = self._nodes[node]
        named = self._naming.get(node, frozenset())
        held, unknown = found_uses(use.report, self._annotated & named, self._ended & named)
        for uid in [uid for uid in use.pods if uid.startswith("held:")]:
            use = use.minus(uid)
        for each in held:
            use = use.plus(each)
        self._nodes[node] = use
        if unknown:
            self.unknown[node] = tuple(unknown)
        else:
            self.unknown.pop(node, None)

    def held_by_others(self, report: NodeDeviceReport) -> list[PodUse]:
        """Return what a report says is held by pods that are not ours and have not ended."""
        return found_uses(report, self._annotated, self._ended)[0]

    def _count_held_of(self, uid: str) -> None:
        for node, named in self._naming.items():
            if uid in named:
                self._count_held(node)

    # Pods

    def set_pod(self, pod: Object) -> None:
        """A pod is bound, as the API says: its annotation counts, until it ends. One that is not bound has nothing,
        whatever its annotation says.

        Raises BadDeviceError; what was known of the pod before stays.
        """
        if is_terminal(pod):
            self.remove_pod(uid_of(pod))
            return
        node, uid = node_name_of(pod), uid_of(pod)
        if not node or ALLOCATED not in annotations_of(pod):
            return
        allocations = allocations_of(pod)
        try:
            exclusive = exclusive_of(annotations_of(pod))
        except InvalidRequestError:
            exclusive = {}  # it was placed by somebody who did not mind
        self._annotated.add(uid)
        self._put(node, PodUse(uid, key_of(pod), allocations, exclusive))
        self._count_held_of(uid)

    def remove_pod(self, uid: str) -> None:
        """A pod is gone or has finished: it holds nothing any more."""
        self.forget(uid)
        self._annotated.discard(uid)
        self._ended.add(uid)
        self._count_held_of(uid)
        named = frozenset().union(*self._naming.values())
        self._ended &= named

    def reserve(self, node: str, pod: PodUse) -> None:
        """Count devices for a pod that is on its way there."""
        self._put(node, pod)

    def unreserve(self, uid: str) -> None:
        """A pod does not get there after all; one that is bound by now keeps what it has."""
        if uid not in self._annotated:
            self.forget(uid)

    def forget(self, uid: str) -> None:
        """Give back what is counted for a pod."""
        node = self._where.pop(uid, "")
        if node:
            self._nodes[node] = self._nodes[node].minus(uid)

    def _put(self, node: str, pod: PodUse) -> None:
        if self._where.get(pod.uid, node) != node:
            self.forget(pod.uid)
        use = self._nodes.get(node) or NodeUse.of(NodeDeviceReport(node))
        self._nodes[node] = use if use.pods.get(pod.uid) == pod else use.plus(pod)
        self._where[pod.uid] = node

    # For people

    def summary(self, nodes: Collection[str] | None = None) -> dict[str, Any]:
        """Total, Free, Used and AllocateSet by node, type and minor, in the API's quantities."""
        chosen = sorted(self._nodes if nodes is None else nodes)
        return {node: _summary(self._nodes[node]) for node in chosen if node in self._nodes}


def _kinds_of(report: NodeDeviceReport) -> dict[str, str]:
    return {name: device.type for device in report.devices if device.type != GPU for name in device.resources}


def exclusive_of(annotations: Mapping[str, str]) -> dict[str, Exclusive]:
    """Return the types of which a pod wants its devices for itself.

    Raises InvalidRequestError.
    """
    return {kind: hint.exclusive for kind, hint in hints_of(annotations).by_type.items() if hint.exclusive}


def without(use: NodeUse, uids: Iterable[str]) -> NodeUse:
    """Return the same node without these pods."""
    for uid in uids:
        use = use.minus(uid)
    return use


def _summary(use: NodeUse) -> dict[str, Any]:
    total: _BySlot = {}
    free: _BySlot = {}
    used: _BySlot = {}
    for device in sorted(use.report.devices, key=lambda each: (each.type, each.minor)):
        minor = str(device.minor)
        offered = device.resources if device.health else dict.fromkeys(device.resources, 0)
        total.setdefault(device.type, {})[minor] = quantities(offered)
        free.setdefault(device.type, {})[minor] = quantities(use.free(device))
    for (kind, slot), amounts in sorted(use.used.items()):
        used.setdefault(kind, {})[str(slot)] = quantities(amounts)
    given: dict[str, dict[str, dict[str, Any]]] = {}
    for pod in sorted(use.pods.values(), key=lambda each: (each.key, each.uid)):
        for each in pod.allocations:
            kind, slot = use.slot_of(each)
            given.setdefault(kind, {}).setdefault(pod.key, {})[str(slot)] = quantities(each.resources)
    return {"deviceTotal": total, "deviceFree": free, "deviceUsed": used, "allocateSet": given}
