"""Requests that a chassis recorded, as calls about single devices. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mews.harness.linearizability.lookup import UNKNOWN_END_S, LookupAnswer, LookupCall, LookupKind

NO_ANSWER_FROM = 500

Record = Mapping[str, Any]
"""``{"number", "t", "took_s", "chassis", "dialect", "method", "path", "body", "status", "answer", "agent"}``."""


def calls_of(requests: Iterable[Record]) -> list[LookupCall]:
    """Return the reads, attaches and detaches among them, of the dialects whose answers can be read (``READERS``);
    others are left out. Devices are named ``<chassis>/<device>``, since two chassis may use one ID. A list is a read of
    each device in it."""
    return [call for each in requests if each["dialect"] in READERS for call in READERS[each["dialect"]](each)]


def _resource_pool(request: Record) -> Iterator[LookupCall]:
    # Contract chassis.md 3: 204 is done, 400 refused; an attach that is refused for anything but the device's being
    # attached says nothing of the table.
    answer, body = _json(request["answer"]), _json(request["body"])
    if request["method"] == "GET" and request["path"] == "/resources" and request["status"] == 200:
        yield from (_read(request, row["devid"], row["hostport"]) for row in answer or ())
    elif request["path"] == "/allocation" and isinstance(body, dict) and "devid" in body:
        refused = request["status"] == 400 and "already attached" in request["answer"]
        if request["method"] == "POST" and (refused or _is_done(request) or _is_lost(request)):
            yield _write(request, body["devid"], LookupKind.ATTACH, _answer_of(request, refused), body.get("hostport"))
        elif request["method"] == "DELETE" and (_is_done(request) or _is_lost(request)):
            yield _write(request, body["devid"], LookupKind.DETACH, _answer_of(request, False))


def _h3api(request: Record) -> Iterator[LookupCall]:
    # Contract chassis.md 2: the boolean of a write lies, so that only the list can be believed.
    answer, body = _json(request["answer"]), _json(request["body"])
    if request["method"] == "GET" and request["path"] == "/h3api/v1/resources" and request["status"] == 200:
        rows = (row for row in answer or () if "Dev_GID" in row)
        yield from (_read(request, row["Dev_GID"], row["Host_Port#"]) for row in rows)
    elif request["path"] == "/h3api/v1/allocation" and isinstance(body, dict) and "dev_gid" in body:
        if request["method"] == "POST":
            port = str(int(str(body.get("port_gid", "0")).rstrip("h") or "0", 16))
            yield _write(request, body["dev_gid"], LookupKind.ATTACH, LookupAnswer.UNKNOWN, port)
        elif request["method"] == "DELETE":
            yield _write(request, body["dev_gid"], LookupKind.DETACH, LookupAnswer.UNKNOWN)


READERS: Mapping[str, Callable[[Record], Iterator[LookupCall]]] = {"resource-pool": _resource_pool, "h3api": _h3api}
"""Dialect -> what one of its requests asked."""


def _read(request: Record, device: str, port: str) -> LookupCall:
    return _call(request, device, LookupKind.READ, LookupAnswer.DONE, port or None)


def _write(request: Record, device: str, kind: LookupKind, answer: LookupAnswer, port: str | None = None) -> LookupCall:
    return _call(request, device, kind, answer, port)


def _call(request: Record, device: str, kind: LookupKind, answer: LookupAnswer, port: str | None) -> LookupCall:
    ended_s = UNKNOWN_END_S if answer is LookupAnswer.UNKNOWN else request["t"] + request["took_s"]
    name = f"{request['chassis']}/{device}"
    return LookupCall(request["number"], request["agent"], name, kind, request["t"], ended_s, port, answer)


def _is_done(request: Record) -> bool:
    return bool(request["status"] == 204)


def _is_lost(request: Record) -> bool:
    return request["status"] is None or request["status"] >= NO_ANSWER_FROM


def _answer_of(request: Record, refused: bool) -> LookupAnswer:
    if refused:
        return LookupAnswer.REFUSED
    return LookupAnswer.DONE if _is_done(request) else LookupAnswer.UNKNOWN


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
