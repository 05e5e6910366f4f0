"""Events about TFJobs: what ``kubectl describe tfjob`` shows. Best effort; repeats raise a count."""

from __future__ import annotations

import asyncio
from zlib import crc32

from mews.kube.api.errors import AlreadyExists, ApiError, Unavailable
from mews.kube.api.objects import Object, timestamp
from mews.kube.api.resources import EVENTS
from mews.kube.component import Context

COMPONENT = "tfjob-controller"


_WAITING = 10_000


class TFJobEventWriter:
    """Writes core/v1 events for the operator, in order and beside its work: ``run()`` as a task. What waits when it
    ends is lost."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting: asyncio.Queue[Object] = asyncio.Queue(_WAITING)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            event = await self._waiting.get()
            try:
                await self._post(event)
            except (ApiError, Unavailable) as error:
                name = event["involvedObject"]["name"]
                self._context.log.info("event %s about %s is lost: %s", event["reason"], name, error)

    async def emit(self, tfjob: Object, kind: str, reason: str, message: str) -> None:
        """One event of type ``kind`` (Normal, Warning) about a TFJob."""
        metadata, now = tfjob["metadata"], timestamp(self._context.clock.now())
        key = f"{metadata['uid']}/{reason}/{message}"
        name = f"{metadata['name']}.{crc32(key.encode()):08x}"
        event = {
            "metadata": {"name": name, "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": "kubeflow.org/v1",
                "kind": "TFJob",
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
            "type": kind,
            "reason": reason,
            "message": message[:1024],
            "source": {"component": COMPONENT},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            self._waiting.put_nowait(event)
        except asyncio.QueueFull:
            self._context.log.info("event %s about %s is lost: too many wait", reason, metadata["name"])

    async def _post(self, event: Object) -> None:
        name, namespace, now = event["metadata"]["name"], event["metadata"]["namespace"], event["lastTimestamp"]
        try:
            await self._context.kube.create(EVENTS, event, namespace=namespace)
        except AlreadyExists:
            known = await self._context.kube.get(EVENTS, name, namespace=namespace)
            change = {"count": int(known.get("count") or 1) + 1, "lastTimestamp": now}
            await self._context.kube.patch(EVENTS, name, change, namespace=namespace)
