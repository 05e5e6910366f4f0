"""The plugin points of the scheduler: what a plugin is given and what it may answer.

After upstream's scheduling framework (pkg/scheduler/framework/interface.go, 1.34), with one difference that follows
from asyncio: the points of the cycle (PreFilter to Reserve) are plain functions, so nothing changes while one pod is
decided; the points after it (Permit, Unreserve, PreBind, Bind, PostBind) are coroutines that run beside the cycle.
A plugin is any object with a ``name`` and the methods of the points it takes part in.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from mews.kube.api.resources import Resource
from mews.kube.client.informer import Informer
from mews.kube.component import Context
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.verdict import (
    MAX_PERMIT_S,
    SKIP,
    SUCCESS,
    Code,
    CycleState,
    Status,
    error,
    unresolvable,
    unschedulable,
    wait,
)
from mews.kube.scheduling.wake import Action, Hint, Wake

__all__ = [
    "MAX_PERMIT_S",
    "SKIP",
    "SUCCESS",
    "Action",
    "Bind",
    "Code",
    "CycleState",
    "EventSink",
    "Filter",
    "Handle",
    "Hint",
    "HoldsCycle",
    "Normalize",
    "Permit",
    "Plugin",
    "PluginFactory",
    "PostBind",
    "PostFilter",
    "PostFilterResult",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "PreScore",
    "QueueSort",
    "QueuedPod",
    "Reserve",
    "Score",
    "Status",
    "Unreserve",
    "WaitingPod",
    "Wake",
    "Wakes",
    "WhatIf",
    "error",
    "unresolvable",
    "unschedulable",
    "wait",
]


# ---------------------------------------------------------------------------------------------------------- handle


class WaitingPod(Protocol):
    """A pod held at Permit; it keeps the room it was given."""

    @property
    def pod(self) -> PodInfo:
        """The pod as it was when assumed."""
        ...

    @property
    def node(self) -> str:
        """The node that was chosen for the pod."""
        ...

    @property
    def held_by(self) -> Sequence[str]:
        """Names of the plugins that have not allowed it yet."""
        ...

    def allow(self, plugin: str) -> None:
        """This plugin holds it no longer; with the last one it is bound."""
        ...

    def reject(self, plugin: str, message: str) -> None:
        """Give up: Unreserve, forget, queue again as refused by this plugin."""
        ...


class EventSink(Protocol):
    """Writes events.k8s.io/v1 in the background, as the contract words them."""

    def record(
        self, pod: PodInfo, *, kind: str, reason: str, action: str, note: str, related: PodInfo | None = None
    ) -> None:
        """``kind`` is Normal or Warning."""
        ...


class Handle(Protocol):
    """What the scheduler offers its plugins; one per profile."""

    @property
    def context(self) -> Context:
        """KubeApi, clock, chance and log."""
        ...

    @property
    def scheduler_name(self) -> str:
        """The profile's name."""
        ...

    @property
    def nodes(self) -> Mapping[str, NodeInfo]:
        """All nodes with their bound **and assumed** pods, always current, read-only."""
        ...

    @property
    def with_affinity(self) -> Mapping[str, NodeInfo]:
        """Those with pods of any affinity, or of preferred anti-affinity."""
        ...

    @property
    def with_anti_affinity(self) -> Mapping[str, NodeInfo]:
        """Those with pods of required anti-affinity."""
        ...

    @property
    def events(self) -> EventSink:
        """Event recorder reporting as this profile."""
        ...

    def informer(self, resource: Resource, namespace: str | None = None) -> Informer:
        """Return the shared informer of a resource; nothing is scheduled before it has synced. Ask in the
        constructor."""
        ...

    def late_informer(self, resource: Resource, needed_by: Callable[[PodInfo], bool]) -> Informer:
        """Return the shared informer of a resource that few pods need: it starts with the first that does, and no such
        pod is queued before it has synced. Ask in the constructor."""
        ...

    def waiting(self) -> Sequence[WaitingPod]:
        """Pods held at Permit, in the order in which they came."""
        ...

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """Return the pod held at Permit with that uid."""
        ...

    def activate(self, uids: Iterable[str]) -> None:
        """Retry these pods: queued ones at once, ones being bound after their backoff should they fail."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside the cycle; API errors it raises are logged."""
        ...

    def nominated(self, node: str) -> Sequence[PodInfo]:
        """Pods that wait for room on this node."""
        ...

    def fits(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Run the profile's filters as the cycle does, with nominated pods counted. For preemption."""
        ...

    def suppose(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo, *, there: bool) -> None:
        """Put ``other`` on a **copy** of a node, or take it off, and tell the plugins that count pods."""
        ...

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Note, in memory, that the pod waits for room on the node; "" for none any more."""
        ...


# ---------------------------------------------------------------------------------------------------- plugin points


class Plugin(Protocol):
    """What every plugin has: a name, which profiles and messages use."""

    @property
    def name(self) -> str:
        """Unique within the profile; shown in conditions and used in ``score_weights``."""
        ...


PluginFactory = Callable[[Handle], Plugin]
"""How a profile names its plugins: a class that takes a handle, a partial, a function of the user's."""


class QueuedPod(Struct, frozen=True):
    """A pod in the queue as QueueSort sees it; ``entered_s`` is unix time of its last entering."""

    pod: PodInfo
    entered_s: float


@runtime_checkable
class PreEnqueue(Plugin, Protocol):
    """May this pod be queued at all? Refused ones wait, silently, until their object changes."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Decide whether a pod may enter the queue: SUCCESS, or UNRESOLVABLE until it changes."""
        ...


@runtime_checkable
class QueueSort(Plugin, Protocol):
    """The order of the queue; one per scheduler."""

    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        """Smallest first; equal keys by order of entering."""
        ...


@runtime_checkable
class PreFilter(Plugin, Protocol):
    """Looks at the pod once, before the nodes."""

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """SUCCESS (perhaps with ``nodes``), SKIP this plugin's Filter, or a refusal of all nodes."""
        ...


@runtime_checkable
class WhatIf(Plugin, Protocol):
    """For a PreFilter whose state counts pods: keeps it right when preemption tries nodes without some pods."""

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """``other`` is on the node now."""
        ...

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """``other`` is not on the node any more."""
        ...


@runtime_checkable
class Filter(Plugin, Protocol):
    """Can the pod run on this node?"""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """SUCCESS or why not; the first refusal of a node is the one that is told."""
        ...


class PostFilterResult(Struct, frozen=True):
    """``nominated``: the node to wait for, "" to drop an earlier nomination, None to leave it as it is."""

    status: Status
    nominated: str | None = None


@runtime_checkable
class PostFilter(Plugin, Protocol):
    """No node fits: can room be made? All are asked in turn until one says SUCCESS or ERROR."""

    def post_filter(self, state: CycleState, pod: PodInfo, refusals: Mapping[str, Status]) -> PostFilterResult:
        """``refusals``: node -> why, for every node."""
        ...


@runtime_checkable
class PreScore(Plugin, Protocol):
    """Prepares Score; only called when more than one node fits."""

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        """SUCCESS or SKIP this plugin's Score."""
        ...


@runtime_checkable
class Score(Plugin, Protocol):
    """How good is this node?"""

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """0 to 100, or any whole number when the plugin normalises."""
        ...


@runtime_checkable
class Normalize(Plugin, Protocol):
    """Brings this plugin's scores into 0 to 100."""

    def normalize(self, state: CycleState, pod: PodInfo, scores: Mapping[str, int]) -> Mapping[str, int]:
        """Node -> score, for all nodes that fit."""
        ...


@runtime_checkable
class Reserve(Plugin, Protocol):
    """Told when the pod is assumed on a node, still within the cycle."""

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Anything but SUCCESS undoes it."""
        ...


@runtime_checkable
class Unreserve(Plugin, Protocol):
    """Told, in reverse order, when an assumed pod is given up. Must bear being called without Reserve."""

    async def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Undo Reserve and whatever Permit began. The pod is queued again only after this."""
        ...


@runtime_checkable
class Permit(Plugin, Protocol):
    """The last gate before binding, beside the cycle."""

    async def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """SUCCESS, ``wait(timeout_s)`` (then ``Handle.waiting_pod(uid).allow(name)``), or a refusal."""
        ...


@runtime_checkable
class PreBind(Plugin, Protocol):
    """What must be done before the pod is bound."""

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Anything but SUCCESS gives the pod up."""
        ...


@runtime_checkable
class Bind(Plugin, Protocol):
    """Binds the pod; the first that does not SKIP has done it."""

    async def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """SUCCESS, SKIP or ERROR; ApiError and Unavailable may be raised."""
        ...


@runtime_checkable
class PostBind(Plugin, Protocol):
    """Told after the pod is bound."""

    async def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Tidy up; nothing can fail any more."""
        ...


@runtime_checkable
class HoldsCycle(Plugin, Protocol):
    """Holds up the cycle after a decision: upstream's Permit runs within it, so that one which takes its time does."""

    @property
    def cycle_held(self) -> bool:
        """Whether it holds up the cycle now."""
        ...

    async def cycle_free(self) -> None:
        """Return once the next pod may be decided."""
        ...


@runtime_checkable
class Wakes(Plugin, Protocol):
    """Says what may make a pod fit that this plugin refused; a plugin without it is woken by every change."""

    def wakes_on(self) -> Sequence[Wake]:
        """Read once, at the start."""
        ...
