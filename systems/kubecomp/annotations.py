"""The words between scheduler and Reconfig-Mgr: annotations and the Reconfig event on the pod (contract section 1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from mews.kube.api.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, annotations_of, timestamp, uid_of
from mews.kube.api.resources import EVENTS, PODS
from mews.kube.clock import rest
from mews.kube.component import Context
from mews.kube.scheduling.podinfo import PodInfo
from mews.systems.kubecomp.records import (
    ANNOTATIONS,
    DEMAND,
    DST_NODE,
    EVENT_REASON,
    GPU_DEMAND,
    USE_FALCON,
    event_message,
)

_RETRIES_S = (0.1, 0.5, 2.0, 5.0)
"""The waits between the tries of a clearing."""


def wanted(node: str, shortfall: int) -> dict[str, str]:
    """Return the annotations of a pod that waits on ``node`` for so many devices."""
    return {USE_FALCON: "true", DST_NODE: node, GPU_DEMAND: str(shortfall), DEMAND: str(shortfall)}


def are_on(pod: Object) -> bool:
    """Return whether the pod carries any of those that say what it waits for."""
    return not annotations_of(pod).keys().isdisjoint(set(ANNOTATIONS) - {USE_FALCON})


def awaited(pod: Object, resource: str) -> str:
    """Return what a pod at Permit waits for, a sentence; "" for one that does not."""
    node = chosen_node(pod)
    if not node:
        return ""
    lacking = annotations_of(pod).get(GPU_DEMAND, "some")
    return f"Its scheduler has chosen node {node} and holds it until {lacking} more {resource} can be used there."


def chosen_node(pod: Object) -> str:
    """Return the node that its scheduler holds for a pod at Permit; "" for one that waits at none."""
    found = annotations_of(pod)
    return str(found.get(DST_NODE, "")) if found.get(USE_FALCON) == "true" else ""


class PodAnnotations:
    """Writes and clears them, one at a time, so that a late clearing never undoes a newer writing.

    With ``marks`` what says that a pod uses devices stays. Methods raise ApiError and UnavailableError.
    """

    def __init__(self, context: Context, reporter: str, *, marks: bool = False) -> None:
        self._context = context
        self._marks = marks
        self._reporter = reporter
        self._lock = asyncio.Lock()

    async def write(self, pod: PodInfo, node: str, shortfall: int) -> None:
        """Annotate the pod and tell of it by an event."""
        async with self._lock:
            await self._patch(pod, wanted(node, shortfall))
        await self._emit(pod)

    async def mark(self, pod: PodInfo, *, uses: bool) -> None:
        """Say whether the pod uses pooled devices, and nothing of what it waits for."""
        async with self._lock:
            await self._patch(pod, {USE_FALCON: str(uses).lower()})

    async def clear(self, pod: PodInfo, unless: Callable[[], bool] = lambda: False) -> None:
        """Take them off, unless they are wanted again by now; a pod that is gone or another one has none. What fails is
        tried again: nobody else takes them off a pod that is bound."""
        nothing = {name: None for name in ANNOTATIONS if name != USE_FALCON or not self._marks}
        for wait_s in (*_RETRIES_S, None):
            async with self._lock:
                if unless():
                    return
                try:
                    await self._patch(pod, nothing)
                    return
                except NotFoundError:
                    return
                except (ApiError, UnavailableError) as failed:
                    if isinstance(failed, ConflictError) and not await self._is_there(pod):
                        return
                    if wait_s is None:
                        raise
            await rest(wait_s)

    async def _is_there(self, pod: PodInfo) -> bool:
        """Return whether that is the pod, and no later one of its name: of which a patch with its uid is a conflict,
        too."""
        try:
            return uid_of(await self._context.kube.get(PODS, pod.name, namespace=pod.namespace)) == pod.uid
        except NotFoundError:
            return False

    async def _patch(self, pod: PodInfo, annotations: Mapping[str, str | None]) -> None:
        # The uid keeps a pod of the same name that came later from being annotated in its place.
        body = {"metadata": {"uid": pod.uid, "annotations": dict(annotations)}}
        await self._context.kube.patch(PODS, pod.name, body, namespace=pod.namespace)

    async def _emit(self, pod: PodInfo) -> None:
        now_s = self._context.clock.now()
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{pod.name}.{int(now_s * 1e9):016x}",
                "namespace": pod.namespace,
            },
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.name,
                "namespace": pod.namespace,
                "uid": pod.uid,
            },
            "type": "Normal",
            "reason": EVENT_REASON,
            "message": event_message(pod.name),
            "source": {"component": self._reporter},
            "reportingComponent": self._reporter,
            "reportingInstance": "",
            "firstTimestamp": timestamp(now_s),
            "lastTimestamp": timestamp(now_s),
            "count": 1,
        }
        try:
            await self._context.kube.create(EVENTS, event, namespace=pod.namespace)
        except AlreadyExistsError:
            return
