"""Dialect ``control`` of the hosts: the back door of an engineer in front of the servers, as that of the chassis.

| verb and path | body or query | answer |
|---|---|---|
| GET /v1/hosts | | host -> what it sees (``Host.view``) |
| POST /v1/operate | ``{host, action, wait_s}`` | ``{"result": "done"}``, a refusal's code, or ``waiting`` |
| GET /v1/faults | | host -> list of faults in place |
| POST /v1/faults | ``{host, spec}`` | 201 ``{"fault": id}`` |
| DELETE /v1/faults | ``?host=host-1``, optional | ``{}`` |
| GET, PUT /v1/speed | ``{"speed": 2}`` | ``{"speed": 2.0}`` |
| GET /v1/events | ``?since=N`` | ``{"events": […], "seq": N}``; a feed for ``Accept: text/event-stream`` |
"""

from __future__ import annotations

from typing import Any

from mews.emulator.dialects.control_time import time_routes
from mews.emulator.dialects.loopback_guard import LoopbackGuard
from mews.emulator.dialects.wire import Request, Response, read_object
from mews.emulator.hostd.rack import HostRack

LONGEST_WAIT_S = 1e9
"""Emulated seconds for an operator's action."""


class HostControl:
    """Answers control requests about the hosts of one rack; ``remote``: of callers on other machines, too."""

    def __init__(self, rack: HostRack, token: str, *, remote: bool = False) -> None:
        self._rack = rack
        self._door = LoopbackGuard(
            token,
            {
                "/v1/hosts": {"GET": lambda request: (200, rack.view())},
                "/v1/operate": {"POST": self._operate},
                "/v1/faults": {"GET": self._faults, "POST": self._add_fault, "DELETE": self._clear_faults},
                **time_routes(rack.clock, rack.feed),
            },
            remote=remote,
        )

    def refused(self, request: Request, address: str) -> Response | None:
        """Return the refusal of a caller that is not on this machine or has no token; None lets it in."""
        return self._door.refused(request, address)

    def answer(self, request: Request) -> Response:
        """Return the answer to a request that was let in."""
        return self._door.answer(request)

    def _operate(self, request: Request) -> tuple[int, Any]:
        body = read_object(request.body)
        action, wait_s = body.get("action"), body.get("wait_s", 0)
        if not isinstance(action, dict) or isinstance(wait_s, bool) or not isinstance(wait_s, int | float):
            raise ValueError("action must be a mapping with do, wait_s a number of seconds")
        if not -LONGEST_WAIT_S <= wait_s <= LONGEST_WAIT_S:
            raise ValueError(f"wait_s: must be at most {LONGEST_WAIT_S:g} s")
        return 200, {"result": self._rack.operate(str(body.get("host")), action, float(wait_s))}

    def _faults(self, request: Request) -> tuple[int, Any]:
        with self._rack.acting():
            return 200, {name: self._rack.host(name).faults.listed() for name in self._rack.names()}

    def _add_fault(self, request: Request) -> tuple[int, Any]:
        body = read_object(request.body)
        with self._rack.acting() as now_s:
            return 201, {"fault": self._rack.host(str(body.get("host"))).faults.add(body.get("spec") or {}, now_s)}

    def _clear_faults(self, request: Request) -> tuple[int, Any]:
        self._rack.clear(request.query.get("host"))
        return 200, {}
