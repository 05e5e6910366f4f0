"""Asks the chassis' back door ``control``, whose token and port are new after a restart of their process."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT_S = 30.0
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class ControlLostError(Exception):
    """The chassis do not answer; the message says why."""


class ChassisControl:
    """``ready`` is the chassis' ready file."""

    def __init__(self, ready: Path) -> None:
        self._ready = ready

    def ask(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """Return the answer.

        Raises ControlLostError.
        """
        return self.read(self.open(path, method=method, body=body))

    @staticmethod
    def read(response: HTTPResponse) -> Any:
        """Return the JSON of an answer. Raises ControlLostError."""
        try:
            return json.loads(response.read())
        except (OSError, HTTPException, ValueError) as error:
            raise ControlLostError(str(error)) from error
        finally:
            response.close()

    def open(
        self,
        path: str,
        headers: Mapping[str, str] = _NO_HEADERS,
        *,
        method: str = "GET",
        body: Any = None,
        opened: Callable[[socket.socket], None] = lambda _: None,
    ) -> HTTPResponse:
        """Return the beginning of an answer with status 200; ``opened`` gets the socket before anything is sent.

        Raises ControlLostError.
        """
        content = None if body is None else json.dumps(body)
        try:
            ready = json.loads(self._ready.read_text(encoding="utf-8"))
            control = ready["control"]
            connection = _connection(control["url"], ready.get("ca"))
            connection.connect()
            opened(connection.sock)
            bearer = {"Authorization": f"Bearer {control['token']}", "Content-Type": "application/json"}
            bearer["Connection"] = "close"
            connection.request(method, path, body=content, headers={**bearer, **headers})
            response = connection.getresponse()
        except (OSError, HTTPException, ValueError, KeyError) as error:
            raise ControlLostError(f"{self._ready}: {error}") from error
        if response.status != 200:
            text = response.read(1000).decode("utf-8", "replace")
            raise ControlLostError(f"{path}: HTTP {response.status}: {text}")
        return response


class ChassisStream:
    """Answers that may be long in coming, one at a time; another thread may end the one that is waited for."""

    def __init__(self, control: ChassisControl) -> None:
        self._control = control
        # Of the connection: that forgets it once the answer has begun, since there is but one on each.
        self._socket: socket.socket | None = None
        self._ended = False

    def open(self, path: str, headers: Mapping[str, str] = _NO_HEADERS) -> HTTPResponse:
        """Return the beginning of the answer. Raises ControlLostError."""
        return self._control.open(path, headers, opened=self._keep)

    def end(self) -> None:
        """Whoever waits for an answer, or for the rest of it, gets Lost or its end; none is asked for any more."""
        self._ended = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                # The socket's own: that of TLS forgets TLS, and who reads then takes records for text.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _keep(self, opened: socket.socket) -> None:
        self._socket = opened
        if self._ended:
            raise ControlLostError("nobody asks any more")


def _connection(url: str, authority: str | None) -> HTTPConnection:
    place = urlsplit(url)
    if place.scheme != "https":
        return HTTPConnection(place.hostname or "", place.port, timeout=_TIMEOUT_S)
    trusted = ssl.create_default_context(cafile=authority)
    return HTTPSConnection(place.hostname or "", place.port, timeout=_TIMEOUT_S, context=trusted)
