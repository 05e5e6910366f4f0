"""Marks nodes whose kubelet is silent, and taints nodes as their conditions say (contract kubelet.md section 11)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, condition_of, name_of, namespace_of, node_name_of, timestamp, uid_of
from mews.kube.api.resources import LEASES, NODES, PODS
from mews.kube.client.informer import Informer
from mews.kube.client.port import Patch
from mews.kube.clock import Pace, rest
from mews.kube.component import Context
from mews.kube.emulated.controllers.taints import Taint, taints_of, with_no_execute, with_no_schedule
from mews.kube.events import EventRecorder, pod_reference

PERIOD_S = 5.0
"""Every node is looked at once in that time."""
GRACE_S = 50.0
"""A node whose lease is not renewed for that long is Unknown."""
NO_EXECUTE_AFTER_S = 0.1
TAINT_SPAN_S = (0.008, 0.076)
_DRIFT_S = 0.001
"""Ten rounds of a real controller take a little more than ten periods, so the tenth is past the grace."""
_RETRY_S = 1.0
_LEASES = "kube-node-lease"


class NodeLifecycle:
    """Component: one for a cluster. ``events`` records as ``node-controller``."""

    def __init__(self, context: Context, pace: Pace, *, nodes: Informer, pods: Informer, events: EventRecorder) -> None:
        self._context = context
        self._pace = pace
        self._nodes = nodes
        self._pods = pods
        self._events = events
        self._signs: dict[str, object] = {}
        self._seen_at: dict[str, float] = {}
        self._registered: set[str] = set()
        self._execute: dict[str, None] = {}
        self._taint: dict[str, None] = {}
        self._tainting = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        await self._nodes.synced()
        await self._pods.synced()
        self._nodes.on_change(self._node_changed)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._taint_loop())
            tasks.create_task(self._monitor_loop())

    # NoSchedule: as soon as the node is seen.

    def _node_changed(self, old: Object | None, node: Object | None) -> None:
        if node is None:
            if old is not None:
                self._seen_at.pop(name_of(old), None)
                self._registered.discard(name_of(old))
            return
        name, now_s = name_of(node), asyncio.get_running_loop().time()
        if name not in self._registered:
            self._registered.add(name)
            text = f"Node {name} event: Registered Node {name} in Controller"
            self._events.event(_node_reference(node), "Normal", "RegisteredNode", text)
        if _heartbeat(old) != _heartbeat(node):
            self._seen_at[name] = now_s
        if with_no_execute(node, 0.0) != taints_of(node):
            self._execute[name] = None
        if with_no_schedule(node, 0.0) != taints_of(node):
            self._taint[name] = None
            self._tainting.set()

    async def _taint_loop(self) -> None:
        while True:
            await self._tainting.wait()
            self._tainting.clear()
            await asyncio.sleep(self._pace.loop_s(self._context.rng.uniform(*TAINT_SPAN_S)))
            names, self._taint = list(self._taint), {}
            for name in names:
                if not await self._retaint(name, with_no_schedule):
                    self._taint[name] = None
            if self._taint:
                await rest(self._pace.loop_s(_RETRY_S))
                self._tainting.set()

    async def _retaint(self, name: str, wanted: Callable[[Object, float], list[Taint]]) -> bool:
        try:
            node = await self._context.kube.get(NODES, name)
            taints = wanted(node, self._context.clock.now())
            if taints != taints_of(node):
                change = {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}}
                await self._context.kube.patch(NODES, name, {**change, "spec": {"taints": taints or None}})
        except NotFoundError:
            return True
        except (ApiError, UnavailableError) as error:
            self._context.log.info("node %s is not tainted yet: %s", name, error)
            return False
        return True

    # Health: every five seconds.

    async def _monitor_loop(self) -> None:
        while True:
            try:
                await self._look()
            except (ApiError, UnavailableError) as error:
                self._context.log.info("nodes are not looked at: %s", error)
            await rest(self._pace.loop_s(PERIOD_S))

    async def _look(self) -> None:
        found = await self._context.kube.list(LEASES, namespace=_LEASES)
        now_s = asyncio.get_running_loop().time()
        for lease in found.items:
            self._see(name_of(lease), (lease.get("spec") or {}).get("renewTime"), now_s)
        names, self._execute = list(self._execute), {}
        for name in names:
            if not await self._retaint(name, with_no_execute):
                self._execute[name] = None
        limit_s = now_s - self._pace.loop_s(GRACE_S) + _DRIFT_S
        for name in [name for name, seen_s in self._seen_at.items() if seen_s < limit_s]:
            node = self._nodes.get(name)
            if node is not None and (condition_of(node, "Ready") or {}).get("status") != "Unknown":
                await self._mark_unknown(node)

    def _see(self, name: str, sign: object, now_s: float) -> None:
        if self._signs.get(name) != sign:
            self._signs[name] = sign
            if name in self._seen_at:
                self._seen_at[name] = now_s

    async def _mark_unknown(self, node: Object) -> None:
        name = name_of(node)
        conditions = _unknown((node.get("status") or {}).get("conditions") or (), self._context.clock.now())
        change = {"status": {"conditions": conditions}}
        await self._context.kube.patch(NODES, name, change, kind=Patch.MERGE, subresource="status")
        text = f"Node {name} status is now: NodeNotReady"
        self._events.event(_node_reference(node), "Normal", "NodeNotReady", text)
        await asyncio.sleep(self._pace.loop_s(NO_EXECUTE_AFTER_S))
        await self._retaint(name, with_no_execute)
        for pod in list(self._pods.items()):
            if node_name_of(pod) == name and (condition_of(pod, "Ready") or {}).get("status") == "True":
                await self._mark_pod(pod)

    async def _mark_pod(self, pod: Object) -> None:
        conditions = [
            _not_ready(entry, self._context.clock.now()) if entry["type"] == "Ready" else entry
            for entry in pod["status"]["conditions"]
        ]
        try:
            await self._context.kube.patch(
                PODS, name_of(pod), {"status": {"conditions": conditions}}, kind=Patch.MERGE,
                namespace=namespace_of(pod), subresource="status",
            )  # fmt: skip
        except NotFoundError:
            return
        self._events.event(pod_reference(pod), "Warning", "NodeNotReady", "Node is not ready")


def _unknown(conditions: Any, now: float) -> list[dict[str, Any]]:
    text = "Kubelet stopped posting node status."
    changes = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": text}
    return [
        {**entry, **changes, "lastTransitionTime": timestamp(now)} if entry["status"] != "Unknown" else entry
        for entry in conditions
    ]


def _not_ready(entry: Mapping[str, Any], now: float) -> dict[str, Any]:
    kept = {key: value for key, value in entry.items() if key not in ("reason", "message")}
    return {**kept, "status": "False", "lastTransitionTime": timestamp(now)}


def _heartbeat(node: Object | None) -> object:
    return (condition_of(node or {}, "Ready") or {}).get("lastHeartbeatTime", "")


def _node_reference(node: Object) -> dict[str, Any]:
    return {"kind": "Node", "name": name_of(node), "uid": uid_of(node), "apiVersion": "v1"}
