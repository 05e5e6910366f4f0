"""What Reconfig-Mgr knows from the API, kept current by informers: claims on nodes, waiting pods, nodes' reports."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.api.objects import (
    Object,
    annotations_of,
    is_deleting,
    is_terminal,
    key_of,
    node_name_of,
    phase_of,
    uid_of,
)
from mews.kube.api.resources import CONFIGMAPS, EVENTS, PODS
from mews.kube.client.informer import Informer
from mews.kube.client.port import KubeApi
from mews.systems.kubecomp import policy, published
from mews.systems.kubecomp.config import KubeCompConfig, Topology
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.policy import Claim
from mews.systems.kubecomp.records import DST_NODE, EVENT_REASON, USE_FALCON, NodeReport, node_of_report, node_report

_NO_REPORT = NodeReport()


class PodShortOfDevices(Struct, frozen=True):
    """A pod that the scheduler holds at Permit for a node that is short of devices. Ordered by ``order``."""

    key: str
    uid: str
    node: str
    req: int
    order: tuple[int, str, str]
    stale_demand: int | None = None
    """What an event asks for by the pod's annotations, believed as they are (``KubeCompFault.STALE_DEMAND``)."""

    @property
    def claim(self) -> Claim:
        """What it asks of that node."""
        return Claim(self.key, self.node, self.req, bound=False)


