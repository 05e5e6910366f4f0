"""Carries chassis requests over HTTP."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler

from mews.kube.chassis.port import TransportError, WireRequest, WireResponse


class HttpTransport:
    """A management server at ``base_url``; no answer within ``timeout_s`` is none at all.

    Each request has a connection of its own: a request on a kept-alive one that the server just closed would be
    repeated by the HTTP library, and a detach or attach must never be sent twice. ``ca_file``: whom to trust under TLS.
    """

    def __init__(self, base_url: str, timeout_s: float = 120.0, *, ca_file: str | None = None) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s
        self._ca_file = ca_file
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: WireRequest) -> WireResponse:
        """Return the answer.

        Raises TransportError.
        """
        if self._session is None:
            self._session = _session(self._timeout_s, self._ca_file)
        try:
            async with self._session.request(
                request.method, self._base_url + request.path, data=request.body or None, headers=request.headers
            ) as response:
                return WireResponse(response.status, await response.read(), dict(response.headers))
        except TimeoutError as error:
            raise TransportError(f"{self._base_url}: no answer within {self._timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise TransportError(f"{self._base_url}: {type(error).__name__}: {error}") from error

    async def close(self) -> None:
        """Give all connections back."""
        if self._session is not None:
            connector = self._session.connector
            await self._session.close()
            self._session = None
            if isinstance(connector, _Connector):
                await connector.end()


class _Connector(aiohttp.TCPConnector):
    """Under TLS a connection that was given back lives on until its peer has ended it, which may be after the loop's
    own end: ``end`` does not wait for that."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._transports: WeakSet[asyncio.Transport] = WeakSet()

    async def _create_connection(self, *arguments: Any) -> ResponseHandler:
        made = await super()._create_connection(*arguments)
        if made.transport is not None:
            self._transports.add(made.transport)
        return made

    async def end(self) -> None:
        """End all that are open still."""
        for transport in list(self._transports):
            transport.abort()
        await asyncio.sleep(0)


def _session(timeout_s: float, ca_file: str | None) -> aiohttp.ClientSession:
    trust = True if ca_file is None else ssl.create_default_context(cafile=ca_file)
    session = aiohttp.ClientSession(
        connector=_Connector(force_close=True, limit=0, ssl=trust),
        timeout=aiohttp.ClientTimeout(total=timeout_s),
    )
    session._retry_connection = False  # the library repeats GET and DELETE after a dropped connection by itself
    return session
