"""One request and what came back, as the report shows it: without credentials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

HIDDEN = "***"
SECRET_HEADERS = frozenset({"authorization", "x-auth-token", "cookie", "set-cookie"})
_SIGNATURE = re.compile(r'("(?:access|refresh|id)_token"\s*:\s*"[\w-]*\.[\w-]*\.)[\w-]+')
MOST_TEXT = 2000
"""Characters of a body that a report shows; a recording keeps all."""


class Exchange(Struct, frozen=True):
    """A request and its reply; ``status`` is None where no answer came, ``error`` then says why. Times in seconds.
    ``clause`` is the one that was being judged, empty for what was sent before and after."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: str
    status: int | None
    reply_headers: Mapping[str, str]
    reply: str
    seconds: float
    error: str = ""
    clause: str = ""

    def as_dict(self, most: int | None = MOST_TEXT) -> dict[str, Any]:
        """Return them for JSON; bodies cut to ``most`` characters."""
        return {
            "request": {
                "method": self.method,
                "path": self.path,
                "headers": dict(self.headers),
                "body": cut(self.body, most),
            },
            "reply": {
                "status": self.status,
                "headers": dict(self.reply_headers),
                "body": cut(self.reply, most),
                "error": self.error,
            },
            "seconds": round(self.seconds, 3),
        }


def cut(text: str, most: int | None) -> str:
    """Return at most that many characters, and how many more there are."""
    if most is None or len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most} more characters)"


def without_secrets(headers: Mapping[str, str], secrets: Iterable[str]) -> dict[str, str]:
    """Return the headers, those that hold credentials hidden."""
    return {name: HIDDEN if name.lower() in SECRET_HEADERS else hide(value, secrets) for name, value in headers.items()}


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return the text without any of these words, and without the signatures of tokens (RFC 7519): what is left of one
    opens nothing, and can still be read."""
    text = _SIGNATURE.sub(rf"\1{HIDDEN}", text)
    for secret in secrets:
        if secret:
            text = text.replace(secret, HIDDEN)
    return text
