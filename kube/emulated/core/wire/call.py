"""One HTTP request on its way through the API server, and the answers it may get."""

from __future__ import annotations

import contextlib
import json
import secrets
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from aiohttp import web
from msgspec import Struct, field

from mews.kube.api.errors import ApiError, BadRequestError
from mews.kube.emulated.core.store.json_errors import not_a_struct
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.long_work import LongWorkThread, aside
from mews.kube.emulated.core.store.shelf import WatchInbox
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.core.wire import negotiation
from mews.kube.emulated.core.wire.event_texts import EventTexts, WatchBeat
from mews.kube.emulated.core.wire.negotiation import Form
from mews.kube.emulated.core.wire.request_metrics import RequestMetrics
from mews.kube.emulated.core.wire.routes import Route
from mews.kube.emulated.ports.kubelets import KubeletDirectory
from mews.kube.emulated.types.strictness import json_type
from mews.listening.connections import BodyError, BusyError, read_at_most
from mews.listening.limits import BODY_BYTES

T = TypeVar("T")

MAX_BODY = BODY_BYTES
_SUMMARY = 30
"""Bytes of a body that a refusal shows."""


class ServerContext(Struct):
    """What all requests share. ``access`` is for ``packs.access`` (``access_of``); ``watches`` are the open ones, to be
    ended when the server stops."""

    store: Store
    kubelets: KubeletDirectory
    access: object
    patience_s: float
    texts: EventTexts = field(default_factory=EventTexts)
    beat: WatchBeat = field(default_factory=WatchBeat)
    watches: dict[WatchInbox, None] = field(default_factory=dict)
    metrics: RequestMetrics = field(default_factory=RequestMetrics)
    long_work: LongWorkThread = field(default_factory=LongWorkThread)


class Call(Struct, frozen=True):
    """A request for a resource."""

    world: ServerContext
    request: web.BaseRequest
    user: User
    route: Route
    kind: Kind
    forms: list[Form]
    warnings: list[str] = field(default_factory=list)

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the request's query."""
        return self.request.query

    @property
    def namespace(self) -> str:
        """The namespace of the path; "" for resources without one."""
        return self.route.namespace or ""

    @property
    def media(self) -> str:
        """The media type to answer in."""
        return self.forms[0].media

    def answer(self, body: Any, status: int = 200) -> web.Response:
        """Return the body in the client's media type."""
        return answer(body, status=status, media=self.media)


def headers() -> dict[str, str]:
    """Return the headers that every response bears."""
    audit = uuid.UUID(bytes=secrets.token_bytes(16), version=4)
    return {"Cache-Control": "no-cache, private", "Audit-Id": str(audit)}


def warning(text: str) -> str:
    """Return the value of a Warning header."""
    return f"299 - {json.dumps(text, ensure_ascii=False)}"


def answer(
    body: Any,
    *,
    status: int = 200,
    media: str = negotiation.JSON,
    content_type: str = "",
    cache: str = "no-cache, private",
    ends_line: bool = True,
) -> web.Response:
    """Return a body as a response. Upstream's writer of objects ends JSON with a line break, its other writers do
    not."""
    typed = {**headers(), "Cache-Control": cache, "Content-Type": content_type or media}
    if ends_line and media == negotiation.JSON:
        return ObjectResponse(body, status, typed)
    return web.Response(body=negotiation.encode(body, media), status=status, headers=typed)


