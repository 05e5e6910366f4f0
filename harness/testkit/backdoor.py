"""A plain synchronous client of the back doors (dialect ``control``) of chassis and hosts."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

_TIMEOUT_S = 10.0


class BackDoor:
    """``control`` is ``{"url", "token"}`` of a ready file, ``ca`` the file of the authority to trust, None over plain
    HTTP."""

    def __init__(self, control: Mapping[str, str], ca: str | None) -> None:
        self._control = control
        self._trusted = ssl.create_default_context(cafile=ca) if ca and control["url"].startswith("https") else None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer.

        Raises ValueError with a refusal, OSError where nobody answers.
        """
        __tracebackhide__ = True
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._control['token']}", "Content-Type": "application/json"}
        request = Request(self._control["url"] + path, data=data, method=method, headers=headers)
        try:
            with urlopen(request, timeout=_TIMEOUT_S, context=self._trusted) as answer:
                return json.loads(answer.read() or b"{}")
        except HTTPError as error:
            with error:
                text = error.read().decode(errors="replace").strip()
        raise ValueError(f"{method} {path}: {_refusal(text)}")


def _refusal(text: str) -> str:
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return text
