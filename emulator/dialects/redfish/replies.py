"""Replies with the headers that the protocol asks for (DSP0266, response headers)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from mews.emulator.dialects.redfish.schemas import described_by
from mews.emulator.dialects.wire import Response, Stream, as_json

JSON_TYPE = "application/json; charset=utf-8"


class PreparedReply(Struct, frozen=True):
    """A reply before it is put on the wire; ``body`` is JSON, or bytes of the type that the headers say."""

    status: int
    body: Mapping[str, Any] | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Stream | None = None


def dress(reply: PreparedReply, *, head: bool) -> Response:
    """Return the reply on the wire; to HEAD all of it but the body."""
    headers = {"OData-Version": "4.0", "Cache-Control": "no-cache"}
    content = b""
    if isinstance(reply.body, bytes):
        content = reply.body
    elif reply.body is not None:
        headers["Content-Type"] = JSON_TYPE
        content = as_json(reply.body)
        link = described_by(reply.body)
        if link:
            headers["Link"] = link
    headers.update(reply.headers)
    if head:
        headers["Content-Length"] = str(len(content))
    return Response(reply.status, headers, b"" if head else content, reply.stream)
