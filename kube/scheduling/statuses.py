"""Writes the PodScheduled condition and the nomination of pods that were refused, beside the cycle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, condition_of, timestamp, version_of
from mews.kube.client.port import KubeApi
from mews.kube.clock import Clock
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.podstatus import patch_status

log = logging.getLogger(__name__)

SAME = ("status", "reason", "message", "observedGeneration")


def scheduled_false(pod: Object, reason: str, message: str, now_s: float) -> dict[str, Any]:
    """Return the condition as kube-scheduler words it; ``reason`` is Unschedulable or SchedulerError."""
    known = condition_of(pod, "PodScheduled")
    changed = timestamp(now_s)
    if known is not None and known.get("status") == "False":
        changed = str(known.get("lastTransitionTime") or changed)
    condition: dict[str, Any] = {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": changed,
        "reason": reason,
        "message": message,
    }
    generation = pod["metadata"].get("generation")
    if generation is not None:
        condition["observedGeneration"] = generation
    return condition


def differs(pod: Object, condition: Mapping[str, Any]) -> bool:
    """Return whether the pod does not say this yet."""
    known = condition_of(pod, str(condition["type"]))
    return known is None or any(known.get(key) != condition.get(key) for key in SAME)


class StatusWriter:
    """One write at a time, the latest word per pod; run ``run()`` as a task."""

    def __init__(self, kube: KubeApi, clock: Clock) -> None:
        self._kube = kube
        self._clock = clock
        self._wanted: dict[str, tuple[PodInfo, str, str, str | None]] = {}
        self._written: dict[str, Object] = {}
        self._filled = asyncio.Event()

    def refused(self, pod: PodInfo, reason: str, message: str, nominated: str | None) -> None:
        """Say so on the pod, unless it says so already; ``nominated`` as in ``status_patch``."""
        earlier = self._wanted.pop(pod.uid, None)
        if nominated is None and earlier is not None:
            nominated = earlier[3]
        self._wanted[pod.uid] = (pod, reason, message, nominated)
        self._filled.set()

    def forget(self, uid: str) -> None:
        """The pod is bound or gone: nothing more to say."""
        self._wanted.pop(uid, None)
        self._written.pop(uid, None)

    async def run(self) -> None:
        """Write the statuses in the queue until cancelled."""
        while True:
            while self._wanted:
                await self._write(*self._wanted.pop(next(iter(self._wanted))))
            self._filled.clear()
            await self._filled.wait()

    async def _write(self, pod: PodInfo, reason: str, message: str, nominated: str | None) -> None:
        current = self._written.get(pod.uid, pod.pod)
        if version_of(pod.pod) > version_of(current):
            current = pod.pod
        condition = scheduled_false(current, reason, message, self._clock.now())
        named = str((current.get("status") or {}).get("nominatedNodeName") or "")
        new_condition = condition if differs(current, condition) else None
        new_name = nominated if nominated is not None and nominated != named else None
        if new_condition is None and new_name is None:
            return
        try:
            self._written[pod.uid] = await patch_status(
                self._kube, current, condition=new_condition, nominated=new_name
            )
        except (ApiError, UnavailableError) as failed:
            log.warning("condition of pod %s not written: %s", pod.key, failed)
