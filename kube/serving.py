"""A component's HTTP server in a process of its own. Not for virtual runs."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aiohttp import web

from mews.kube.clock import rest
from mews.kube.system.services import HttpHandler
from mews.listening.connections import whole_body
from mews.listening.http import HttpListener, in_plain_text
from mews.listening.ports import listening

_LOOK_S, _ANSWER_S, _AGAIN_S = 1.0, 5.0, 0.2
BODY_LIMIT = 64 * 1024 * 1024
"""Bytes of a request: a scheduler without our cache sends all nodes, 5,000 of them in 50 MB."""


class ServedCertificate:
    """A server's certificate in PEM files that may be replaced while it serves; ``authority`` is whom to trust for it,
    where others are to be told so.

    Raises OSError where they cannot be used.
    """

    def __init__(self, certificate: Path, key: Path, authority: Path | None = None) -> None:
        self._certificate = certificate
        self._key = key
        self._authority = authority
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._shown: tuple[bytes, ...] = ()
        self.renew()

    def _read(self) -> tuple[bytes, ...]:
        files = (self._certificate, self._key, *([] if self._authority is None else [self._authority]))
        return tuple(path.read_bytes() for path in files)

    async def superseded(self) -> None:
        """Return once the files are others than those shown."""
        while True:
            with contextlib.suppress(OSError):
                if self._read() != self._shown:
                    return
            await rest(_LOOK_S)

    def renew(self) -> None:
        """Show what the files have, at each handshake from now on. Raises OSError, the old one goes on."""
        read = self._read()
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self._certificate, self._key)
        self.context.load_cert_chain(self._certificate, self._key)
        self._shown = read

    def bundle(self) -> str:
        """Whom to trust, as a webhook's ``caBundle``. Raises ValueError where nobody said, OSError."""
        if self._authority is None:
            raise ValueError("webhooks: require a CA certificate: give --authority")
        return base64.b64encode(self._authority.read_bytes()).decode()

    def trusting(self) -> ssl.SSLContext:
        """Return a client that trusts this authority alone. Raises OSError."""
        return ssl.create_default_context(cafile=None if self._authority is None else str(self._authority))


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
        certificate: ServedCertificate | None = None,
    ) -> None:
        """``certificate`` in place of ``tls`` where it may be replaced; ``service``: the Service before it, where it
        answers webhooks."""
        self._host = host
        self._port = port
        self._tls = tls if certificate is None else certificate.context
        self._names = tuple(names)
        self._service = service
        self._certificate = certificate

    async def serve(self, handler: HttpHandler) -> None:
        """Answer with it until cancelled. Raises OSError where the port is taken."""
        listener = await serve_on(listening(self._host, self._port), handler, tls=self._tls, names=self._names)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await listener.close()

    async def reached(self) -> None:
        """Return once it answers by the first of its names: through the Service, that a webhook is asked by."""
        where = (*self._names, self._host)[0]
        while True:
            try:
                async with asyncio.timeout(_ANSWER_S):
                    tls = None if self._certificate is None else self._certificate.trusting()
                    _, writer = await asyncio.open_connection(where, self._port, ssl=tls)
                    writer.close()
                return
            except (OSError, TimeoutError):
                await rest(_AGAIN_S)

    async def superseded(self) -> None:
        """Return once the files of its certificate are others."""
        if self._certificate is None:
            await asyncio.get_running_loop().create_future()
        else:
            await self._certificate.superseded()

    def renew(self) -> None:
        """Show the certificate that its files have by now. Raises OSError."""
        if self._certificate is not None:
            self._certificate.renew()

    def client_config(self, namespace: str, path: str) -> dict[str, Any]:
        """Return them by its Service. Raises ValueError without TLS, OSError where the authority cannot be read."""
        if self._certificate is None:
            raise ValueError("webhooks: need TLS: give --certificate, --key and --authority")
        place = {"namespace": namespace, "name": self._service, "path": path, "port": self._port}
        return {"service": place, "caBundle": self._certificate.bundle()}


async def serve_on(
    listening: socket.socket, handler: HttpHandler, *, tls: ssl.SSLContext | None = None, names: Iterable[str] = ()
) -> HttpListener:
    """Answer what comes in on that socket; ``close()`` of what is returned ends it. A ConnectionError of the handler
    is a bad gateway."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        body = await whole_body(request, BODY_LIMIT)
        try:
            reply = await handler(request.method, request.path_qs, body)
        except ConnectionError as gone:
            return in_plain_text(request, 502, str(gone))
        return web.Response(status=reply.status, body=reply.body, headers={"Content-Type": reply.content_type})

    listener = HttpListener(answer, names=names)
    await listener.open_on(listening, tls=tls)
    return listener
