"""The part of ``control`` for telemetry: what boards show, what is set on them, what hosts report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.emulator.dialects.loopback_guard import Routes
from mews.emulator.dialects.wire import Request, Response, read_object
from mews.emulator.rack_telemetry import RackTelemetry
from mews.emulator.telemetry.chassis import BoardReport
from mews.emulator.telemetry.exposition import CONTENT_TYPE
from mews.emulator.telemetry.settings import ALL

SET_KEYS = ("chassis", "device", "set")


def telemetry_routes(telemetry: RackTelemetry) -> Routes:
    """Return the paths ``/v1/telemetry`` and ``/metrics``."""

    def set_values(request: Request) -> tuple[int, Any]:
        body = read_object(request.body)
        for key in body:
            if key not in SET_KEYS:
                raise ValueError(f"{key!r}: unknown key; allowed: {', '.join(SET_KEYS)}")
        values = body.get("set")
        if not isinstance(values, dict):
            raise ValueError(f"set {values!r}: must be a mapping, such as {{power: 100}}")
        telemetry.set(_text(body, "chassis"), _text(body, "device"), values)
        return 200, {}

    def report(request: Request) -> tuple[int, Any]:
        body = read_object(request.body)
        host, reports = body.get("host"), body.get("reports")
        if not isinstance(host, str) or not isinstance(reports, dict):
            raise ValueError("host must be a string, reports a mapping of UUIDs")
        telemetry.report(host, {uuid: BoardReport.from_value(value) for uuid, value in reports.items()})
        return 200, {}

    def records(request: Request) -> tuple[int, Any]:
        text = request.query.get("wait_s", "0")
        try:
            wait_s = float(text)
        except ValueError:
            raise ValueError(f"wait_s {text!r}: must be a number of seconds") from None
        return 200, telemetry.bulletin(request.query.get("since", ""), wait_s).as_value()

    def metrics(request: Request) -> tuple[int, Any]:
        return 200, Response(200, {"Content-Type": CONTENT_TYPE}, telemetry.metrics().encode())

    return {
        "/v1/telemetry": {"GET": lambda request: (200, telemetry.readings()), "POST": set_values},
        "/v1/telemetry/reports": {"PUT": report},
        "/v1/telemetry/records": {"GET": records},
        "/metrics": {"GET": metrics},
    }


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name, ALL)
    if not isinstance(value, str):
        raise ValueError(f"{name} {value!r}: must be a string")
    return value
