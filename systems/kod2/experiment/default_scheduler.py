"""kube-scheduler on the nodes of a simulation: the queue, the books and the plugins of ``mews.kube.scheduling``, which
the whole stack runs, without an API and on the simulation's own time.

What waits is tried in the queue's order, not in that of its creation: by the time of its last refusal, after its
back-off, and whenever a single pod leaves its node. So small pods pass large ones, and jobs that lack some tasks hold
the rest.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import count
from typing import cast

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.api.resources import PODS
from mews.kube.scheduling.cache import Cache
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.cycle import Decider, best
from mews.kube.scheduling.framework import SUCCESS, CycleState, Handle, PluginFactory, Status
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins import NodeResourcesBalancedAllocation, NodeResourcesFit, PrioritySort
from mews.kube.scheduling.plugins.any_node import any_node_profile
from mews.kube.scheduling.podinfo import PodInfo, pod_info
from mews.kube.scheduling.points import ExtensionPoints
from mews.kube.scheduling.queue import Queue
from mews.systems.kod2.model import CPU, MEMORY, NodeRoom, TaskRequest

_NAME = "default-scheduler"


class Scoring(StrEnum):
    """Which of the nodes that fit is taken."""

    DEFAULT = "default"
    """The best by kube-scheduler's own scores."""
    RANDOM = "random"
    """Any: what the KOD2 paper says of the default scheduler."""


class BoundPod(Struct, frozen=True):
    """A pod that a node was found for."""

    name: str
    node: str


class SimulatedBinder:
    """Binding takes no time here: a profile must have someone for it, who is never asked."""

    name = "DefaultBinder"

    def __init__(self, handle: Handle) -> None:
        pass

    async def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Done."""
        return SUCCESS


_PLUGINS: tuple[PluginFactory, ...] = (PrioritySort, NodeResourcesFit, NodeResourcesBalancedAllocation, SimulatedBinder)
"""Those of the default profile that tell nodes apart for pods that name no node, port, volume, taint or neighbour."""


class _Alarm:
    """A call of the agenda."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class SimulatedScheduler:
    """``now`` tells the simulation's time. After ``add``, ``remove`` and ``advance``, ``decide`` says what is bound."""

    def __init__(
        self, nodes: Sequence[NodeRoom], scoring: Scoring, rng: random.Random, now: Callable[[], float]
    ) -> None:
        profile = SchedulerProfile(_NAME, _PLUGINS)
        if scoring is Scoring.RANDOM:
            profile = any_node_profile(_NAME, _PLUGINS)
        # None of these plugins asks anything of its scheduler.
        self._points = ExtensionPoints(profile, cast(Handle, None))
        self._now = now
        self._rng = rng
        self._cache = Cache()
        for node in nodes:
            self._cache.set_node(_node(node))
        self._decider = Decider(self._cache, lambda node: (), lambda: False)
        self._agenda: list[tuple[float, int, _Alarm]] = []
        self._numbers = count()
        self._queue = Queue(
            SchedulerConfig(profiles=(profile,)),
            now=now,
            sort_key=self._points.queue_sort[0].sort_key,
            may_queue=self._points.may_queue,
            wakes={(_NAME, plugin): wakes for plugin, wakes in self._points.wakes.items()},
            call_later=self._later,
        )

    @property
    def nodes(self) -> list[NodeInfo]:
        """The nodes with the pods that hold room there."""
        return self._cache.order

    def _later(self, delay_s: float, call: Callable[[], None]) -> _Alarm:
        alarm = _Alarm(call)
        heapq.heappush(self._agenda, (self._now() + delay_s, next(self._numbers), alarm))
        return alarm

    def next_s(self) -> float | None:
        """Return when a back-off ends, or what was refused is looked at again whatever happens."""
        while self._agenda and self._agenda[0][2].call is None:
            heapq.heappop(self._agenda)
        return self._agenda[0][0] if self._agenda else None

    def advance(self) -> None:
        """Do what is due by now."""
        while (due_s := self.next_s()) is not None and due_s <= self._now():
            call = heapq.heappop(self._agenda)[2].call
            if call is not None:
                call()

    def add(self, name: str, ask: TaskRequest) -> None:
        """A pod is there; its name is its uid."""
        self._queue.add(pod_info(_pod(name, ask)))

    def remove(self, name: str) -> None:
        """A pod has ended or is gone: whatever it held is free."""
        self._queue.remove(name)
        if any(name in node.pods for node in self._cache.order):
            self._cache.remove_pod(name)
            self._queue.change(PODS, {}, None)

    def decide(self) -> list[BoundPod]:
        """Try all pods whose turn it is."""
        bound = []
        while (entry := self._queue.pop_now()) is not None:
            state = CycleState()
            found = self._decider.find(self._points, state, entry.pod)
            if found.feasible:
                node = best(self._points, state, entry.pod, found.feasible, self._rng)
                self._cache.assume(entry.pod, node)
                self._queue.remove(entry.pod.uid)
                bound.append(BoundPod(entry.pod.name, node))
            else:
                self._queue.refuse(entry, found.refused_by)
        return bound


def _node(node: NodeRoom) -> Object:
    cpu, memory, pods = node.free[:3]
    return {
        "metadata": {"name": node.name},
        "status": {"allocatable": {"cpu": f"{cpu}m", "memory": str(memory), "pods": str(pods)}},
    }


def _pod(name: str, ask: TaskRequest) -> Object:
    requests = {"cpu": f"{ask.amounts[CPU]}m", "memory": str(ask.amounts[MEMORY])}
    containers = [{"name": "tensorflow", "resources": {"requests": requests}}]
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": {"containers": containers}}
