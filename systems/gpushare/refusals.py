"""Pods that a filter call found no room for, and a word to the scheduler when there is some that it has not heard of.

kube-scheduler asks again about a pod that an extender refused whenever a pod or node changes, and hears of it by a
watch of its own. Where that watch is ahead of ours, the filter answers by what was; and when nothing changes any more
the pod is asked about again five minutes later (``podMaxInUnschedulablePodsDuration``). An annotation of the pod's own
is a change, too: it is written when there has been room for a while and nobody has asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from msgspec import Struct

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, condition_of, name_of, namespace_of, node_name_of, uid_of
from mews.kube.api.resources import PODS
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.systems.gpushare.names import ROOM
from mews.systems.gpushare.records import requested

PATIENCE_S = 1.0
"""A scheduler whose watch is not late has asked by then."""


class RefusedPod(Struct, frozen=True):
    """A pod, what it asks for, and the nodes that had no room."""

    namespace: str
    name: str
    request: int
    nodes: frozenset[str]


class RefusedPods:
    """Those of one replica. ``room(node)`` is the most memory that one of its GPUs has free, ``find(name, namespace)``
    the pod as a watch last showed it."""

    def __init__(self, context: Context, room: Callable[[str], int], find: Callable[[str, str], Object | None]) -> None:
        self._context = context
        self._room = room
        self._find = find
        self._refused: dict[str, RefusedPod] = {}
        self._changed: set[str] = set()
        self._stirred = asyncio.Event()

    def begin(self, pods: Iterable[Object], nodes: Iterable[str], resource: str) -> None:
        """An incarnation before may have refused all that wait."""
        known = frozenset(nodes)
        for pod in pods:
            request = requested(pod, resource)
            scheduled = condition_of(pod, "PodScheduled") or {}
            if request and not node_name_of(pod) and scheduled.get("status") == "False":
                self.refused(pod, request, known)
        for node in known:
            self.node_changed(node)

    def refused(self, pod: Object, request: int, nodes: Iterable[str]) -> None:
        """A filter call found no room for it on any of them."""
        self._refused[uid_of(pod)] = RefusedPod(namespace_of(pod), name_of(pod), request, frozenset(nodes))

    def passed(self, pod: Object) -> None:
        """A filter call found some."""
        self._refused.pop(uid_of(pod), None)

    def node_changed(self, node: str) -> None:
        """There may be more room."""
        if self._refused:
            self._changed.add(node)
            self._stirred.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            await rest(PATIENCE_S)
            changed, self._changed = sorted(self._changed), set()
            for uid, pod in list(self._refused.items()):
                node = next((each for each in changed if each in pod.nodes and self._room(each) >= pod.request), None)
                if node is not None:
                    await self._call(uid, pod, node)

    async def _call(self, uid: str, pod: RefusedPod, node: str) -> None:
        if self._refused.get(uid) is not pod:
            return  # asked about meanwhile
        del self._refused[uid]
        seen = self._find(pod.name, pod.namespace)
        if seen is None or uid_of(seen) != uid or node_name_of(seen):
            return
        body = {"metadata": {"uid": uid, "annotations": {ROOM: f"{node} {int(self._context.clock.now() * 1e9)}"}}}
        try:
            await self._context.kube.patch(PODS, pod.name, body, namespace=pod.namespace)
        except (ApiError, UnavailableError) as failed:
            record(self._context.log, "not-called", pod=f"{pod.namespace}/{pod.name}", error=str(failed))
            self._refused.setdefault(uid, pod)
            self.node_changed(node)
            return
        record(self._context.log, "called", pod=f"{pod.namespace}/{pod.name}", node=node)
