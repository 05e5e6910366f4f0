"""A local, current copy of one resource: list, watch, and start over when the server says so (as client-go does)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

from mews.kube.api.errors import ApiError, GoneError, UnavailableError
from mews.kube.api.objects import Object, key_of, uid_of, version_of
from mews.kube.api.resources import Resource
from mews.kube.api.sharing import share_parts
from mews.kube.client.port import EventType, KubeApi
from mews.kube.clock import rest

log = logging.getLogger(__name__)

Handler = Callable[[Object | None, Object | None], None]
"""Called with (old, new): (None, new) added, (old, new) changed, (old, None) gone. Must not wait."""

_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 10.0
_PAGE = 500
"""Objects that are asked for at once, as client-go's pager does."""


class Informer:
    """Keeps ``cache`` current. Run ``run()`` as a task; ``await synced()`` before the first read.

    A restarted list that finds an object replaced (other uid) or gone tells the handlers so: no change is lost, though
    states in between may be. ``lean``: objects are kept without ``managedFields``, a third of a pod's room; who
    replaces one keeps its owners all the same, as the API has it for a body that names none.
    """

    def __init__(
        self,
        kube: KubeApi,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        lean: bool = False,
    ) -> None:
        self._kube = kube
        self._resource = resource
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._lean = lean
        self._cache: dict[str, Object] = {}
        self._order: list[str] | None = None
        self._handlers: list[Handler] = []
        self._synced = asyncio.Event()
        self._version = ""

    def on_change(self, handler: Handler) -> None:
        """Add a handler; it is told at once of all that is already there."""
        self._handlers.append(handler)
        for obj in self._cache.values():
            handler(None, obj)

    def get(self, name: str, namespace: str | None = None) -> Object | None:
        """Return the cached object, or None."""
        return self._cache.get(f"{namespace}/{name}" if namespace else name)

    def at(self, key: str) -> Object | None:
        """Return the cached object of that key (``key_of``), or None."""
        return self._cache.get(key)

    @property
    def version(self) -> int:
        """How far it has got: the newest resourceVersion seen, as a number; 0 before the first list."""
        return int(self._version or 0)

    def items(self) -> Iterator[Object]:
        """Yield all cached objects, in order of key."""
        if self._order is None:
            self._order = sorted(self._cache)
        for key in self._order:
            yield self._cache[key]

    def __len__(self) -> int:
        return len(self._cache)

    async def synced(self) -> None:
        """Wait for the first list."""
        await self._synced.wait()

    async def run(self) -> None:
        """List and watch until cancelled; connection and server errors are retried with backoff."""
        backoff_s = _FIRST_BACKOFF_S
        while True:
            begun = self._version
            try:
                if not self._version:
                    self._version = await self._list()
                await self._watch()
                backoff_s = _FIRST_BACKOFF_S
                continue
            except GoneError:
                self._version = ""
                continue
            except ApiError as error:
                log.warning("watch of %s refused: %s", self._resource.plural, error)
                self._version = ""
            except UnavailableError as error:
                log.info("watch of %s broken: %s", self._resource.plural, error)
            if self._version not in ("", begun):  # it got somewhere
                backoff_s = _FIRST_BACKOFF_S
            await rest(backoff_s)
            backoff_s = min(2 * backoff_s, _LAST_BACKOFF_S)

    async def _list(self) -> str:
        # In pages, so that what is read need never be there as a whole; nothing of it is believed before its end, as
        # half a list would look like deletions.
        fresh: dict[str, Object] = {}
        version = token = ""
        while True:
            answer = await self._kube.list(
                self._resource,
                namespace=self._namespace,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
                limit=_PAGE,
                continue_token=token,
            )
            fresh |= {key_of(obj): self._kept(obj) for obj in answer.items}
            version, token = version or answer.resource_version, answer.continue_token
            if not token:
                break
        for key in [key for key in self._cache if key not in fresh]:
            self._set(key, None)
        for key, obj in fresh.items():
            known = self._cache.get(key)
            if known is not None and uid_of(known) != uid_of(obj):
                self._set(key, None)
                known = None
            if known is None or version_of(known) != version_of(obj):
                self._set(key, obj)
        self._synced.set()
        return version

    async def _watch(self) -> None:
        stream = self._kube.watch(
            self._resource,
            namespace=self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            resource_version=self._version,
            bookmarks=True,
        )
        async for event in stream:
            if event.type is EventType.DELETED:
                self._set(key_of(event.object), None)
            elif event.type is not EventType.BOOKMARK:
                self._set(key_of(event.object), self._kept(event.object))
            # Remembered at once: a watch that breaks goes on from here, and replays nothing.
            self._version = event.object["metadata"]["resourceVersion"]

    def _kept(self, obj: Object) -> Object:
        return without_managers(obj) if self._lean else obj

    def _set(self, key: str, new: Object | None) -> None:
        old = self._cache.get(key)
        if new is None:
            if old is None:
                return
            del self._cache[key]
            self._order = None
        else:
            self._cache[key] = new
            if old is None:
                self._order = None
        for handler in self._handlers:
            handler(old, new)


def without_managers(obj: Object) -> Object:
    """Return it without ``managedFields``, its parts those of others that are alike."""
    metadata = obj["metadata"]
    if "managedFields" not in metadata:
        return obj  # those in process are shared with the store
    lean = {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}
    share_parts(lean)
    return lean
