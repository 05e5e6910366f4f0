"""Requests to an API server over HTTP, and what goes wrong with them. Not for virtual runs: imports aiohttp."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from mews.kube.api.errors import ApiError, UnavailableError, from_status
from mews.kube.client.json_text import parse
from mews.kube.client.sockets import Sockets

Query = Sequence[tuple[str, str]]
Tokens = Callable[[], str | None]
"""The bearer token to send now, None for none. May block (an auth plugin), so it is asked in a thread."""

_CONNECTIONS = 100
_REQUEST_S = 60.0
_TOKEN_FRESH_S = 30.0
_BROKEN = (aiohttp.ClientError, OSError, TimeoutError)


class ApiConnection:
    """One API server. Plain requests share up to ``_CONNECTIONS`` sockets; streams have as many as they need."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str | Tokens | None = None,
        ssl_context: ssl.SSLContext | None = None,
        headers: Mapping[str, str] | None = None,
        unix_socket: str = "",
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._ssl = ssl_context
        self._headers = {"User-Agent": "mews", "Accept": "application/json", **(headers or {})}
        self._token = token
        self._unix_socket = unix_socket
        self._token_read_s = float("-inf")
        self._sockets = Sockets()
        self._requests: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Any:
        """Return the JSON answer to one request.

        Raises ``ApiError`` for a refusal, ``UnavailableError`` when there was no answer.
        """
        if self._requests is None:
            self._requests = self._session(_CONNECTIONS, aiohttp.ClientTimeout(total=_REQUEST_S))
        headers = {"Accept": accept, **await self._authorization()}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        repeatable = method == "GET"  # a write that got no answer may have happened
        while True:
            try:
                async with self._requests.request(
                    method, self.base_url + path, params=query, data=data, headers=headers
                ) as response:
                    return _content(response.status, await response.read())
            except aiohttp.ServerDisconnectedError as error:
                if not repeatable:
                    raise self._unavailable(error) from error
                repeatable = False  # the server had closed an idle connection: once more on a fresh one
            except _BROKEN as error:
                raise self._unavailable(error) from error

    @asynccontextmanager
    async def stream(self, path: str, *, query: Query = ()) -> AsyncIterator[AsyncIterator[bytes]]:
        """Provide an answer that goes on, in chunks. Its end is the end of the chunks.

        Raises ``ApiError`` for a refusal, ``UnavailableError`` when the connection breaks.
        """
        session = self._stream_session()
        headers = await self._authorization()
        try:
            async with session.get(self.base_url + path, params=query, headers=headers) as response:
                if response.status >= 400:
                    _content(response.status, await response.read())
                yield response.content.iter_any()
        except _BROKEN as error:
            raise self._unavailable(error) from error

    @asynccontextmanager
    async def exchange(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes = b""
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Provide a request as somebody else made it: ``target`` is path and query as they came; the credentials are
        this connection's. Whatever the answer is, it is not looked at.

        Raises ``UnavailableError`` when the connection breaks.
        """
        own = {"Accept-Encoding": "identity", **await self._authorization()}
        url = self.base_url + target
        try:
            async with self._stream_session().request(
                method, url, headers={**headers, **own}, data=body or None, allow_redirects=False,
                skip_auto_headers=("Content-Type",),
            ) as response:  # fmt: skip
                yield response
        except _BROKEN as error:
            raise self._unavailable(error) from error

    @asynccontextmanager
    async def socket(
        self, path: str, *, query: Query, protocols: Sequence[str]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a WebSocket, as ``exec`` and ``attach`` need one.

        Raises ``ApiError`` when the upgrade is refused, ``UnavailableError`` when the connection breaks.
        """
        session = self._stream_session()
        headers = await self._authorization()
        try:
            async with session.ws_connect(
                self.base_url + path, params=query, protocols=tuple(protocols), headers=headers, max_msg_size=0
            ) as socket:
                yield socket
        except aiohttp.WSServerHandshakeError as error:
            status = {"code": error.status, "message": f"{path}: upgrade refused: {error.message}"}
            raise from_status(status) from error
        except _BROKEN as error:
            raise self._unavailable(error) from error

    async def close(self) -> None:
        """Give all connections back."""
        for session in (self._requests, self._streams):
            if session is not None:
                await session.close()
        self._requests = self._streams = None
        await self._sockets.closed()

    def _stream_session(self) -> aiohttp.ClientSession:
        if self._streams is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_REQUEST_S)
            self._streams = self._session(0, timeout)
        return self._streams

    def _session(self, limit: int, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
        connector = self._sockets.connector(self._ssl, limit, path=self._unix_socket)
        session = aiohttp.ClientSession(connector=connector, timeout=timeout, headers=self._headers)
        session._retry_connection = False  # the library would repeat PUT and DELETE, too
        return session

    async def _authorization(self) -> dict[str, str]:
        if self._token is None:
            return {}
        if not isinstance(self._token, str):
            now_s = asyncio.get_running_loop().time()
            if now_s - self._token_read_s > _TOKEN_FRESH_S:
                self._current = await self._asked(self._token)
                self._token_read_s = now_s
            return {"Authorization": f"Bearer {self._current}"} if self._current else {}
        return {"Authorization": f"Bearer {self._token}"}

    async def _asked(self, token: Tokens) -> str | None:
        """Return a plugin or a file that gives no token now may give one later."""
        try:
            return await asyncio.to_thread(token)
        except (OSError, ValueError) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: BaseException) -> UnavailableError:
        return UnavailableError(f"{self.base_url}: {type(error).__name__}: {error}")


def _content(status: int, raw: bytes) -> Any:
    """Return the body of a success; the error of anything else."""
    if status < 400:
        return parse(raw) if raw else None
    try:
        body = parse(raw)
    except ValueError:
        body = None
    if isinstance(body, dict) and body.get("kind") == "Status":
        raise from_status({"code": status, **body})
    text = raw.decode(errors="replace").strip() or f"HTTP status {status}"
    error: ApiError = from_status({"code": status, "message": text})
    raise error


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines of a stream, of any length; a last line that is not whole is dropped."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
