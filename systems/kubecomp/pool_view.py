"""The pools as the scheduler sees them: from the API objects of Reconfig-Mgr and DevMgr, never from a chassis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mews.kube.api.objects import Object, name_of
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.systems.kubecomp import policy, published
from mews.systems.kubecomp.config import Topology
from mews.systems.kubecomp.records import (
    POOL_PREFIX,
    node_of_report,
    node_of_requests,
    pool_state,
    report_without_heartbeat,
    withdraw_requests,
)


class PoolView:
    """Fed with the ConfigMaps of KubeComp's namespace; answers in O(1) a node and O(nodes) a pool.

    ``advertised``: it looks at the nodes' statuses alone (``KubeCompFault.ADVERTISED_IS_ALL``).
    """

    def __init__(self, topology: Topology, resource: str, *, advertised: bool = False) -> None:
        self._advertised = advertised
        self._topology = topology
        self._resource = resource
        self._sizes: dict[str, int] = {}
        self._attached: dict[str, Counter[str]] = {}
        self._announced: dict[str, frozenset[str]] = {}
        self._withdrawing: dict[str, frozenset[str]] = {}

    def on_change(self, old: Object | None, new: Object | None) -> None:
        """A ConfigMap changed."""
        obj = new or old or {}
        if (node := node_of_report(obj)) is not None:
            report = report_without_heartbeat(new)
            self._announced.pop(node, None)
            if report is not None:
                self._announced[node] = frozenset(report.announced)
        elif (node := node_of_requests(obj)) is not None:
            self._withdrawing[node] = frozenset(withdraw_requests(new))
        elif name_of(obj).startswith(POOL_PREFIX):
            self._on_pool_change(name_of(obj).removeprefix(POOL_PREFIX), new)

    def _on_pool_change(self, pool: str, new: Object | None) -> None:
        state = pool_state(new)
        self._sizes.pop(pool, None)
        if state is not None:
            self._sizes[pool] = len(state.devices)
            self._attached[pool] = Counter(device.node for device in state.devices)

    def size(self, pool: str, nodes: Mapping[str, NodeInfo]) -> int:
        """Return all devices of a pool; before Reconfig-Mgr has published them, those that its nodes show."""
        if pool in self._sizes and not self._advertised:
            return self._sizes[pool]
        members = (nodes.get(node.name) for node in self._topology.nodes_of(pool))
        return published.pool_size(info.allocatable.get(self._resource, 0) for info in members if info is not None)

    def free(self, pool: str, nodes: Mapping[str, NodeInfo], *, besides: str = "") -> int:
        """Return the pool's devices less all requests of bound or assumed pods on its nodes, but for the pod
        ``besides``."""
        requests = []
        for member in self._topology.nodes_of(pool):
            info = nodes.get(member.name)
            if info is not None:
                requests.append(info.requested.get(self._resource, 0))
                own = info.pods.get(besides)
                requests.append(-own.request(self._resource) if own else 0)
        return policy.pool_free(self.size(pool, nodes), requests)

    def requested(self, info: NodeInfo, *, besides: str = "") -> int:
        """Return what bound and assumed pods of the node ask for, but for the pod ``besides``."""
        own = info.pods.get(besides)
        return info.requested.get(self._resource, 0) - (own.request(self._resource) if own else 0)

    def available(self, info: NodeInfo, *, besides: str = "", requested: int | None = None) -> int:
        """Return what the node has left for a pod (``besides`` is its uid); may be negative. ``requested``: what others
        ask for, as it was once, instead of what they ask for now.

        Never more than its DevMgr announces less what it is asked for: its status shows that only a tick later.
        """
        allocatable = policy.effective_allocatable(
            info.allocatable.get(self._resource, 0),
            None if self._advertised else self._announced.get(info.name),
            self._withdrawing.get(info.name, frozenset()),
        )
        others = self.requested(info, besides=besides) if requested is None else requested
        return policy.available(allocatable, [others])

    def attached(self, node: str) -> int:
        """Return how many devices Reconfig-Mgr last saw on the node's ports."""
        pool = self._topology.pool_of(node)
        return self._attached.get(pool, Counter())[node] if pool else 0
