"""One pool as the chassis and the API show it together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from mews.systems.kubecomp import policy, rules
from mews.systems.kubecomp.config import Timing, Topology
from mews.systems.kubecomp.policy import Gpu, NodeHoldings
from mews.systems.kubecomp.reader import ChassisReader
from mews.systems.kubecomp.records import NodeReport, PoolDevice, PoolState
from mews.systems.kubecomp.view import ClusterView, PodShortOfDevices


class PoolTable:
    """Questions over the last readings; O(devices) + O(nodes of the pool) each."""

    def __init__(self, pool: str, topology: Topology, reader: ChassisReader, view: ClusterView) -> None:
        self.pool = pool
        self.chassis: tuple[str, ...] = tuple(chassis.name for chassis in topology.chassis_of(pool))
        self.nodes: tuple[str, ...] = tuple(node.name for node in topology.nodes_of(pool))
        self._topology = topology
        self._reader = reader
        self._view = view
        self._broken: dict[str, set[str]] = {}
        """Node -> devices on its ports that it has called unhealthy."""

    @property
    def is_known(self) -> bool:
        """Whether every chassis of the pool has been read at least once."""
        return all(self._reader.belief(name).seen for name in self.chassis)

    def devices(self) -> dict[str, PoolDevice]:
        """GPUID -> device, for all devices believed to be in the pool."""
        found = {}
        for name in self.chassis:
            chassis = self._topology.chassis(name)
            for entry in self._reader.belief(name).devices.values():
                gpuid = chassis.gpuid(entry.device)
                node = self._topology.node_on(name, entry.port)
                found[gpuid] = PoolDevice(gpuid, name, entry.device, entry.uuid, entry.port, node)
        return dict(sorted(found.items()))

    def attached(self, node: str) -> int:
        """Return how many usable devices are on the node's ports, or are there by what its host shows. One that the
        node has called unhealthy counts no more until the node announces it as healthy or it has left the node: a table
        that is not certain yet shows it still."""
        cabled, report = self._topology.node(node), self._view.report(node)
        here: set[str] = set()
        for name, port in cabled.ports.items() if cabled else ():
            chassis = self._topology.chassis(name)
            entries = self._reader.belief(name).devices.values()
            here.update(chassis.gpuid(entry.device) for entry in entries if entry.port == port)
        broken = here & {*self._broken.get(node, ()), *report.unhealthy} - set(report.announced)
        self._broken[node] = broken
        return len((here | set(report.strays)) - broken)

    def candidates(
        self,
        pod: PodShortOfDevices,
        *,
        excluded: Collection[str],
        now_s: float,
        timing: Timing,
        believed: NodeHoldings | None = None,
    ) -> tuple[Gpu, ...]:
        """Return the devices that may be moved for the pod; only ones that the last readings showed.

        ``believed`` takes the place of what the nodes report, and of what their pods still need.
        """
        reports, users, shown = {node: self._view.report(node) for node in self.nodes}, self.users(), self._shown()
        target = self._topology.node(pod.node)
        cabled = target.ports if target is not None else {}
        divided = {gpuid for each in reports.values() for gpuid in each.divided}
        return policy.candidates(
            [
                Gpu(each.gpuid, each.node, each.port, each.uuid, users.get(each.gpuid, 0), each.gpuid in divided)
                for each in shown
            ],
            pod.node,
            holdings={node: believed or _holdings(report, now_s, timing) for node, report in reports.items()},
            claims={} if believed else {node: list(self._view.claims(node)) for node in self.nodes},
            excluded={
                *excluded,
                *_elsewhere(shown, reports),
                *(g for each in reports.values() for g in each.unhealthy if g not in divided),
            },
            out_of_reach={device.gpuid for device in shown if device.chassis not in cabled},
        )

    def users(self) -> Mapping[str, int]:
        """GPUID -> how many pods use parts of it, of those that any uses."""
        return {gpuid: count for node in self.nodes for gpuid, count in self._view.report(node).lent.items()}

    def spares(self, gpuid: str, pod: PodShortOfDevices, *, now_s: float, timing: Timing) -> bool:
        """Return whether a device that was chosen for the pod would be again: its node may have become another
        pod's."""
        return any(gpu.gpuid == gpuid for gpu in self.candidates(pod, excluded=(), now_s=now_s, timing=timing))

    def _shown(self) -> list[PoolDevice]:
        return [found for found in self.devices().values() if not self._reader.lacked(found.chassis, found.device)]

    def state(self) -> PoolState:
        """Return the pool as it is published: free = all devices less all requests on the pool's nodes."""
        devices = tuple(self.devices().values())
        return PoolState(devices, policy.pool_free(len(devices), self._requests(self.nodes)), self.nodes)

    def _requests(self, nodes: Iterable[str]) -> Iterable[int]:
        return (claim.req for node in nodes for claim in self._view.claims(node))


def _holdings(report: NodeReport, now_s: float, timing: Timing) -> NodeHoldings:
    held = {gpuid: pod for gpuid, pod in report.held.items() if rules.in_use(report, gpuid, now_s=now_s, timing=timing)}
    return NodeHoldings(held, fresh=not rules.in_use(report, "", now_s=now_s, timing=timing))


def _elsewhere(shown: Iterable[PoolDevice], reports: Mapping[str, NodeReport]) -> set[str]:
    """Return what a host shows, or a node announces, that the last readings show somewhere else: these are old, or the
    report is. Where both nodes have it, the one that the readings name is believed."""
    at: dict[str, set[str]] = {}
    for node, report in reports.items():
        for gpuid in (*report.announced, *report.strays):
            at.setdefault(gpuid, set()).add(node)
    return {device.gpuid for device in shown if device.node not in at.get(device.gpuid, {device.node})}
