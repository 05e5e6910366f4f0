"""A back door: who may ask, and which handler answers. JSON; errors are ``{"error": text}``."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable, Mapping
from typing import Any

from mews.emulator.chassis.errors import NotStoredError, RefusalError
from mews.emulator.dialects.wire import JSON, JsonError, Request, Response, as_json

Handler = Callable[[Request], tuple[int, Any]]
Routes = Mapping[str, Mapping[str, Handler]]
"""Path -> verb -> handler."""


class LoopbackGuard:
    """Only loopback may ask, unless it is ``remote``, with ``Authorization: Bearer <token>`` or, where a proxy keeps
    that header for itself (the API server's), ``X-Mews-Token: <token>``: else 403 or 401."""

    def __init__(self, token: str, routes: Routes, *, remote: bool = False) -> None:
        self._token = token
        self._remote = remote
        self._routes = routes

    def refused(self, request: Request, address: str) -> Response | None:
        """Return the refusal of a caller that is not on this machine or has no token; None lets it in."""
        if not self._remote and not _loopback(address):
            return _error(403, f"{address}: control is for this machine only")
        behind_proxy = request.headers.get("x-mews-token")
        given = request.headers.get("authorization", "") if behind_proxy is None else f"Bearer {behind_proxy}"
        if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return _error(401, "Authorization: Bearer <token> is required", {"WWW-Authenticate": "Bearer"})
        return None

    def answer(self, request: Request) -> Response:
        """Return the answer to a request that was let in."""
        verbs = self._routes.get(request.path)
        if verbs is None:
            return _error(404, f"{request.path}: there are {', '.join(self._routes)}")
        if request.method not in verbs:
            return _error(405, f"{request.method}: must be {', '.join(verbs)}", {"Allow": ", ".join(verbs)})
        if request.too_large:
            return _error(413, "the body is too large")
        try:
            status, value = verbs[request.method](request)
        except NotStoredError as refusal:
            return _error(507, str(refusal))
        except RefusalError as refusal:
            return _error(409, str(refusal))
        except (JsonError, ValueError) as error:
            return _error(400, str(error))
        return value if isinstance(value, Response) else Response(status, JSON, as_json(value))


def _loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.split("%")[0]).is_loopback
    except ValueError:
        return False


def _error(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, {**JSON, **(headers or {})}, as_json({"error": text}))
