"""Deletes pods from nodes with a NoExecute taint once they have borne it long enough (kubelet.md section 11)."""

from __future__ import annotations

import asyncio
import math

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, is_terminal, key_of, name_of, namespace_of, node_name_of, uid_of
from mews.kube.api.resources import PODS
from mews.kube.client.informer import Informer
from mews.kube.client.port import DeleteOptions, Preconditions
from mews.kube.clock import Pace, rest
from mews.kube.component import Context
from mews.kube.emulated.controllers.disrupted_pods import mark_disrupted
from mews.kube.emulated.controllers.taints import Taint, bears_s, no_execute
from mews.kube.events import EventRecorder

SPAN_S = (0.005, 0.040)
"""Between the condition DisruptionTarget and the DELETE."""
_RETRY_S = 1.0


class TaintEviction:
    """Component: one for a cluster. ``events`` records as ``taint-eviction-controller``."""

    def __init__(self, context: Context, pace: Pace, *, nodes: Informer, pods: Informer, events: EventRecorder) -> None:
        self._context = context
        self._pace = pace
        self._nodes = nodes
        self._pods = pods
        self._events = events
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Run until cancelled."""
        await self._nodes.synced()
        await self._pods.synced()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                self._nodes.on_change(self._node_changed)
                self._pods.on_change(self._pod_changed)
                await asyncio.get_running_loop().create_future()
        finally:
            for timer in self._timers.values():
                timer.cancel()

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if no_execute(old) == no_execute(new):
            return
        node = new or old
        assert node is not None
        for pod in list(self._pods.items()):
            if node_name_of(pod) == name_of(node):
                self._judge(pod, no_execute(new))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self._spare(uid_of(old))
        elif is_terminal(new):
            self._spare(uid_of(new))
        elif old is None or node_name_of(old) != node_name_of(new):
            self._judge(new, no_execute(self._nodes.get(node_name_of(new))))

    def _judge(self, pod: Object, taints: list[Taint]) -> None:
        uid = uid_of(pod)
        if not taints or is_terminal(pod):
            self._spare(uid)
            return
        limit_s = bears_s(pod, taints)
        if math.isinf(limit_s) or uid in self._timers:
            return
        self._timers[uid] = asyncio.get_running_loop().call_later(self._pace.loop_s(limit_s), self._evict, pod)

    def _spare(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()

    def _evict(self, pod: Object) -> None:
        assert self._tasks is not None
        self._timers.pop(uid_of(pod), None)
        self._tasks.create_task(self._delete(pod))

    async def _delete(self, pod: Object) -> None:
        involved = {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "apiVersion": "v1"}
        self._events.event(involved, "Normal", "TaintManagerEviction", f"Marking for deletion Pod {key_of(pod)}")
        while True:
            try:
                await self._mark(pod)
                await asyncio.sleep(self._pace.loop_s(self._context.rng.uniform(*SPAN_S)))
                options = DeleteOptions(preconditions=Preconditions(uid=uid_of(pod)))
                await self._context.kube.delete(PODS, name_of(pod), namespace=namespace_of(pod), options=options)
                return
            except ApiError as error:
                self._context.log.info("pod %s is not evicted: %s", key_of(pod), error)
                return
            except UnavailableError:
                await rest(_RETRY_S)

    async def _mark(self, pod: Object) -> None:
        kube, name, namespace = self._context.kube, name_of(pod), namespace_of(pod)
        current = await kube.get(PODS, name, namespace=namespace)
        if uid_of(current) != uid_of(pod):
            return
        await mark_disrupted(
            self._context,
            current,
            reason="DeletionByTaintManager",
            message="Taint manager: deleting due to NoExecute taint",
            observed_generation=current["metadata"].get("generation", 1),
        )
