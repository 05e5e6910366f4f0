"""What configuration manager and layout-apply answer when they do not do what was asked (contract cohdi.md 2.5)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mews.emulator.dialects.wire import Response, as_json

HEADERS: Mapping[str, str] = MappingProxyType(
    {"Content-Type": "application/json; charset=utf-8", "X-Content-Type-Options": "nosniff"}
)
"""Of every reply with a body, as the documents name them."""

LAYOUTS: Mapping[str, tuple[int, str, str]] = MappingProxyType(
    {
        "invalid": (400, "E40001", ""),
        "busy": (409, "E40010", "Already running. Cannot start multiple instances."),
        "unknown": (404, "E40020", "Specified Layout Apply ID is not found"),
        "executed": (409, "E40022", "This layoutapply has already executed."),
        "running": (
            409,
            "E40024",
            "Apply ID cannot be deleted because it is currently being running. Try later again.",
        ),
        "suspended": (409, "E40027", "Suspended data exist. Please resume layoutapply. applyID:[{}]"),
        "lost": (
            409,
            "E40028",
            "Since the process with the specified ID does not exist, change the status from IN_PROGRESS to FAILED.",
        ),
        "lost-rollback": (
            409,
            "E40028",
            "Since the process with the specified ID does not exist, "
            "change the rollbackStatus from IN_PROGRESS to FAILED.",
        ),
        "invalid-layout": (400, "E50001", ""),
        "unknown-nodes": (404, "E50010", "Specified Target Node IDs is not found"),
        "failed": (500, "E40002", "Internal Server Error"),
        "path": (404, "E40020", ""),
        "method": (405, "E40001", ""),
    }
)
"""Reason -> status, code and message of layout-apply; the statuses and codes of ``path`` and ``method`` are assumed."""

INVENTORY: Mapping[str, tuple[int, str, str]] = MappingProxyType(
    {
        "invalid": (400, "badRequest", "Invalid argument."),
        "unknown": (404, "notFound", "The specified ID does not exist."),
        "failed": (500, "internalServerError", "Internal server error."),
        "path": (404, "notFound", "There is nothing at this path."),
        "method": (405, "badRequest", "The method is not allowed."),
    }
)
"""Reason -> status, code and message of the configuration manager."""


class RefusedRequestError(Exception):
    """A request that is not carried out: a reason, a text for people, and members that the body has besides."""

    def __init__(self, reason: str, text: str = "", *, more: Mapping[str, Any] | None = None, allow: str = "") -> None:
        super().__init__(text or reason)
        self.reason, self.text, self.more, self.allow = reason, text, more or {}, allow

    def response(self, *, layouts: bool) -> Response:
        """Return the reply of layout-apply, else of the configuration manager. ``text`` fills the message that has a
        gap."""
        headers = {**HEADERS, "Allow": self.allow} if self.allow else HEADERS
        if layouts:
            status, code, message = LAYOUTS[self.reason]
            shown = message.format(self.text) if message else self.text
            return Response(status, headers, as_json({"code": code, "message": shown, **self.more}))
        status, code, message = INVENTORY[self.reason]
        return Response(status, headers, as_json({"code": code, "message": message, "details": self.text}))


def answered(value: Any, status: int = 200) -> Response:
    """Return a reply with that body."""
    return Response(status, HEADERS, as_json(value))