class ClusterView:
    """O(1) a change, O(pods of a node) a question. ``on_change(pool, news)`` hears what touches a pool.

    ``news`` is False for what only repeats or answers Reconfig-Mgr itself (consents, announcements): enough to look
    again, no reason to forget a backoff.
    """

    def __init__(
        self, kube: KubeApi, config: KubeCompConfig, topology: Topology, on_change: Callable[[str, bool], None]
    ) -> None:
        self._config = config
        self._topology = topology
        self._notify = on_change
        self._first_alone = config.has(KubeCompFault.FIRST_CONTAINER)
        self._believes_events = config.has(KubeCompFault.STALE_DEMAND)
        self._events: dict[str, deque[PodShortOfDevices]] = {pool: deque() for pool in topology.pools}
        self._running: dict[str, bool] = {}
        self._claims: dict[str, dict[str, Claim]] = {}
        self._waiting: dict[str, dict[str, PodShortOfDevices]] = {pool: {} for pool in topology.pools}
        self._reports: dict[str, NodeReport] = {}
        self._informers = (
            Informer(kube, PODS),
            Informer(kube, CONFIGMAPS, namespace=config.namespace),
            Informer(kube, EVENTS, field_selector=f"reason={EVENT_REASON}"),
        )
        for informer, handler in zip(self._informers, (self._on_pod, self._on_config_map, self._on_event), strict=True):
            informer.on_change(handler)

    async def run(self) -> None:
        """Keep current until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())

    async def synced(self) -> None:
        """Wait for the first lists."""
        for informer in self._informers:
            await informer.synced()

    # Questions

    def claims(self, node: str) -> Iterable[Claim]:
        """Return all live pods bound to the node or awaited there that ask for devices."""
        return self._claims.get(node, {}).values()

    def waiting(self, pool: str) -> list[PodShortOfDevices]:
        """Return the pool's waiting pods in the order they are served: by priority, then creation."""
        return sorted(self._waiting[pool].values(), key=lambda pod: pod.order)

    def still_waiting(self, pod: PodShortOfDevices) -> bool:
        """Return whether that very pod still waits for that very node."""
        pool = self._topology.pool_of(pod.node)
        now = self._waiting[pool].get(pod.key) if pool else None
        return now is not None and (now.uid, now.node) == (pod.uid, pod.node)

    def running(self, nodes: Iterable[str]) -> dict[str, bool]:
        """Pods bound to these nodes that ask for devices -> whether they run."""
        keys = sorted(claim.pod for node in nodes for claim in self.claims(node) if claim.bound)
        return {key: self._running.get(key, False) for key in keys}

    def next_event(self, pool: str) -> PodShortOfDevices | None:
        """Return the next Reconfig event that was not served yet, with what its pod's annotations say by now."""
        while self._events[pool]:
            if (event := self.as_annotated(self._events[pool].popleft(), pool)) is not None:
                return event
        return None

    def as_annotated(self, event: PodShortOfDevices, pool: str) -> PodShortOfDevices | None:
        """Return an event with what its pod's annotations say by now; None where they ask for nothing of the pool."""
        namespace, _, name = event.key.partition("/")
        pod = self._informers[0].get(name, namespace)
        node, demand = published.annotated_demand(pod) if pod is not None else ("", 0)
        if node and demand and self._topology.pool_of(node) == pool:
            return replace(event, node=node, stale_demand=demand)
        return None

    def report(self, node: str) -> NodeReport:
        """Return the node's last report; an empty, stale one when it made none."""
        return self._reports.get(node, _NO_REPORT)

    # Changes

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        before = self._forget(old) if old is not None else None
        after = self._learn(new) if new is not None else None
        if before == after:
            return
        for node in sorted({claim.node for claim in (before, after) if claim is not None}):
            self._changed(node, news=True)

    def _forget(self, pod: Object) -> Claim | None:
        key, node = key_of(pod), node_name_of(pod) or annotations_of(pod).get(DST_NODE, "")
        self._running.pop(key, None)
        pool = self._topology.pool_of(node)
        if pool is not None:
            self._waiting[pool].pop(key, None)
        return self._claims.get(node, {}).pop(key, None)

    def _learn(self, pod: Object) -> Claim | None:
        required = published.required if self._first_alone else policy.required
        req = required(pod, self._config.resource)
        if not req or is_terminal(pod):
            return None
        key, node = key_of(pod), node_name_of(pod)
        if node:
            self._running[key] = phase_of(pod) == "Running"
            return self._put(Claim(key, node, req, bound=True))
        annotations = annotations_of(pod)
        target = annotations.get(DST_NODE, "")
        pool = self._topology.pool_of(target)
        if pool is None or annotations.get(USE_FALCON) != "true" or is_deleting(pod):
            return None
        spec, created = pod.get("spec", {}), pod.get("metadata", {}).get("creationTimestamp", "")
        waiting = PodShortOfDevices(key, uid_of(pod), target, req, (-int(spec.get("priority") or 0), created, key))
        self._waiting[pool][key] = waiting
        return self._put(waiting.claim)

    def _put(self, claim: Claim) -> Claim:
        self._claims.setdefault(claim.node, {})[claim.pod] = claim
        return claim

    def _on_config_map(self, old: Object | None, new: Object | None) -> None:
        node = node_of_report(new or old or {})
        if node is None:
            return
        report = node_report(new)
        before = self._reports.pop(node, _NO_REPORT)
        if report is not None:
            self._reports[node] = report
        now = report or _NO_REPORT
        was_stale = not before.is_fresh(now.heartbeat_s, self._config.timing.report_stale_s)
        if was_stale or not now.repeats(before):
            self._changed(node, news=was_stale or (now.held, now.lent) != (before.held, before.lent))

    def _on_event(self, old: Object | None, new: Object | None) -> None:
        involved = (new or {}).get("involvedObject") or {}
        key = f"{involved.get('namespace', '')}/{involved.get('name', '')}"
        if self._believes_events and new is not None:
            for pool, events in self._events.items():
                events.append(PodShortOfDevices(key, str(involved.get("uid", "")), "", 0, (0, "", key)))
                self._notify(pool, True)
            return
        for pool, waiting in self._waiting.items():
            if key in waiting:
                self._notify(pool, False)

    def _changed(self, node: str, *, news: bool) -> None:
        pool = self._topology.pool_of(node)
        if pool is not None:
            self._notify(pool, news)
