"""Dialect ``h3api``: the management server of a Falcon 4005 (contract chassis.md 2, from logs of the real boxes).

Not known from the real boxes and marked "assumed": the remarks of failures, HTTP statuses other than 200, the path's
answer to other verbs, the ``action`` of an attach reply. Clients look at ``result`` only.
"""

from __future__ import annotations

import re
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

RESOURCES = "/h3api/v1/resources"
ALLOCATION = "/h3api/v1/allocation"
GID = re.compile(r"([0-9A-Fa-f]+)h")

REMARKS: Mapping[str, str] = MappingProxyType(
    {
        "done": "done",
        "unknown-device": "device not found",
        "already-attached": "device already assigned",
        "missing-port": "port not given",
        "unknown-port": "port not found",
        "uncabled-port": "port link down",
        "link-down": "link timeout",
        "not-stored": "internal error",
        "lie": "link timeout",
        "bad-json": "invalid request",
        "too-large": "request too large",
        "bad-gep": "gep not found",
        "method": "method not allowed",
        "path": "not found",
    }
)
"""Reason -> remark. All but ``done`` are assumed; give others to ``H3ApiFace`` once they are known."""


def port_gid(port: str) -> str:
    """Return the ``Port_GID`` of a ``Port#``: hexadecimal and an h (48 -> 30h, 0 -> 00h)."""
    return f"{int(port):02X}h"


class H3ApiFace:
    """One chassis as its management server shows it."""

    def __init__(self, box: EmulatedChassis, remarks: Mapping[str, str] = REMARKS) -> None:
        self._box = box
        self._remarks = remarks
        self._shown: tuple[tuple[DeviceRow, ...], Response] | None = None

    def begin(self, request: Request, now_s: float) -> Pending:
        """Read the request, begin what it asks for."""
        if request.path == RESOURCES:
            if request.method != "GET":
                return self._failed(now_s, "list", "method", 405, "GET")
            return Pending(now_s, operation=self._box.begin_read(now_s), render=self._resources)
        if request.path == ALLOCATION:
            return self._allocation(request, now_s)
        return self._failed(now_s, "none", "path", 404)

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
            return self._failed(now_s, "none", "method", 405, "POST, DELETE")
        action = "assign" if request.method == "POST" else "unassign"
        if request.too_large:
            return self._failed(now_s, action, "too-large", 413)
        try:
            body = read_strings(request.body, ("gep", "port_gid", "dev_gid"))
        except JsonError:
            return self._failed(now_s, action, "bad-json", 400)
        if body["gep"] not in ("", "0"):
            return self._failed(now_s, action, "bad-gep", 200)
        if action == "assign":
            operation = self._box.begin_attach(body["dev_gid"], _port(body["port_gid"]), now_s)
        else:
            operation = self._box.begin_detach(body["dev_gid"], now_s)
        return Pending(now_s, operation=operation, render=lambda answer: self._result(action, answer))

    def _result(self, action: str, answer: Answer) -> Response:
        reason = "done" if answer.ok else answer.refusal.code if answer.refusal else "lie"
        return self._reply(action, answer.ok, reason, 200)

    def _failed(self, now_s: float, action: str, reason: str, status: int, allow: str = "") -> Pending:
        return Pending(now_s, reply=self._reply(action, False, reason, status, allow))

    def _reply(self, action: str, ok: bool, reason: str, status: int, allow: str = "") -> Response:
        remark = self._remarks.get(reason, reason)
        headers = {**JSON, "Allow": allow} if allow else JSON
        return Response(status, headers, as_json({"action": action, "result": [ok], "remark": remark}))

    def _resources(self, answer: Answer) -> Response:
        shown = self._shown
        if shown is None or shown[0] is not answer.rows:
            shown = self._shown = (answer.rows, Response(200, JSON, as_json(self._records(answer.rows))))
        return shown[1]

    def _records(self, rows: tuple[DeviceRow, ...]) -> list[dict[str, str]]:
        devices = [
            {
                "dev_type": row.kind,
                "Dev_GID": row.device,
                "Host_Port#": row.port or "",
                "OB_GPU_GUID": row.uuid,
            }
            for row in rows
        ]
        return devices + [{"Port#": port, "Port_GID": port_gid(port)} for port in self._box.spec.ports]


def _port(gid: str) -> str:
    """Return the ``Port#`` of a ``Port_GID``; what is none is handed on as it is and refused by the core."""
    match = GID.fullmatch(gid)
    return str(int(match[1], 16)) if match else gid


FACE = DialectFace(lambda box, settings: H3ApiFace(box), prefix="/h3api/")
