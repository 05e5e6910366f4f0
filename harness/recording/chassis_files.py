"""Chassis in collected files: listings, logs of listings and of requests, recordings of `mews conform --record`.

A line of a log has a date and then a listing in JSON, or a request and its reply: ``POST /h3api/v1/allocation {…}
200 {…}``. JSON lines have the keys ``time``, ``method``, ``path``, ``body``, ``status`` and ``answer``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mews.harness.recording.observations import Answer, LostReading, SeenDevice, SeenOperation, TableReading
from mews.harness.recording.stamps import dated
from mews.kube.chassis import h3api, resource_pool
from mews.kube.chassis.port import ChassisError, Listing

_REQUEST = re.compile(r"\b(GET|POST|DELETE|PATCH|PUT)\s+(/[^\s\"]*)")
_STATUS = re.compile(r"(?:^|[^\w.\"])([1-5]\d\d)(?![\w.\"])")
_LOST = re.compile(r"\b(EOF|timeout|timed out|no answer|connection (?:reset|refused|dropped)|refused)\b", re.IGNORECASE)
_PORT = re.compile(r"([0-9A-Fa-f]+)h")
_ZONE = re.compile(r"/Zones/([^/]+)/Actions/#?Zone\.(AddEndpoint|RemoveEndpoint)")

Seen = TableReading | LostReading | SeenOperation


def reading_of(value: Any, chassis: str, at: float | None) -> TableReading | None:
    """Return a listing of h3api or resource-pool; None for other JSON, and for an empty one."""
    if not isinstance(value, list) or not value or not all(isinstance(each, Mapping) for each in value):
        return None
    listing_of = h3api.listing_of if any("Dev_GID" in each for each in value) else resource_pool.listing_of
    try:
        return reading_from(listing_of(json.dumps(value).encode()), chassis, at)
    except ChassisError:
        return None


def reading_from(listing: Listing, chassis: str, at: float | None) -> TableReading:
    """Return a reading as a client of a dialect made it."""
    devices = tuple(SeenDevice(each.device, each.uuid, each.port, each.kind) for each in listing.devices)
    return TableReading(chassis, devices, listing.ports, at)


def from_lines(text: str, chassis: str, year: int) -> tuple[list[Seen], int]:
    """Return what a log's lines show, and how many of them have no date."""
    found: list[Seen] = []
    undated = 0
    for line in text.splitlines():
        at, rest = dated(line, year)
        for seen in _of_line(rest, chassis, at):
            undated += at is None
            if at is not None or isinstance(seen, TableReading):
                found.append(seen)
    return found, undated


def from_json(rows: Iterable[Mapping[str, Any]], chassis: str, year: int) -> tuple[list[Seen], int]:
    """Return the same of JSON lines with a request each."""
    found: list[Seen] = []
    undated = 0
    for row in rows:
        when = next((row[name] for name in ("time", "timestamp", "ts", "at") if row.get(name)), "")
        at, _ = dated(str(when), year)
        reply = next((row[name] for name in ("answer", "reply", "response") if row.get(name)), None)
        status = row.get("status")
        name = str(row.get("chassis") or chassis)
        known = status if isinstance(status, int) else None
        for seen in _exchange(
            str(row["method"]), str(row["path"]), _json(row.get("body")), known, _json(reply), name, at
        ):
            undated += at is None
            if at is not None or isinstance(seen, TableReading):
                found.append(seen)
    return found, undated


def from_recording(exchanges: Iterable[Mapping[str, Any]], chassis: str) -> list[Seen]:
    """Return the first listing of a recording of conform: its own moves come later, and nothing in it has a date."""
    for each in exchanges:
        request, reply = each["request"], each["reply"]
        if request["method"] == "GET" and reply["status"] == 200:
            seen = reading_of(_json(reply["body"]), chassis, None)
            if seen is not None:
                return [seen]
    return []


def _of_line(rest: str, chassis: str, at: float | None) -> Iterator[Seen]:
    request = _REQUEST.search(rest)
    values = list(_values(rest))
    if request is None:
        for _, value in values:
            seen = reading_of(value, chassis, at)
            if seen is not None:
                yield seen
        return
    outside, last = [], request.end()
    for (start, end), _ in values:
        outside.append(rest[last:start])
        last = end
    outside.append(rest[last:])
    status = next((int(found[1]) for part in outside if (found := _STATUS.search(part))), None)
    lost = any(_LOST.search(part) for part in outside)
    bodies = [value for _, value in values]
    is_read = request[1] == "GET"
    body = None if is_read or not bodies else bodies[0]
    replies = bodies if is_read else bodies[1:]
    if status is None and not lost and not replies:
        return  # a request whose reply is not in the log
    yield from _exchange(request[1], request[2], body, status, replies[0] if replies else None, chassis, at, lost=lost)


def _values(text: str) -> Iterator[tuple[tuple[int, int], Any]]:
    decoder, place = json.JSONDecoder(), 0
    while (start := min((i for i in (text.find("{", place), text.find("[", place)) if i >= 0), default=-1)) >= 0:
        try:
            value, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            place = start + 1
            continue
        yield (start, place), value


def _exchange(
    method: str,
    path: str,
    body: Any,
    status: int | None,
    reply: Any,
    chassis: str,
    at: float | None,
    *,
    lost: bool = False,
) -> Iterator[Seen]:
    if method == "GET":
        seen = reading_of(reply, chassis, at)
        if seen is not None:
            yield seen
        elif at is not None and (lost or (status or 0) >= 500):
            yield LostReading(chassis, at, f"HTTP {status}" if status else "no answer")
        return
    asked = _asked(method, path, body)
    if asked is None or at is None:
        return
    kind, device, port = asked
    answer: Answer = "lost" if lost or (status is None and reply is None) else _answer(status, reply)
    yield SeenOperation(chassis, at, kind, device, port, answer, status)


def _asked(method: str, path: str, body: Any) -> tuple[Any, str, str | None] | None:
    """attach or detach, the device, and the port."""
    if not isinstance(body, Mapping):
        return None
    zone = _ZONE.search(path)
    if zone is not None:
        endpoint = str((body.get("Endpoint") or {}).get("@odata.id", "")).rpartition("/")[2]
        attaches = zone[2] == "AddEndpoint"
        return ("attach" if attaches else "detach", endpoint, zone[1] if attaches else None) if endpoint else None
    device = body.get("dev_gid") or body.get("devid")
    if not path.rstrip("/").endswith("/allocation") or not isinstance(device, str):
        return None
    if method == "DELETE":
        return "detach", device, None
    hexadecimal = _PORT.fullmatch(str(body.get("port_gid", "")))
    port = str(int(hexadecimal[1], 16)) if hexadecimal else body.get("hostport")
    return "attach", device, None if port is None else str(port)


def _answer(status: int | None, reply: Any) -> Answer:
    if status is not None and status >= 500:
        return "error"
    result = reply.get("result") if isinstance(reply, Mapping) else None
    if isinstance(result, list) and result:
        return "done" if all(each is True for each in result) else "failed"
    return "failed" if status is not None and status >= 400 else "done"


def _json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None
