"""What the fabric manager says when it does not do what was asked (contract cohdi.md 2.2, Errors)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mews.emulator.dialects.wire import JSON, Response, as_json

FAILURES: Mapping[str, tuple[int, str]] = MappingProxyType(
    {
        "bad-request": (400, "E020001"),
        "too-large": (413, "E020002"),
        "missing-port": (400, "E020003"),
        "uncabled-port": (400, "E020004"),
        "unauthorized": (401, "E020101"),
        "other-tenant": (403, "E020102"),
        "path": (404, "E020201"),
        "unknown-port": (404, "E020202"),
        "unknown-machine": (404, "E020202"),
        "unknown-device": (404, "E020203"),
        "elsewhere": (404, "E020204"),
        "method": (405, "E020205"),
        "already-attached": (409, "E020301"),
        "none-free": (409, "E020302"),
        "link-down": (409, "E020303"),
        "lie": (409, "E020304"),
        "cancelled": (409, "E020305"),
        "not-stored": (507, "E020401"),
        "failed": (500, "E020402"),
    }
)
"""Reason -> status and code, ``E02`` and four digits as the operator's tests write it; which ones is assumed."""


class FabricManagerError(Exception):
    """A request that is not carried out: a reason of ``FAILURES`` and a text for people."""

    def __init__(self, reason: str, text: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(text)
        self.reason, self.headers = reason, headers

    def response(self) -> Response:
        """Return it as it goes over the wire."""
        status, code = FAILURES[self.reason]
        return error_response(status, code, str(self), self.headers)


def error_response(status: int, code: str, text: str, headers: Mapping[str, str] = MappingProxyType({})) -> Response:
    """``{"status": int, "detail": {"code", "message", "data"}}``."""
    body = {"status": status, "detail": {"code": code, "message": text, "data": {}}}
    return Response(status, {**JSON, **headers}, as_json(body))