class ObjectResponse(web.Response):
    """An object in JSON, as upstream's writer of objects has it: in one line, unless ``indent`` makes it several."""

    def __init__(self, content: Any, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(body=negotiation.encode(content) + b"\n", status=status, headers=headers)
        self._content = content

    def indent(self) -> None:
        """Write it for people, without a line break at the end."""
        self.body = negotiation.encode(self._content, indented=True)


def indented(body: Any) -> web.Response:
    """Return a body as JSON that is indented for people."""
    typed = {**headers(), "Content-Type": negotiation.JSON}
    return web.Response(body=negotiation.encode(body, indented=True), headers=typed)


def text(body: str, status: int = 200) -> web.Response:
    """Make a response of plain text; errors as Go's net/http has them."""
    sniffing = {} if status < 400 else {"X-Content-Type-Options": "nosniff"}
    return web.Response(text=body, status=status, headers={**headers(), **sniffing})


def refuse(error: ApiError, request: web.BaseRequest) -> web.Response:
    """Return the error's Status, as YAML where the client asks for that, and indented where it asks for nothing that
    there is (responsewriters, WriteRawJSON)."""
    media = ""
    with contextlib.suppress(ApiError):
        media = negotiation.accepted(request.headers.get("Accept", ""))[0].media
    response = answer(error.status(), status=error.code, media=media or negotiation.JSON)
    if not media and isinstance(response, ObjectResponse):
        response.indent()
    if error.details.get("retryAfterSeconds"):
        response.headers["Retry-After"] = str(error.details["retryAfterSeconds"])
    for text in error.warnings:
        response.headers.add("Warning", warning(text))
    return response


async def read_body(request: web.BaseRequest) -> bytes:
    """Return the raw body; 413 when it is too large, 400 when it cannot be read."""
    try:
        body = await read_at_most(request, MAX_BODY)
    except BusyError:
        raise
    except BodyError as error:
        raise BadRequestError(str(error)) from error
    if body is None:
        raise ApiError(f"Request entity too large: limit is {MAX_BODY}", code=413, reason="RequestEntityTooLarge")
    return body


def _summary(raw: bytes) -> str:
    """Return the beginning of a body: as text when it looks like JSON, else as hexadecimal."""
    if not raw:
        return "<empty>"
    shown = raw[:_SUMMARY].decode(errors="replace") if raw.startswith(b"{") else raw[:_SUMMARY].hex()
    return shown if len(raw) <= _SUMMARY else f"{shown} ..."


async def read_object(call: Call) -> tuple[dict[str, Any], bytes]:
    """Return the body as an object, and as it came; 400 for what is none."""
    request, kind = call.request, call.kind.resource.kind
    raw = await read_body(request)
    try:
        body = await _decoded(call, raw)
        if body is None:
            body = {}
        if not isinstance(body, dict):
            raise BadRequestError(f"couldn't get version/kind; json parse error: {not_a_struct(body)}")
        for name in ("apiVersion", "kind"):
            if body.get(name) is not None and not isinstance(body[name], str):
                reason = f"json: cannot unmarshal {json_type(body[name])} into Go struct field .{name} of type string"
                raise BadRequestError(f"couldn't get version/kind; json parse error: {reason}")
    except BadRequestError as error:
        reason = error.message.removeprefix("error converting YAML to JSON: ")
        text = f"the object provided is unrecognized (must be of type {kind}): {reason} ({_summary(raw)})"
        raise BadRequestError(text) from None
    if call.kind.custom:
        _check_type(call.kind, body, raw.decode(errors="replace"))
    return body, raw


_SHOWN = 30
_SLOW_YAML = 16 * 1024
"""Bytes of a text in YAML that is parsed beside the loop: a hundred times as slow as JSON."""


_LARGE = 128 * 1024
"""Bytes of any other body that is read beside the loop."""


async def _decoded(call: Call, raw: bytes) -> Any:
    kind, release = call.request.headers.get("Content-Type", ""), call.kind.release
    return await read_aside(call, raw, lambda: negotiation.decode(raw, kind, release), yaml="yaml" in kind)


async def read_aside(call: Call, raw: bytes, read: Callable[[], T], *, yaml: bool = False) -> T:
    """Return what is read of a body, beside the loop where that takes long.

    Raises what ``read`` raises, TooManyRequestsError, ApiError (504).
    """
    if len(raw) <= (_SLOW_YAML if yaml else _LARGE):
        return read()
    return await aside(read, call.world.long_work)


async def yaml_of(call: Call, raw: bytes) -> tuple[Any, list[str]]:
    """Return a body in YAML and what of it is there twice.

    Raises BadRequestError.
    """
    return await read_aside(call, raw, lambda: negotiation.parse_yaml_strictly(raw), yaml=True)


def _check_type(kind: Kind, body: Mapping[str, Any], raw: str) -> None:
    """Of a custom object nothing tells what it is but itself."""
    if not body.get("kind"):
        shown = raw if len(raw) <= _SHOWN else f"{raw[:_SHOWN]} ..."
        text = (
            f"the object provided is unrecognized (must be of type {kind.resource.kind}): Object 'Kind' is missing in"
        )
        raise BadRequestError(f"{text} '{raw}' ({shown})")
    if not body.get("apiVersion"):
        expected = kind.resource.api_version
        raise BadRequestError(f"the API version in the data () does not match the expected API version ({expected})")
