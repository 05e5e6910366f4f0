"""Services in process: who serves a name answers its requests, one of several by chance."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from mews.harness.ports.fence import Fence, Fenced
from mews.kube.system.services import HttpHandler, ServiceReply

POST_TIMEOUT_S = 5.0
"""kube-scheduler's httpTimeout of extenders, by default."""


class LocalServices:
    """The services of one cluster by name. A caller loses its connection when the one that answers is killed."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._served: dict[str, list[tuple[Fence, HttpHandler]]] = {}
        self._answering: set[asyncio.Task[ServiceReply]] = set()

    def port(self, service: str, fence: Fence) -> LocalServicePort:
        """Return where one incarnation of a component serves."""
        return LocalServicePort(self, service, fence)

    def add(self, service: str, fence: Fence, handler: HttpHandler) -> None:
        """One more serves that name."""
        self._served.setdefault(service, []).append((fence, handler))

    def remove(self, service: str, handler: HttpHandler) -> None:
        """It does not any more."""
        self._served[service] = [each for each in self._served[service] if each[1] is not handler]

    async def call(self, service: str, method: str, path: str, body: bytes = b"") -> ServiceReply:
        """Ask one of those that serve the name.

        Raises ConnectionError where nobody does, or who was asked is gone before it has answered.
        """
        live = [each for each in self._served.get(service, ()) if not each[0].is_cut]
        if not live:
            raise ConnectionError(f"dial tcp: {service}: connect: connection refused")
        fence, handler = live[0] if len(live) == 1 else self._rng.choice(live)
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        fence.on_cut(lambda: None if gone.done() else gone.set_result(None))
        # A task of its own: a server goes on with what it has begun, whatever becomes of the client.
        task = asyncio.ensure_future(_answer(handler, method, path, body))
        self._answering.add(task)
        task.add_done_callback(self._answered)
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if fence.is_cut or not task.done():
            task.cancel()
            raise ConnectionError("EOF")
        gone.cancel()
        return task.result()

    async def ask_all(self, service: str, path: str) -> list[ServiceReply]:
        """GET a path of each that serves the name.

        Raises ConnectionError where nobody does.
        """
        live = [handler for fence, handler in self._served.get(service, ()) if not fence.is_cut]
        if not live:
            raise ConnectionError(f"{service}: nobody serves it")
        return [await _answer(handler, "GET", path, b"") for handler in live]

    def _answered(self, task: asyncio.Task[ServiceReply]) -> None:
        self._answering.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be there any more to be told of it


async def _answer(handler: HttpHandler, method: str, path: str, body: bytes) -> ServiceReply:
    try:
        return await handler(method, path, body)
    except Fenced as killed:
        raise ConnectionError("EOF") from killed


class LocalServicePort:
    """A ServicePort of one incarnation."""

    def __init__(self, services: LocalServices, service: str, fence: Fence) -> None:
        self._services = services
        self._service = service
        self._fence = fence

    async def serve(self, handler: HttpHandler) -> None:
        """Answer with it until cancelled."""
        self._services.add(self._service, self._fence, handler)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._services.remove(self._service, handler)

    async def reached(self) -> None:
        """At once."""
        await asyncio.sleep(0)

    async def superseded(self) -> None:
        """Never."""
        await asyncio.get_running_loop().create_future()

    def renew(self) -> None:
        """There is nothing to show."""

    def client_config(self, namespace: str, path: str) -> dict[str, Any]:
        """Return them by its name; there are no sockets, and so no TLS."""
        return {"service": {"namespace": namespace, "name": self._service, "path": path}}
