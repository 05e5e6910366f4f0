"""Events as kube-scheduler writes them: events.k8s.io/v1, repeats as a series (contract apiserver.md section 8).

After client-go's tools/events: a warning repeated about the same version of a pod becomes a series of count 2, whatever
it says now: the first note stays. Later repeats are counted and written when they end (6 minutes without one) or every
30 minutes; where the event is gone by then, it is made anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from zlib import crc32

from msgspec import Struct

from mews.kube.api.errors import AlreadyExistsError, ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, micro_timestamp
from mews.kube.api.resources import NEW_EVENTS
from mews.kube.client.port import KubeApi, Patch
from mews.kube.clock import Clock, later
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.podstatus import FIELD_MANAGER

log = logging.getLogger(__name__)

FINISHED_S = 360.0
REFRESH_S = 1800.0
MAX_NOTE = 1024
LANES = 8
"""Writes at a time: a server answers in milliseconds, and bindings come faster than that."""
_CREATE_ATTEMPTS = 12

Key = tuple[str, ...]


class _Series(Struct):
    """A warning that may come again."""

    event: Object
    count: int = 1
    written: int = 1
    last_s: float = 0.0
    written_s: float = 0.0


class _Lane:
    """Writes that must keep their order."""

    def __init__(self) -> None:
        self._pending: deque[Callable[[], Coroutine[Any, Any, None]]] = deque()
        self._filled = asyncio.Event()

    def add(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._pending.append(work)
        self._filled.set()

    async def run(self) -> None:
        while True:
            while self._pending:
                await self._pending.popleft()()
            self._filled.clear()
            await self._filled.wait()


class SchedulingEventWriter:
    """Writes for all profiles, side by side for different pods; run ``run()`` as a task."""

    def __init__(self, kube: KubeApi, clock: Clock, instance: str) -> None:
        self._kube = kube
        self._clock = clock
        self._instance = instance
        self._lanes = [_Lane() for _ in range(LANES)]
        self._series: dict[Key, _Series] = {}
        self._last_ns = 0
        self._sweeping = False

    async def run(self) -> None:
        """Write events, each pod's in the order in which they were recorded, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for lane in self._lanes:
                tasks.create_task(lane.run())

    def _write(self, event: Object, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        lane = crc32(event["regarding"]["uid"].encode()) % LANES
        self._lanes[lane].add(work)

    def record(
        self, controller: str, kind: str, event: tuple[str, str, str], pod: PodInfo, related: PodInfo | None
    ) -> None:
        """``event`` is (reason, action, note)."""
        reason, action, _ = event
        about = "" if related is None else f"{related.uid}/{related.resource_version}"
        key = (controller, kind, action, reason, f"{pod.uid}/{pod.resource_version}", about)
        known = self._series.get(key)
        if known is not None:
            self._again(known)
            return
        body = self._body(controller, kind, event, pod)
        if related is not None:
            body["related"] = _reference(related)
        if kind == "Warning":
            self._series[key] = _Series(body, last_s=self._clock.now(), written_s=self._clock.now())
            self._sweep_later()
        self._write(body, partial(self._create, body, pod.name))

    def _body(self, controller: str, kind: str, event: tuple[str, str, str], pod: PodInfo) -> Object:
        reason, action, note = event
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": self._name(pod.name), "namespace": pod.namespace},
            "eventTime": micro_timestamp(self._clock.now()),
            "reportingController": controller,
            "reportingInstance": f"{controller}-{self._instance}",
            "action": action,
            "reason": reason,
            "regarding": _reference(pod),
            "note": note if len(note) <= MAX_NOTE else f"{note[: MAX_NOTE - 3]}...",
            "type": kind,
        }

    def _name(self, pod: str) -> str:
        self._last_ns = max(self._last_ns + 1, int(self._clock.now() * 1e9))
        return f"{pod}.{self._last_ns:x}"

    async def _create(self, body: Object, pod: str) -> None:
        for _ in range(_CREATE_ATTEMPTS):
            try:
                await self._kube.create(
                    NEW_EVENTS, body, namespace=body["metadata"]["namespace"], field_manager=FIELD_MANAGER
                )
            except AlreadyExistsError:
                body["metadata"]["name"] = self._name(pod)
                continue
            except (ApiError, UnavailableError) as failed:
                log.warning("event %s not written: %s", body["metadata"]["name"], failed)
            return

    # -------------------------------------------------------------------------------------------------------- series

    def _again(self, series: _Series) -> None:
        series.count += 1
        series.last_s = self._clock.now()
        if series.count == 2:
            self._write_series(series)

    def _write_series(self, series: _Series) -> None:
        series.written, series.written_s = series.count, self._clock.now()
        body = {"series": {"count": series.count, "lastObservedTime": micro_timestamp(series.last_s)}}
        self._write(series.event, partial(self._patch, series.event, body))

    async def _patch(self, event: Object, body: Object) -> None:
        meta = event["metadata"]
        try:
            await self._kube.patch(
                NEW_EVENTS,
                meta["name"],
                body,
                kind=Patch.MERGE,
                namespace=meta["namespace"],
                field_manager=FIELD_MANAGER,
            )
        except NotFoundError:
            await self._create({**event, **body}, event["regarding"]["name"])
        except (ApiError, UnavailableError) as failed:
            log.warning("series of event %s not written: %s", meta["name"], failed)

    def _sweep_later(self) -> None:
        if not self._sweeping:
            self._sweeping = True
            later(FINISHED_S, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = False
        now = self._clock.now()
        for key, series in list(self._series.items()):
            finished = now - series.last_s >= FINISHED_S
            if series.count > series.written and (finished or now - series.written_s >= REFRESH_S):
                self._write_series(series)
            if finished:
                del self._series[key]
        if self._series:
            self._sweep_later()


class ProfileEventRecorder:
    """A profile's pen; implements ``framework.EventRecorder``."""

    def __init__(self, writer: SchedulingEventWriter, scheduler_name: str) -> None:
        self._writer = writer
        self._name = scheduler_name

    def record(
        self, pod: PodInfo, *, kind: str, reason: str, action: str, note: str, related: PodInfo | None = None
    ) -> None:
        """Queue one event for writing."""
        self._writer.record(self._name, kind, (reason, action, note), pod, related)


def _reference(pod: PodInfo) -> Object:
    return {
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "apiVersion": "v1",
        "resourceVersion": pod.resource_version,
    }
