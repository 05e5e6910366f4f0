"""Dialect ``control``: the back door of an engineer in front of the boxes. JSON; errors are ``{"error": text}``.

| verb and path | body or query | answer |
|---|---|---|
| GET /v1/table | | chassis -> device -> row (``Fleet.table``) |
| POST /v1/edit | ``{chassis, device, port}``, port null = none | ``{}`` |
| GET /v1/faults | | chassis -> list of faults in place |
| POST /v1/faults | ``{chassis, spec}`` | 201 ``{"fault": id}`` |
| DELETE /v1/faults | ``?chassis=A`` and ``&fault=f1``, both optional | ``{}`` |
| POST /v1/reset | | ``{}`` |
| GET, PUT /v1/speed | ``{"speed": 2}`` | ``{"speed": 2.0}`` |
| GET /v1/events | ``?since=N`` | ``{"events": […], "seq": N}``; a feed for ``Accept: text/event-stream`` |
| GET /v1/requests | ``?since=N`` | ``{"requests": […], "seq": N}``: what clients asked in their dialects |
| GET /v1/inventory | | the hardware |
| POST /v1/devices | ``{chassis, device: {id, uuid, …}}`` | 201 ``{}``: one more device, if a slot is empty |
| DELETE /v1/devices | ``?chassis=A&device=000100`` | ``{}``: pulled out |
| GET /v1/telemetry | | chassis -> device -> what it shows now, and what is ``set`` on it |
| POST /v1/telemetry | ``{chassis, device, set: {power: 100, …}}``, both may be ``all`` | ``{}`` |
| PUT /v1/telemetry/reports | ``{host, reports}``: all that a host has on its boards | ``{}`` |
| GET /v1/telemetry/records | ``?since=VERSION&wait_s=10`` | what hosts show of boards (``TelemetryBulletin``) |
| GET /metrics | | the boards for Prometheus, as text |
| GET /v1/openapi | ``?dialect=control`` (default), ``h3api``, ``resource-pool`` | its OpenAPI 3.1 description |

Only loopback may ask, unless it is served to others, with ``Authorization: Bearer <token>`` or, where a proxy keeps
that header for itself (the API server's), ``X-Mews-Token: <token>``: else 403 or 401.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict, fields

from mews.emulator.dialects.control_telemetry import telemetry_routes
from mews.emulator.dialects.control_time import since, time_routes
from mews.emulator.dialects.loopback_guard import LoopbackGuard, Routes
from mews.emulator.dialects.openapi import document
from mews.emulator.dialects.wire import Request, Response, read_object
from mews.emulator.hardware.cards import KINDS
from mews.emulator.hardware.gpu_profiles import PROFILES as MODELS
from mews.emulator.hardware.inventory import DeviceSpec, HostSpec
from mews.emulator.inventory.reading import is_there
from mews.emulator.rack import Rack
from mews.emulator.rack_telemetry import RackTelemetry


class Control:
    """Answers control requests about one rack; ``remote``: of callers on other machines, too."""

    def __init__(self, rack: Rack, token: str, *, remote: bool = False) -> None:
        self._rack = rack
        routes: Routes = {
            "/v1/table": {"GET": lambda request: (200, rack.table())},
            "/v1/edit": {"POST": self._edit},
            "/v1/faults": {"GET": self._faults, "POST": self._add_fault, "DELETE": self._clear_faults},
            "/v1/reset": {"POST": self._reset},
            **time_routes(rack.clock, rack.feed),
            **telemetry_routes(RackTelemetry(rack)),
            "/v1/requests": {"GET": self._requests},
            "/v1/inventory": {"GET": lambda request: (200, _inventory(rack))},
            "/v1/devices": {"POST": self._insert, "DELETE": self._remove},
            "/v1/openapi": {"GET": lambda request: (200, document(request.query.get("dialect", "control")))},
        }
        self._door = LoopbackGuard(token, routes, remote=remote)

    def refused(self, request: Request, address: str) -> Response | None:
        """Return the refusal of a caller that is not on this machine or has no token; None lets it in."""
        return self._door.refused(request, address)

    def answer(self, request: Request) -> Response:
        """Return the answer to a request that was let in."""
        return self._door.answer(request)

    def _edit(self, request: Request) -> tuple[int, Any]:
        body = read_object(request.body)
        port = body.get("port")
        if port is not None and not isinstance(port, str):
            raise ValueError(f"port {port!r}: must be a string or null")
        with self._rack.box(_text(body, "chassis")) as box:
            box.edits.edit(_text(body, "device"), port, self._rack.clock.now())
        return 200, {}

    def _faults(self, request: Request) -> tuple[int, Any]:
        listed = {}
        for name in self._rack.names():
            with self._rack.box(name) as box:
                box.settle(self._rack.clock.now())  # some may have expired
                listed[name] = box.faults.listed()
        return 200, listed

    def _add_fault(self, request: Request) -> tuple[int, Any]:
        body = read_object(request.body)
        with self._rack.box(_text(body, "chassis")) as box:
            return 201, {"fault": box.faults.add(body.get("spec") or {}, self._rack.clock.now())}

    def _clear_faults(self, request: Request) -> tuple[int, Any]:
        chassis = request.query.get("chassis")
        for name in self._rack.names() if chassis is None else (chassis,):
            with self._rack.box(name) as box:
                box.faults.clear(self._rack.clock.now(), request.query.get("fault"))
        return 200, {}

    def _reset(self, request: Request) -> tuple[int, Any]:
        for name in self._rack.names():
            with self._rack.box(name) as box:
                box.reset(self._rack.clock.now())
        return 200, {}

    def _requests(self, request: Request) -> tuple[int, Any]:
        found = self._rack.requests.since(since(request))
        return 200, {"requests": found, "seq": found[-1]["number"] if found else self._rack.requests.number}

    def _insert(self, request: Request) -> tuple[int, Any]:
        body = read_object(request.body)
        device = body.get("device")
        names = [field.name for field in fields(DeviceSpec) if field.name not in OF_A_FILE]
        if not isinstance(device, dict) or not {"id", "uuid"} <= set(device) <= set(names):
            raise ValueError(f"device {device!r}: must be a mapping with id, uuid and any of {', '.join(names[2:])}")
        if not all(isinstance(value, str) for name, value in device.items() if name != "port" or value is not None):
            raise ValueError(f"device {device!r}: every value must be a string, port may be null")
        spec = DeviceSpec(**device)
        if not is_there(spec.kind, spec.model):
            raise ValueError(
                f"device {spec.id}: kind {spec.kind!r} and model {spec.model!r}: the kind must be one of "
                f"{', '.join(KINDS)}, and a GPU's model one of {', '.join(MODELS)}"
            )
        with self._rack.box(_text(body, "chassis")) as box:
            box.edits.insert(spec, self._rack.clock.now())
        return 201, {}

    def _remove(self, request: Request) -> tuple[int, Any]:
        with self._rack.box(_text(request.query, "chassis")) as box:
            box.edits.remove(_text(request.query, "device"), self._rack.clock.now())
        return 200, {}


def _inventory(rack: Rack) -> dict[str, Any]:
    hardware = rack.hardware
    return {
        "name": hardware.name,
        "hosts": [{**_plain(host), "profile": host.profile.name} for host in hardware.hosts],
        "chassis": [
            {
                "name": spec.name,
                "index": spec.index,
                "pool": spec.pool,
                "slots": spec.slots,
                "profile": spec.profile.name,
                "ports": dict(spec.ports),
                "devices": [asdict(device) for device in spec.devices],
            }
            for spec in hardware.chassis
        ],
    }


OF_A_FILE = ("memory_mib", "virtual_functions", "below")
"""What a device of a hardware file can have, and one that is put in by hand cannot."""


def _plain(host: HostSpec) -> dict[str, Any]:
    return {"name": host.name, "cpus": host.cpus, "memory_mib": host.memory_mib}


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} {value!r}: must be a string")
    return value
