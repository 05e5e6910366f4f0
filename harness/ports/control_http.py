"""A client of the back doors (dialect ``control``) of chassis and hosts that other processes serve."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import aiohttp

from mews.kube.client.sockets import Sockets


class ControlClient:
    """Asks one back door: ``url`` and ``token`` stand in its ready file under ``control``, ``ca`` beside them: the file
    of the authority to trust, None over plain HTTP. ``opened`` makes the session where more than the token is needed
    to get there (a proxy)."""

    def __init__(
        self,
        url: str,
        token: str,
        timeout_s: float = 30.0,
        opened: Callable[[], aiohttp.ClientSession] | None = None,
        ca: str | None = None,
    ) -> None:
        self._trusted = None if ca is None else ssl.create_default_context(cafile=ca)
        self._sockets = Sockets()
        self._url = url.rstrip("/")
        self._opened = opened
        self._token = token
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def events(self, since: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Yield every event after ``seq`` number ``since`` as it happens: ``{seq, number, t, chassis or host, event,
        …}``.

        Ends with an aiohttp.ClientError when the connection does; go on from the last ``seq``.
        """
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(since)}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout_s)
        async with self._open().get(f"{self._url}/v1/events", headers=headers, timeout=timeout) as response:
            await _checked(response)
            async for line in response.content:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    async def close(self) -> None:
        """Give all connections back."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        await self._sockets.closed()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None and self._opened is not None:
            self._session = self._opened()
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._sockets.connector(self._trusted),
                headers={"Authorization": f"Bearer {self._token}"},
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
            )
        return self._session

    async def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, str] | None = None
    ) -> Any:
        """Return the answer to one request.

        Raises ValueError for what the door refuses, RuntimeError for anything else that is not well.
        """
        async with self._open().request(method, self._url + path, json=body, params=query or {}) as response:
            await _checked(response)
            return await response.json()


async def _checked(response: aiohttp.ClientResponse) -> None:
    """Raise ValueError with the server's text for bad input, RuntimeError for anything else that is not well."""
    if response.status < 400:
        return
    text = await response.text()
    try:
        text = json.loads(text)["error"]
    except (ValueError, KeyError, TypeError):
        text = f"HTTP {response.status}: {text}"
    if response.status in (400, 409):
        raise ValueError(text)
    raise RuntimeError(f"control: {text}")
