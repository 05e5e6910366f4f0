"""One resource as its watch tells it, with nothing smoothed over: what the recorder and the oracle look at.

Unlike an informer's handlers a feed's hearer is told each event with its version and the stream it came on, so that
"resourceVersions grow, watches have no gap" can be judged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, MutableMapping

from msgspec import Struct

from mews.kube.api.errors import ApiError, GoneError, UnavailableError
from mews.kube.api.objects import Object, key_of, uid_of, version_of
from mews.kube.api.resources import Resource
from mews.kube.client.port import EventType, KubeApi, WatchEvent
from mews.kube.clock import rest

log = logging.getLogger(__name__)

LISTED = "LISTED"

_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 5.0


class WatchRecord(Struct, frozen=True):
    """One thing seen of a resource.

    ``type`` is LISTED or a watch event's type; ``old`` is the object as seen before and ``new`` as it is (None: gone,
    or a bookmark); ``version`` is the event's; ``stream`` counts lists and watches: the versions of one watch grow.
    """

    resource: Resource
    type: str
    key: str
    old: Object | None
    new: Object | None
    version: int
    stream: int


class Feed:
    """Lists, then watches for ever, from the last version seen wherever the server allows it."""

    def __init__(
        self,
        kube: KubeApi,
        resource: Resource,
        handle: Callable[[WatchRecord], None],
        *,
        keep: Callable[[Object], Object] = lambda obj: obj,
        objects: MutableMapping[str, Object] | None = None,
    ) -> None:
        """``keep``: what of an object is remembered, to be the ``old`` of its next record; its metadata at least.
        ``objects``: where it is."""
        self._keep = keep
        self._kube = kube
        self.resource = resource
        self._handle = handle
        self._synced = asyncio.Event()
        self._stream = 0
        self.objects: MutableMapping[str, Object] = {} if objects is None else objects

    async def synced(self) -> None:
        """Wait for the first list."""
        await self._synced.wait()

    async def run(self) -> None:
        """Run until cancelled; what the server cannot answer is asked again with backoff."""
        backoff_s = _FIRST_BACKOFF_S
        version = ""
        while True:
            try:
                if not version:
                    version = await self._list()
                version = await self._watch(version)
                backoff_s = _FIRST_BACKOFF_S
                continue
            except GoneError:
                version = ""
                continue
            except ApiError as error:
                log.warning("feed of %s refused: %s", self.resource.plural, error)
                version = ""
            except UnavailableError as error:
                log.info("feed of %s broken: %s", self.resource.plural, error)
                version = self._last or version
            await rest(backoff_s)
            backoff_s = min(2 * backoff_s, _LAST_BACKOFF_S)

    _last = ""

    async def _list(self) -> str:
        answer = await self._kube.list(self.resource)
        self._stream += 1
        fresh = {key_of(obj): obj for obj in answer.items}
        for key in [key for key in self.objects if key not in fresh]:
            self._see(LISTED, key, None, int(answer.resource_version or 0))
        for key, obj in fresh.items():
            known = self.objects.get(key)
            if known is None or uid_of(known) != uid_of(obj) or version_of(known) != version_of(obj):
                self._see(LISTED, key, obj, version_of(obj))
        self._synced.set()
        self._stream += 1
        self._last = answer.resource_version
        return answer.resource_version

    async def _watch(self, version: str) -> str:
        self._last = version
        stream = self._kube.watch(self.resource, resource_version=version, bookmarks=True)
        async for event in stream:
            self._last = event.object["metadata"]["resourceVersion"]
            self._take(event)
        self._stream += 1
        return self._last

    def _take(self, event: WatchEvent) -> None:
        version = version_of(event.object)
        if event.type is EventType.BOOKMARK:
            self._handle(WatchRecord(self.resource, event.type, "", None, None, version, self._stream))
            return
        gone = event.type is EventType.DELETED
        self._see(event.type, key_of(event.object), None if gone else event.object, version)

    def _see(self, kind: str, key: str, new: Object | None, version: int) -> None:
        old = self.objects.pop(key, None)
        if new is not None:
            self.objects[key] = self._keep(new)
        self._handle(WatchRecord(self.resource, str(kind), key, old, new, version, self._stream))
