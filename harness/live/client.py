"""Asks the server of a live session, as the commands do: blocking, one request at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mews.harness.journal import Line
from mews.harness.live.step_answer import StepAnswer

_PATIENCE_S = 660.0
"""A step may last as long as its own time limit."""

_COMMON = ("t", "layer", "actor", "event", "number")


class NotAnsweringError(Exception):
    """The session does not answer; ``str()`` is one line."""


class SessionClient:
    """``session`` of a ready.json: ``{"url", "token"}``."""

    def __init__(self, session: Mapping[str, str]) -> None:
        self._address = urlsplit(session["url"])
        self._token = session["token"]

    def get(self, path: str) -> Any:
        """Return the answer to a GET.

        Raises ValueError for what is refused, NotAnsweringError.
        """
        return self._ask("GET", path)

    def perform(self, step: Mapping[str, Any]) -> StepAnswer:
        """Do one step.

        Raises ValueError for what is refused, NotAnsweringError.
        """
        answer = self._ask("POST", "/v1/steps", step)
        return StepAnswer(str(answer["reason"]), str(answer["text"]))

    def restore(self, snapshot: Mapping[str, Any]) -> str:
        """Make the session as a snapshot has it: what of it is not as it was, "" for nothing.

        Raises ValueError for what is refused, NotAnsweringError.
        """
        return str(self._ask("POST", "/v1/snapshot", snapshot)["reason"])

    def go_on(self) -> None:
        """Let a stopped run go on.

        Raises ValueError for a session that is not stopped, NotAnsweringError.
        """
        self._ask("POST", "/v1/continue", {})

    def events(self, since: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the lines of the journal from that number on, as they are written; ends with the session.

        Raises ValueError for what is refused, NotAnsweringError.
        """
        connection = self._connection(None)
        try:
            answer = self._sent(connection, "GET", f"/v1/events?since={since}", None)
            for line in answer:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        except (OSError, HTTPException) as error:
            raise NotAnsweringError(f"{self._address.netloc}: {error}") from error
        finally:
            connection.close()

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        connection = self._connection(_PATIENCE_S)
        try:
            return json.loads(self._sent(connection, method, path, body).read())
        except (OSError, HTTPException, ValueError) as error:
            if isinstance(error, ValueError) and not isinstance(error, json.JSONDecodeError):
                raise
            raise NotAnsweringError(f"{self._address.netloc}: {error}") from error
        finally:
            connection.close()

    def _connection(self, timeout_s: float | None) -> HTTPConnection:
        return HTTPConnection(self._address.hostname or "", self._address.port, timeout=timeout_s)

    def _sent(self, connection: HTTPConnection, method: str, path: str, body: Any) -> HTTPResponse:
        headers = {"Authorization": f"Bearer {self._token}"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        if answer.status >= 400:
            text = json.loads(answer.read())["error"]
            if answer.status >= 500:
                raise NotAnsweringError(text)
            raise ValueError(text)
        return answer


def session_of(folder: Path) -> dict[str, str]:
    """``session`` of the ready.json in an instance's folder.

    Raises NotAnsweringError where it is not up yet, or has none.
    """
    try:
        session = json.loads((folder / "ready.json").read_text(encoding="utf-8"))["session"]
        return {"url": str(session["url"]), "token": str(session["token"])}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise NotAnsweringError(f"{folder / 'ready.json'}: does not describe a session yet: {error}") from error


def line_of(row: Mapping[str, Any]) -> Line:
    """Return a line of the journal as the session's server has it."""
    fields = {name: value for name, value in row.items() if name not in _COMMON}
    return Line(row["number"], row["t"], row["layer"], row["actor"], row["event"], fields)
