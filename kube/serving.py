"""A component's HTTP server in a process of its own. Not for virtual runs."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aiohttp import web

from mews.callers import callers
from mews.kube.system.services import HttpHandler

BODY_LIMIT = 256 * 1024 * 1024
"""Bytes of a request: a scheduler without our cache sends all nodes."""


class HttpService:
    """A ServicePort on an address of this machine; ``names`` are further ones by which requests call it."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        names: Iterable[str] = (),
        service: str = "",
        authority: Path | None = None,
    ) -> None:
        """``authority``: the file of whom to trust for it, where it is a webhook behind the Service ``service``."""
        self._host = host
        self._port = port
        self._tls = tls
        self._names = tuple(names)
        self._service = service
        self._authority = authority

    async def serve(self, handler: HttpHandler) -> None:
        """Answer with it until cancelled. Raises OSError where the port is taken."""
        listening = socket.create_server((self._host, self._port))
        runner = await serve_on(listening, handler, tls=self._tls, names=self._names)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await runner.cleanup()

    def client_config(self, namespace: str, path: str) -> dict[str, Any]:
        """By its Service. Raises ValueError without TLS, OSError where the authority cannot be read."""
        if self._tls is None or self._authority is None:
            raise ValueError("webhooks: need TLS: give --certificate, --key and --authority")
        place = {"namespace": namespace, "name": self._service, "path": path, "port": self._port}
        return {"service": place, "caBundle": base64.b64encode(self._authority.read_bytes()).decode()}


async def serve_on(
    listening: socket.socket, handler: HttpHandler, *, tls: ssl.SSLContext | None = None, names: Iterable[str] = ()
) -> web.AppRunner:
    """Answer what comes in on that socket; ``cleanup()`` of what is returned ends it. A ConnectionError of the handler
    is a bad gateway. Requests of web pages, and by names that are not the server's, are refused (``mews.callers``)."""
    app = web.Application(client_max_size=BODY_LIMIT)
    admitted = callers(listening.getsockname()[0], names)

    async def answer(request: web.Request) -> web.Response:
        refusal = admitted.refusal(
            {name.lower(): value for name, value in request.headers.items()}, secure=tls is not None
        )
        if refusal is not None:
            return web.Response(status=403, text=refusal)
        try:
            reply = await handler(request.method, request.path_qs, await request.read())
        except ConnectionError as gone:
            return web.Response(status=502, text=str(gone))
        return web.Response(status=reply.status, body=reply.body, headers={"Content-Type": reply.content_type})

    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listening, ssl_context=tls).start()
    return runner
