"""Asks the chassis' back door ``control``, whose token and port are new after a restart of their process."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

_TIMEOUT_S = 30.0
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Lost(Exception):
    """The chassis do not answer; the message says why."""


class ChassisControl:
    """``ready`` is the chassis' ready file."""

    def __init__(self, ready: Path) -> None:
        self._ready = ready

    def ask(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """The answer.

        Raises Lost.
        """
        return self.read(self.open(path, method=method, body=body)[1])

    @staticmethod
    def read(response: HTTPResponse) -> Any:
        """The JSON of an answer. Raises Lost."""
        try:
            return json.loads(response.read())
        except (OSError, HTTPException, ValueError) as error:
            raise Lost(str(error)) from error
        finally:
            response.close()

    def open(
        self, path: str, headers: Mapping[str, str] = _NO_HEADERS, *, method: str = "GET", body: Any = None
    ) -> tuple[HTTPConnection, HTTPResponse]:
        """A connection and the beginning of an answer with status 200.

        Raises Lost.
        """
        content = None if body is None else json.dumps(body)
        try:
            ready = json.loads(self._ready.read_text(encoding="utf-8"))
            control = ready["control"]
            connection = _connection(control["url"], ready.get("ca"))
            bearer = {"Authorization": f"Bearer {control['token']}", "Content-Type": "application/json"}
            bearer["Connection"] = "close"
            connection.request(method, path, body=content, headers={**bearer, **headers})
            response = connection.getresponse()
        except (OSError, HTTPException, ValueError, KeyError) as error:
            raise Lost(f"{self._ready}: {error}") from error
        if response.status != 200:
            text = response.read(1000).decode("utf-8", "replace")
            raise Lost(f"{path}: HTTP {response.status}: {text}")
        return connection, response


def _connection(url: str, authority: str | None) -> HTTPConnection:
    place = urlsplit(url)
    if place.scheme != "https":
        return HTTPConnection(place.hostname or "", place.port, timeout=_TIMEOUT_S)
    trusted = ssl.create_default_context(cafile=authority)
    return HTTPSConnection(place.hostname or "", place.port, timeout=_TIMEOUT_S, context=trusted)
