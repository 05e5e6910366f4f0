"""The part of the API server that stands before other servers: who answers which group, and what all show together."""

from __future__ import annotations

import asyncio
import random

from aiohttp import web

from mews.certificates import Certificates
from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.kinds import GroupVersion, Kind
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.packs.aggregation.availability import AvailabilityChecks
from mews.kube.emulated.packs.aggregation.documents import RemoteDocuments
from mews.kube.emulated.packs.aggregation.passing import pass_on
from mews.kube.emulated.packs.aggregation.remote_apis import API_SERVICES, RemoteApi, remote_apis
from mews.kube.emulated.packs.aggregation.remote_client import RemoteClient


class Aggregator:
    """``front`` is what it shows to other servers; None: nothing, and they take nobody's word for who asks."""

    def __init__(self, store: Store, front: Certificates | None) -> None:
        self._store = store
        self._client = RemoteClient(store, front, random.Random("endpoints of other servers"))
        self.documents = RemoteDocuments(store, self._client)
        self._checks = AvailabilityChecks(store, self._client, self.documents.read)
        self._apis: dict[GroupVersion, RemoteApi] | None = None
        self._checking: asyncio.Task[None] | None = None
        self._stop = store.listen(self._on_commit)

    def _on_commit(self, kind: Kind, _old: Object | None, _new: Object | None) -> None:
        if kind.resource == API_SERVICES:
            self._apis = None

    def start(self) -> None:
        """Ask them from now on."""
        self._store.asks_servers = True
        self._checking = asyncio.create_task(self._checks.run())

    def api(self, parts: list[str]) -> RemoteApi | None:
        """Return whose a path is, split at its slashes; None: this server's own."""
        openapi = parts[:2] == ["openapi", "v3"]
        parts = parts[2:] if openapi else parts
        if len(parts) < 3 or parts[0] != "apis" or (openapi and len(parts) > 3):
            return None
        if self._apis is None:
            self._apis = {api.key: api for api in remote_apis(self._store)}
        return self._apis.get((parts[1], parts[2]))

    async def pass_on(self, request: web.BaseRequest, user: User, api: RemoteApi) -> web.StreamResponse:
        """Return that server's answer."""
        return await pass_on(self._client, request, user, api)

    async def stop(self) -> None:
        """Ask no more."""
        self._stop()
        self._store.asks_servers = False
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.gather(self._checking, return_exceptions=True)
        await self._client.close()
