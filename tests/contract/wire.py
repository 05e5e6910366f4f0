"""Backends of the dialect suite: the dialects themselves, and the same behind a real socket."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from mews.dialects import OURS
from mews.emulator.clock import EmulatedClock
from mews.emulator.dialects.app import route
from mews.emulator.dialects.fm.service import PREFIXES
from mews.emulator.dialects.registry import face_of
from mews.emulator.dialects.wire import Dropped, Request, split_target
from mews.emulator.hardware.chassis_profiles import parse_profile
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.inventory_file import load_hardware
from mews.emulator.rack import Rack
from mews.emulator.serve import ChassisServer

FIXTURES = Path(__file__).parents[2] / "fixtures" / "hardware"


class GoneError(Exception):
    """The connection ended without an answer."""


class Backend(Protocol):
    """Carries a request to chassis A."""

    rack: Rack
    password: str

    def send(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, str, dict[str, str]]:
        """Status, body, headers with lower-case names. Raises GoneError."""
        ...


class InProcess:
    """The dialects without a socket."""

    def __init__(self, hardware: Hardware) -> None:
        self.rack = Rack(hardware, clock=EmulatedClock(1000))
        self._dialects = {name: self.rack.speak("A", partial(face_of(name).make, settings=None)) for name in OURS}
        self.password = self._dialects["redfish"].password
        self._answer = route({name: self._face(name) for name in OURS}, {name: face_of(name).prefix for name in OURS})

    def _face(self, name):
        return lambda request: self.rack.answer("A", self._dialects[name], request)

    def send(self, method, path, body=b"", headers=None):
        large = len(body) > 1 << 20
        lower = {name.lower(): value for name, value in (headers or {}).items()}
        path, query = split_target(path)
        reply = self._answer(Request(method, path, query, lower, b"" if large else body, large))
        if isinstance(reply, Dropped):
            raise GoneError
        return reply.status, reply.body.decode(), {name.lower(): value for name, value in reply.headers.items()}


class OverHttp:
    """The same through cheroot and a TCP connection, dialects with a login under TLS."""

    def __init__(self, server: ChassisServer) -> None:
        self.rack = server.rack
        self.password = server.password
        ready = server.ready()
        self.address, self._secure = (ready["chassis"]["A"][name].partition("://")[2] for name in ("h3api", "redfish"))
        self._trusted = ssl.create_default_context(cafile=ready["ca"])

    def send(self, method, path, body=b"", headers=None):
        connection = self.connection(path)
        try:
            connection.request(method, path, body or None, headers or {})
            response = connection.getresponse()
            text = response.read().decode()
            return response.status, text, {name.lower(): value for name, value in response.getheaders()}
        except http.client.RemoteDisconnected:
            raise GoneError from None
        finally:
            connection.close()

    def connection(self, path):
        """One more, to the port that has the path."""
        if not path.startswith(("/redfish", *PREFIXES)):
            return http.client.HTTPConnection(self.address, timeout=60)
        return http.client.HTTPSConnection(self._secure, timeout=60, context=self._trusted)


@contextmanager
def backend(kind: str, hardware: str = "demo", profile: Any = None) -> Iterator[Backend]:
    """A running backend with the given fixture, and another profile if one is given."""
    loaded = with_profile(load_hardware(FIXTURES / f"{hardware}.yaml"), profile)
    if kind == "in-process":
        made = InProcess(loaded)
        made.rack.start()
        try:
            yield made
        finally:
            made.rack.stop()
        return
    server = ChassisServer(loaded, context=EmulationContext(speed=1000))
    server.start()
    try:
        yield OverHttp(server)
    finally:
        server.stop()


def with_profile(hardware: Hardware, profile: Any) -> Hardware:
    """The hardware with another profile in all chassis, if one is given."""
    if profile is None:
        return hardware
    chassis = tuple(replace(spec, profile=parse_profile(profile, spec.name)) for spec in hardware.chassis)
    return replace(hardware, chassis=chassis)
