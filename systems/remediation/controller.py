"""One for the cluster: cordons the nodes of broken GPUs, sends their pods away, permits resets, and uncordons.

Everything that it must know again stands on nodes and pods. A node is marked and cordoned in one write, before any pod
is sent away; a pod is marked before it is evicted, and looked at afresh, so that none is evicted that already ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from mews.kube.api.errors import ApiError, ConflictError, NotFoundError, TooManyRequestsError, UnavailableError
from mews.kube.api.objects import (
    Object,
    annotations_of,
    is_deleting,
    is_terminal,
    key_of,
    name_of,
    namespace_of,
    uid_of,
)
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.informer import Informer
from mews.kube.client.port import DeleteOptions, Preconditions
from mews.kube.component import Context, record
from mews.kube.events import EventRecorder, node_reference
from mews.kube.pulse import Pulse
from mews.systems.remediation import policy
from mews.systems.remediation.config import ALLOW_COMPLETION, DELETE_AFTER_TIMEOUT, RemediationConfig
from mews.systems.remediation.names import EVICTED_FOR, GPUS, WORK
from mews.systems.remediation.policy import NodeStep
from mews.systems.remediation.records import (
    Cordon,
    Incident,
    NodeGpus,
    NodeWork,
    incident_key,
    node_gpus,
    node_work,
    work_annotation,
)

CORDONED, UNCORDONED, HELD = "NodeCordoned", "NodeUncordoned", "RemediationHeld"
"""Reasons of events about nodes."""


class RemediationController:
    """One incarnation."""

    def __init__(self, context: Context, config: RemediationConfig) -> None:
        self._context = context
        self._config = config
        self._nodes = Informer(context.kube, NODES)
        self._pods = Informer(context.kube, PODS)
        self._events = EventRecorder(context, "remediation-controller")
        self._wake = Pulse()
        self._nodes.on_change(self._node_changed)
        self._pods.on_change(self._pod_changed)
        self._held: set[str] = set()
        self._written: dict[str, NodeWork | None] = {}

    async def run(self) -> None:
        """Work on nodes, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._nodes.run())
            group.create_task(self._pods.run())
            await self._nodes.synced()
            await self._pods.synced()
            group.create_task(self._events.run())
            while True:
                busy = await self._round()
                await self._wake.wait(self._config.poll_s if busy else None)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            self._written.pop(name_of(old), None)
        before, after = (annotations_of(node) if node else {} for node in (old, new))
        cordons = [(node or {}).get("spec", {}).get("unschedulable") for node in (old, new)]
        if before.get(GPUS) != after.get(GPUS) or before.get(WORK) != after.get(WORK) or cordons[0] != cordons[1]:
            self._wake.beat()

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None or is_terminal(new):
            self._wake.beat()

    async def _round(self) -> bool:
        """Look at every node once; whether any is worked on, or waits to be."""
        busy = False
        for node in sorted(self._nodes.items(), key=name_of):
            gpus = node_gpus(node)
            if not gpus.open and self._work(node) is None:
                continue
            busy = True
            try:
                await self._tend(node, gpus)
            except NotFoundError:
                continue  # The node went.
            except (ApiError, UnavailableError) as error:
                record(self._context.log, "not-tended", node=name_of(node), error=str(error))
        return busy

    def _work(self, node: Object) -> NodeWork | None:
        """Return what is worked on there: as was written last, until the watch shows it."""
        name, shown = name_of(node), node_work(node)
        if name in self._written and self._written[name] == shown:
            del self._written[name]
        return self._written.get(name, shown)

    async def _tend(self, node: Object, gpus: NodeGpus) -> None:
        name, before = name_of(node), self._work(node)
        pods = [pod for pod in self._pods.items() if pod["spec"].get("nodeName") == name]
        leaving = {uuid: policy.to_go(self._config, each, pods) for uuid, each in gpus.open.items()}
        step = policy.next_step(
            self._config,
            gpus,
            before,
            unschedulable=self._is_unschedulable(node),
            gone=[uuid for uuid, left in leaving.items() if not left],
            may_begin=self._worked_on() < self._config.nodes_at_a_time(len(list(self._nodes.items()))),
        )
        if step.held:
            self._hold(name)
            return
        self._held.discard(name)
        is_news = step.work != before or step.unschedulable is not None
        if is_news and not await self._write(node, step):
            return
        for uuid, left in leaving.items() if step.work is not None else ():
            await self._send_away(uuid, gpus.open[uuid], left)

    def _is_unschedulable(self, node: Object) -> bool:
        """Return it as the watch shows it, or as was written and the watch does not show yet."""
        written = self._written.get(name_of(node))
        if written is not None:
            return written.cordon in (Cordon.OURS, Cordon.FOREIGN)
        return bool(node["spec"].get("unschedulable"))

    def _worked_on(self) -> int:
        return sum(self._work(node) is not None for node in self._nodes.items())

    def _hold(self, name: str) -> None:
        if name in self._held:
            return
        self._held.add(name)
        text = f"{self._worked_on()} nodes are worked on, as many as share: {self._config.share:g} permits"
        self._events.event(node_reference(name), "Warning", HELD, f"GPU is broken, and the node is left alone: {text}")
        record(self._context.log, "held", node=name)

    async def _write(self, node: Object, step: NodeStep) -> bool:
        """Mark and cordon in one write; False where the node has changed since it was read."""
        name = name_of(node)
        metadata: dict[str, Any] = {"annotations": work_annotation(step.work)}
        if step.unschedulable is not None:
            metadata["resourceVersion"] = node["metadata"]["resourceVersion"]
        body: dict[str, Any] = {"metadata": metadata}
        if step.unschedulable is not None:
            body["spec"] = {"unschedulable": True if step.unschedulable else None}
        try:
            await self._context.kube.patch(NODES, name, body)
        except ConflictError:
            self._wake.beat()
            return False
        self._written[name] = step.work
        if step.unschedulable is True:
            self._events.event(node_reference(name), "Warning", CORDONED, "a GPU of the node is broken")
            record(self._context.log, "cordoned", node=name)
        elif step.unschedulable is False:
            self._events.event(node_reference(name), "Normal", UNCORDONED, "no GPU of the node has to be mended")
            record(self._context.log, "uncordoned", node=name)
        return True

    # Pods

    async def _send_away(self, uuid: str, incident: Incident, pods: Iterable[Object]) -> None:
        """Raises ApiError, UnavailableError."""
        now_s = self._context.clock.now()
        for pod in sorted(pods, key=key_of):
            mode = self._config.mode(namespace_of(pod))
            late = mode == DELETE_AFTER_TIMEOUT and now_s >= incident.since_s + self._config.delete_after_s
            if is_deleting(pod) or mode == ALLOW_COMPLETION or (mode == DELETE_AFTER_TIMEOUT and not late):
                continue
            try:
                await self._evict(pod, incident_key(uuid, incident.number), force=late)
            except NotFoundError:
                continue
            except (TooManyRequestsError, ConflictError) as refusal:
                record(self._context.log, "not-evicted", pod=key_of(pod), reason=str(refusal))

    async def _evict(self, pod: Object, incident: str, *, force: bool) -> None:
        kube, name, namespace, uid = self._context.kube, name_of(pod), namespace_of(pod), uid_of(pod)
        if annotations_of(pod).get(EVICTED_FOR) != incident:
            marked = {"metadata": {"uid": uid, "annotations": {EVICTED_FOR: incident}}}
            await kube.patch(PODS, name, marked, namespace=namespace)
        there = await kube.get(PODS, name, namespace=namespace)
        if uid_of(there) != uid or is_deleting(there):
            return
        options = DeleteOptions(0 if force else self._config.grace_s, Preconditions(uid=uid))
        if force:
            await kube.delete(PODS, name, namespace=namespace, options=options)
        else:
            await kube.evict(namespace, name, options=options)
        record(self._context.log, "deleted" if force else "evicted", pod=key_of(pod), incident=incident)
