"""Events about TFJobs: what ``kubectl describe tfjob`` shows. Best effort; repeats raise a count."""

from __future__ import annotations

import asyncio
from zlib import crc32

from mews.kube.api.errors import AlreadyExistsError, ApiError, UnavailableError
from mews.kube.api.objects import Object, timestamp
from mews.kube.api.resources import EVENTS
from mews.kube.component import Context

COMPONENT = "tfjob-controller"
_WAITING = 10_000
_NAME_LENGTH = 240
"""A TFJob may have a name as long as names may be: its events' names are longer."""


class TFJobEventWriter:
    """Writes core/v1 events for the operator: ``emit`` at once, ``enqueue`` beside its work, by ``run()`` as a task;
    what waits when that ends is lost."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting: asyncio.Queue[Object] = asyncio.Queue(_WAITING)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            event = await self._waiting.get()
            try:
                await self._write(event)
            except Exception:  # events are best effort: none of them ends the operator
                self._context.log.exception("event %s is lost", event["reason"])

    async def emit(self, tfjob: Object, kind: str, reason: str, message: str) -> None:
        """One event of type ``kind`` (Normal, Warning) about a TFJob."""
        await self._write(self._event(tfjob, kind, reason, message))

    def enqueue(self, tfjob: Object, kind: str, reason: str, message: str) -> None:
        """The same, of what is many: nobody waits for it."""
        try:
            self._waiting.put_nowait(self._event(tfjob, kind, reason, message))
        except asyncio.QueueFull:
            self._context.log.info("event %s about %s is lost: too many wait", reason, tfjob["metadata"]["name"])

    async def _write(self, event: Object) -> None:
        try:
            await self._post(event)
        except (ApiError, UnavailableError) as error:
            name = event["involvedObject"]["name"]
            self._context.log.info("event %s about %s is lost: %s", event["reason"], name, error)

    def _event(self, tfjob: Object, kind: str, reason: str, message: str) -> Object:
        metadata, now = tfjob["metadata"], timestamp(self._context.clock.now())
        key = f"{metadata['uid']}/{reason}/{message}"
        name = f"{metadata['name'][:_NAME_LENGTH].rstrip('-.')}.{crc32(key.encode()):08x}"
        return {
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

    async def _post(self, event: Object) -> None:
        name, namespace, now = event["metadata"]["name"], event["metadata"]["namespace"], event["lastTimestamp"]
        try:
            await self._context.kube.create(EVENTS, event, namespace=namespace)
        except AlreadyExistsError:
            known = await self._context.kube.get(EVENTS, name, namespace=namespace)
            change = {"count": int(known.get("count") or 1) + 1, "lastTimestamp": now}
            await self._context.kube.patch(EVENTS, name, change, namespace=namespace)
