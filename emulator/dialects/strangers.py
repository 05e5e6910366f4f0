"""The answer to who may not ask at all (``mews.callers``), in the words of the dialect whose path was asked for."""

from __future__ import annotations

from collections.abc import Callable

from mews.callers import Callers
from mews.emulator.dialects.redfish import messages
from mews.emulator.dialects.wire import JSON, TEXT, Request, Response, as_json

FORBIDDEN = 403
_READS = ("GET", "HEAD", "OPTIONS")


def gate(callers: Callers, reads_only: str = "") -> Callable[[Request], Response | None]:
    """Return what looks at each request's headers before anything else of it: the refusal, or None to let it in.
    ``reads_only``: why nothing but reads is answered, "" where all is."""

    def look(head: Request) -> Response | None:
        text = callers.refusal(head.headers, secure=head.secure)
        if text is None and reads_only and head.method not in _READS:
            text = f"{head.method} {head.path}: {reads_only}"
        return None if text is None else refused(head.path, text)

    return look


def refused(path: str, text: str) -> Response:
    """403 with the error body of the dialect that the path belongs to."""
    if path.startswith("/redfish"):
        body = messages.fail(FORBIDDEN, "InsufficientPrivilege").body()
        body["error"]["message"] = text
        return Response(FORBIDDEN, {**JSON, "OData-Version": "4.0"}, as_json(body))
    if path.startswith("/h3api"):
        return Response(FORBIDDEN, JSON, as_json({"action": "none", "result": [False], "remark": text}))
    if path.startswith("/v1/"):
        return Response(FORBIDDEN, JSON, as_json({"error": text}))
    return Response(FORBIDDEN, TEXT, f"{text}\n".encode())
