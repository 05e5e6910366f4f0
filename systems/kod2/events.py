"""Events about TFJobs: what ``kubectl describe tfjob`` shows. Best effort; repeats raise a count."""

from __future__ import annotations

from zlib import crc32

from mews.kube.api.errors import AlreadyExists, ApiError, Unavailable
from mews.kube.api.objects import Object, timestamp
from mews.kube.api.resources import EVENTS
from mews.kube.component import Context

COMPONENT = "tfjob-controller"


class TFJobEventWriter:
    """Writes core/v1 events for the operator."""

    def __init__(self, context: Context) -> None:
        self._context = context

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
            await self._post(name, event, now)
        except (ApiError, Unavailable) as error:
            self._context.log.info("event %s about %s is lost: %s", reason, metadata["name"], error)

    async def _post(self, name: str, event: Object, now: str) -> None:
        namespace = event["metadata"]["namespace"]
        try:
            await self._context.kube.create(EVENTS, event, namespace=namespace)
        except AlreadyExists:
            known = await self._context.kube.get(EVENTS, name, namespace=namespace)
            change = {"count": int(known.get("count") or 1) + 1, "lastTimestamp": now}
            await self._context.kube.patch(EVENTS, name, change, namespace=namespace)
