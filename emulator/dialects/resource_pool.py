"""Dialect ``resource-pool``: KubeComp's published simulator (contract chassis.md 3).

Order of checks: payload, device, attached already, host port given. Beyond the published one, which takes any host
port, an unknown or uncabled port is refused; those texts, and what it says when the chassis fails, are assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.operation import Answer, OperationOutcome
from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.wire import (
    JSON,
    TEXT,
    DialectFace,
    Dropped,
    JsonError,
    Pending,
    Request,
    Response,
    as_json,
    read_strings,
)

RESOURCES = "/resources"
ALLOCATION = "/allocation"

BAD_PAYLOAD = (400, "Invalid request payload")
FAILURES: Mapping[str, tuple[int, str]] = MappingProxyType(
    {
        "unknown-device": (404, "Device not found"),
        "already-attached": (400, "Device is already attached. Detach it first."),
        "missing-port": (400, "HostPort is not given."),
        "unknown-port": (400, "HostPort not found"),
        "uncabled-port": (400, "HostPort is not connected"),
        "link-down": (500, "Device link is down"),
        "not-stored": (500, "Internal Server Error"),
        "half-applied": (500, "Internal Server Error"),
    }
)
"""Reason -> status and text. The first three are the contract's; the others are assumed."""


class ResourcePoolFace:
    """One chassis as KubeComp's simulator shows one."""

    def __init__(self, box: EmulatedChassis, failures: Mapping[str, tuple[int, str]] = FAILURES) -> None:
        self._box = box
        self._failures = failures
        self._shown: tuple[tuple[DeviceRow, ...], Response] | None = None

    def begin(self, request: Request, now_s: float) -> Pending:
        """Read the request, begin what it asks for."""
        if request.path == RESOURCES:
            if request.method != "GET":
                return _refused(now_s, 405, "Method Not Allowed", "GET")
            return Pending(now_s, operation=self._box.begin_read(now_s), render=self._resources)
        if request.path == ALLOCATION:
            return self._allocation(request, now_s)
        return _refused(now_s, 404, "404 page not found")

    def finish(self, pending: Pending, now_s: float) -> Response | Dropped:
        """Return the answer."""
        if pending.operation is None or pending.render is None:
            assert pending.reply is not None
            return pending.reply
        answer = self._box.finish(pending.operation, now_s)
        if answer.outcome is OperationOutcome.DROPPED:
            return Dropped()
        if answer.outcome is OperationOutcome.ERROR:
            return Response(answer.status, TEXT, b"Internal Server Error")
        return pending.render(answer)

    def _allocation(self, request: Request, now_s: float) -> Pending:
        if request.method not in ("POST", "DELETE"):
            return _refused(now_s, 405, "Method Not Allowed", "POST, DELETE")
        try:
            if request.too_large:
                return _refused(now_s, *BAD_PAYLOAD)
            body = read_strings(request.body, ("devid", "hostport"))
        except JsonError:
            return _refused(now_s, *BAD_PAYLOAD)
        if request.method == "POST":
            operation = self._box.begin_attach(body["devid"], body["hostport"], now_s)
        else:
            operation = self._box.begin_detach(body["devid"], now_s)
        return Pending(now_s, operation=operation, render=self._result)

    def _result(self, answer: Answer) -> Response:
        ok = answer.truth if answer.lie else answer.ok
        if ok:
            return Response(204, {}, b"")
        status, text = self._failures[answer.refusal.code if answer.refusal else "half-applied"]
        return Response(status, TEXT, text.encode())

    def _resources(self, answer: Answer) -> Response:
        shown = self._shown
        if shown is None or shown[0] is not answer.rows:
            records = [{"devid": row.device, "uuid": row.uuid, "hostport": row.port or ""} for row in answer.rows]
            shown = self._shown = (answer.rows, Response(200, JSON, as_json(records or None)))
        return shown[1]


def _refused(now_s: float, status: int, text: str, allow: str = "") -> Pending:
    headers = {**TEXT, "Allow": allow} if allow else TEXT
    return Pending(now_s, reply=Response(status, headers, text.encode()))


FACE = DialectFace(lambda box, settings: ResourcePoolFace(box))
