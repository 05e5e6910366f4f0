"""What a profile's plugins hold of their scheduler."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mews.kube.api.resources import Resource
from mews.kube.client.informer import Informer
from mews.kube.scheduling.config import SchedulerProfile
from mews.kube.scheduling.cycle import check_beside_nominated
from mews.kube.scheduling.events import ProfileEventRecorder
from mews.kube.scheduling.framework import CycleState, Status, WaitingPod
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo

if TYPE_CHECKING:
    from mews.kube.scheduling.scheduler import Scheduler


class ProfileHandle:
    """``framework.Handle`` for one profile."""

    def __init__(self, scheduler: Scheduler, profile: SchedulerProfile) -> None:
        self._scheduler = scheduler
        self.context = scheduler.context
        self.scheduler_name = profile.scheduler_name
        self.events = ProfileEventRecorder(scheduler.events, profile.scheduler_name)

    @property
    def nodes(self) -> Mapping[str, NodeInfo]:
        """All nodes with their bound and assumed pods."""
        return self._scheduler.cache.nodes

    @property
    def with_affinity(self) -> Mapping[str, NodeInfo]:
        """Those with pods that want others near."""
        return self._scheduler.cache.with_affinity

    @property
    def with_anti_affinity(self) -> Mapping[str, NodeInfo]:
        """Those with pods that require others away."""
        return self._scheduler.cache.with_anti_affinity

    def informer(self, resource: Resource, namespace: str | None = None) -> Informer:
        """Return the shared informer of a resource."""
        return self._scheduler.informer(resource, namespace)

    def late_informer(self, resource: Resource, needed_by: Callable[[PodInfo], bool]) -> Informer:
        """Return the shared informer of a resource that few pods need."""
        return self._scheduler.late_informer(resource, needed_by)

    def waiting(self) -> Sequence[WaitingPod]:
        """Pods held at Permit."""
        return [pod for pod in self._scheduler.waiting.values() if pod.held_by]

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """Return one of them, or one about to be asked."""
        return self._scheduler.waiting.get(uid)

    def activate(self, uids: Iterable[str]) -> None:
        """Let these pods be tried again at once."""
        self._scheduler.queue.activate(uids)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside the cycle."""
        self._scheduler.spawn(work)

    def nominated(self, node: str) -> Sequence[PodInfo]:
        """Pods that wait for room on this node."""
        return self._scheduler.nominations.on(node)

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Note where the pod waits for room."""
        self._scheduler.nominations.set(pod, node)

    def fits(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Run the profile's filters on a node or a copy of one."""
        points = self._scheduler.points(self.scheduler_name)
        return check_beside_nominated(points, state, pod, node, self._scheduler.nominations.on)

    def suppose(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo, *, there: bool) -> None:
        """Put a pod on a copy of a node or take it off."""
        self._scheduler.points(self.scheduler_name).suppose(state, pod, other, node, there=there)
