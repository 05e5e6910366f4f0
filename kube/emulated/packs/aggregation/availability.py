"""Whether the servers behind APIServices answer: upstream's controller of their condition ``Available``.

Source: k8s.io/kube-aggregator/pkg/controllers/status/remote. What can be told without asking, the rules of the kinds
tell at once (``server_conditions``).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

from mews.kube.api.objects import Object, name_of
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.kinds.server_conditions import settle, unavailability
from mews.kube.emulated.packs.aggregation.remote_apis import API_SERVICES, RemoteApi, remote_api, remote_apis
from mews.kube.emulated.packs.aggregation.remote_client import (
    AGGREGATOR,
    RemoteClient,
    UnreachedError,
    UnresolvedError,
    identity_headers,
)

_RESYNC_S, _ANSWER_S = 30.0, 5.0
_FIRST_RETRY_S, _LAST_RETRY_S = 0.005, 30.0
_ATTEMPTS = 5
_WATCHED = ("apiservices", "services", "endpointslices")


class AvailabilityChecks:
    """Asks each server when its APIService, Service or endpoints change, and every half minute. ``then`` is called with
    a server that has answered."""

    def __init__(self, store: Store, client: RemoteClient, then: Callable[[RemoteApi], Awaitable[None]]) -> None:
        self._store = store
        self._client = client
        self._then = then
        self._due: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        stop = self._store.listen(self._on_commit)
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self._running = {name: task for name, task in self._running.items() if not task.done()}
                    for name in self._take_due():
                        self._running[name] = tasks.create_task(self._check(name))
                        self._running[name].add_done_callback(lambda _: self._changed.set())
                    await self._wait()
        finally:
            stop()

    def _on_commit(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        if kind.custom or kind.plural not in _WATCHED:
            return
        if kind.plural == "apiservices":
            # Of its own status nothing is new here.
            if new is None or old is None or old["spec"] != new["spec"]:
                name = name_of(new or old or {})
                self._forget(name)
                self._mark(name)
            return
        metadata = (new or old or {})["metadata"]
        name = metadata["name"]
        if kind.plural == "endpointslices":
            name = (metadata.get("labels") or {}).get("kubernetes.io/service-name", "")
        for api in remote_apis(self._store):
            if (api.namespace, api.service) == (metadata.get("namespace"), name):
                self._failures.pop(api.name, None)
                self._mark(api.name)

    def _mark(self, name: str, after_s: float = 0.0) -> None:
        self._due[name] = asyncio.get_running_loop().time() + after_s
        self._changed.set()

    def _forget(self, name: str) -> None:
        self._failures.pop(name, None)
        self._due.pop(name, None)

    def _take_due(self) -> list[str]:
        now = asyncio.get_running_loop().time()
        for api in remote_apis(self._store):
            self._due.setdefault(api.name, now)
        due = [name for name, at in self._due.items() if at <= now and name not in self._running]
        for name in due:
            self._due[name] = now + _RESYNC_S
        return due

    async def _wait(self) -> None:
        """Until something is due, or changes."""
        now = asyncio.get_running_loop().time()
        rest_s = min((at - now for name, at in self._due.items() if name not in self._running), default=_RESYNC_S)
        try:
            async with asyncio.timeout(max(rest_s, _FIRST_RETRY_S)):
                await self._changed.wait()
        except TimeoutError:
            return
        finally:
            self._changed.clear()

    async def _check(self, name: str) -> None:
        store, kind = self._store, self._store.kinds.of(API_SERVICES)
        api = self._api(name)
        if api is None:
            self._forget(name)
            return
        found = unavailability(store, {"namespace": api.namespace, "name": api.service, "port": api.port})
        asked = found is None
        if found is None:
            text = await self._answer(api)
            verdict = ("False", "FailedDiscoveryCheck", text) if text else ("True", "Passed", "all checks passed")
            found = dict(zip(("status", "reason", "message"), verdict, strict=True)) | {"type": "Available"}
        now = store.find(kind, "", name)
        current = None if now is None else remote_api(now)
        if now is None or current is None or (current.backend, current.key) != (api.backend, api.key):
            return  # it was changed meanwhile, and is looked at anew
        settle(store, kind, now, found)
        if found["status"] == "True":
            self._failures.pop(name, None)
            await self._then(api)
        elif asked:  # else a change is waited for
            self._failures[name] = self._failures.get(name, 0) + 1
            self._mark(name, min(_FIRST_RETRY_S * 2.0 ** min(self._failures[name], 20), _LAST_RETRY_S))

    def _api(self, name: str) -> RemoteApi | None:
        obj = self._store.find(self._store.kinds.of(API_SERVICES), "", name)
        return None if obj is None else remote_api(obj)

    async def _answer(self, api: RemoteApi) -> str:
        """Return why none of its pods answers; "" where one does."""
        try:
            place = self._client.place(api)
        except UnresolvedError as error:
            return str(error)
        url = f"https://{place.shown}{api.path}"
        fault = f'Get "{url}": dial tcp {place.shown}: connect: connection refused'
        for endpoint in place.places[:_ATTEMPTS]:
            fault = await self._asked(api, url, endpoint)
            if not fault:
                return ""
        return f"failing or missing response from {url}: {fault}"

    async def _asked(self, api: RemoteApi, url: str, endpoint: tuple[str, int]) -> str:
        try:
            async with asyncio.timeout(_ANSWER_S):
                answer = await self._client.ask(
                    api, "GET", api.path, identity_headers(AGGREGATOR), trusting=True, endpoint=endpoint
                )
        except TimeoutError:
            text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            return f'Get "{url}": {text}'
        except (UnreachedError, UnresolvedError, ssl.SSLError) as error:
            return f'Get "{url}": {error}'
        async with answer:
            return "" if 200 <= answer.status < 300 else f"bad status from {url}: {answer.status}"
