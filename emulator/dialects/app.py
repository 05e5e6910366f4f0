"""Flask faces: a request is read, carried to a chassis or to control, and its answer written. No rules here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import IO

from flask import Flask, request
from flask import Response as FlaskResponse
from msgspec.structs import replace
from werkzeug.routing import Rule

from mews.emulator.dialects.wire import MAX_BODY, UNREADABLE, Dropped, Request, Response, Stream

DROP = "mews.drop"
"""WSGI environ key by which the server is told to end the connection without an answer."""

CLOSE = "mews.close"
"""WSGI environ key by which the server is told to end the connection after the answer."""

ARRIVED = "mews.arrived"
"""WSGI environ key of what is called once a request was read to its end."""

DRAINED = 64 << 20
"""Bytes of an overlong body that are read and thrown away, so that its sender hears the answer."""

Answer = Callable[[Request], Response | Dropped]


class FlaskWireResponse(FlaskResponse):
    """A response without headers of its own making."""

    default_mimetype = None


def wire_app(answer: Answer, admit: Callable[[Request], Response | None] = lambda head: None) -> Flask:
    """Return an app that hands every request, whatever its verb and path, to ``answer``.

    ``admit`` sees it first, without its body: who is not let in gets the refusal and is not listened to any longer.
    """
    app = Flask("mews", static_folder=None)
    app.response_class = FlaskWireResponse
    app.url_map.merge_slashes = False
    for path in ("/", "/<path:path>"):
        app.url_map.add(Rule(path, endpoint="wire", merge_slashes=False))

    def wire(path: str = "") -> FlaskResponse:
        head = read_head()
        refusal = admit(head)
        if refusal is not None:
            request.environ[CLOSE] = True
            return write_response(refusal)
        reply = answer(with_body(head))
        if isinstance(reply, Dropped):
            request.environ[DROP] = True
            return FlaskWireResponse()
        return write_response(reply)

    app.view_functions["wire"] = wire
    # Routing knows no path with a line break in it: that is answered in the dialect's words, too.
    app.register_error_handler(404, lambda error: wire())
    return app


def read_head() -> Request:
    """Return the current Flask request without its body."""
    return Request(
        method=request.method,
        path=request.path,
        query=request.args.to_dict(),
        repeated={name: tuple(values) for name, values in request.args.lists() if len(values) > 1},
        headers={name.lower(): value for name, value in request.headers.items()},
        secure=request.is_secure,
        address=request.remote_addr or "",
    )


def with_body(head: Request) -> Request:
    """Return the current Flask request, read to its end. A body over ``MAX_BODY`` is drained and left out; for one
    whose framing makes no sense ``UNREADABLE`` stands, and the connection ends."""
    try:
        body, too_large = _body(request.stream)
    except (ValueError, OSError):
        request.environ[CLOSE] = True
        body, too_large = UNREADABLE, False
    request.environ.get(ARRIVED, lambda: None)()
    return replace(head, body=body, too_large=too_large)


def _body(stream: IO[bytes]) -> tuple[bytes, bool]:
    body = stream.read(MAX_BODY + 1)
    if len(body) <= MAX_BODY:
        return body, False
    left = DRAINED
    while left > 0 and (chunk := stream.read(min(left, 1 << 16))):
        left -= len(chunk)
    return b"", True


def write_response(reply: Response) -> FlaskResponse:
    """Return the Flask response of a reply."""
    body = reply.body if reply.stream is None else _bits(reply.stream)
    response = FlaskWireResponse(body, reply.status)
    for name, value in reply.headers.items():
        response.headers[name] = value
    if reply.stream is not None:
        response.call_on_close(reply.stream.close)
    return response


def _bits(stream: Stream) -> Iterator[bytes]:
    """Yield a comment first, so that the reader knows it is heard; whoever made the stream waits within ``take``."""
    yield b": mews\n\n"
    while (taken := stream.take()) is not None:
        yield from taken or (b": still here\n\n",)


def route(dialects: Mapping[str, Answer], prefixes: Mapping[str, str | tuple[str, ...]]) -> Answer:
    """Return one answer for several dialects on one port: the longest matching prefix wins, without any the last
    dialect."""
    pairs = [(prefix, name) for name in dialects for prefix in _all(prefixes.get(name, "/"))]
    ordered = sorted(pairs, key=lambda pair: (-len(pair[0]), pair[1]))

    def answer(asked: Request) -> Response | Dropped:
        for prefix, name in ordered:
            if asked.path.startswith(prefix):
                return dialects[name](asked)
        return dialects[ordered[-1][1]](asked)

    return answer


def _all(prefix: str | tuple[str, ...]) -> tuple[str, ...]:
    return (prefix,) if isinstance(prefix, str) else prefix
