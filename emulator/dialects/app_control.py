"""The Flask face of ``control``, with its feed of server-sent events."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from flask import Flask, request
from flask import Response as FlaskResponse

from mews.emulator.dialects.app import CLOSE, FlaskWireResponse, read_head, wire_app, with_body, write_response
from mews.emulator.dialects.control_time import since
from mews.emulator.dialects.wire import JSON, Request, Response, as_json
from mews.emulator.feed import EventFeed

MAX_STREAMS = 64
"""Each open feed holds a thread of the server, which has more."""

HEARTBEAT_S = 10.0
"""Real seconds of silence after which a comment shows whether the reader is still there."""


class ControlBackend(Protocol):
    """A ``control`` of chassis or of hosts."""

    def refused(self, request: Request, address: str) -> Response | None:
        """Return the refusal of a caller, None lets it in."""
        ...

    def answer(self, request: Request) -> Response:
        """Return the answer to a request that was let in."""
        ...


def control_app(
    control: ControlBackend, feed: EventFeed, admit: Callable[[Request], Response | None] = lambda head: None
) -> Flask:
    """Return the app: requests to ``control``, feeds from ``feed``, from callers whom ``admit`` does not refuse."""
    streams = threading.BoundedSemaphore(MAX_STREAMS)
    app = wire_app(control.answer)

    def wire(path: str = "") -> FlaskResponse:
        head = read_head()
        refusal = admit(head) or control.refused(head, head.address)
        if refusal is not None:
            request.environ[CLOSE] = True
            return write_response(refusal)
        asked = with_body(head)
        if asked.path == "/v1/events" and asked.method == "GET" and _wants_feed(asked):
            return _feed(feed, asked, streams)
        return write_response(control.answer(asked))

    app.view_functions["wire"] = wire
    return app


def _wants_feed(asked: Request) -> bool:
    return "text/event-stream" in asked.headers.get("accept", "")


def _feed(feed: EventFeed, asked: Request, streams: threading.BoundedSemaphore) -> FlaskResponse:
    try:
        start = since(asked)
    except ValueError as error:
        return write_response(Response(400, JSON, as_json({"error": str(error)})))
    if not streams.acquire(blocking=False):
        return write_response(Response(503, JSON, as_json({"error": f"all {MAX_STREAMS} feeds are taken"})))
    response = FlaskWireResponse(
        _lines(feed, start), 200, {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
    )
    response.call_on_close(streams.release)
    return response


def _lines(feed: EventFeed, seq: int) -> Iterator[bytes]:
    yield b": mews\n\n"
    while True:
        events = feed.wait(seq, HEARTBEAT_S)
        if events is None:
            return
        if not events:
            yield b": still here\n\n"
        for event in events:
            seq = event["seq"]
            data = json.dumps(event, separators=(",", ":"))
            yield f"id: {seq}\nevent: {event['event']}\ndata: {data}\n\n".encode()
