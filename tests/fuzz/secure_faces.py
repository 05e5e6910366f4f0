"""The faces that TLS is the default of, under TLS. Their framing is the code that the plain ones run; what differs is
how a connection begins and ends, so that the tests send these fewer requests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mews.certificates import Certificates, make_certificates
from mews.emulator.clock import unix_s
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from mews.harness.package import room
from mews.kube.emulated.apiserver.server import ApiServer
from tests.fuzz.faces import (
    BASIC,
    PASSWORD,
    TOKEN,
    address_of,
    api_server,
    control,
    crawled,
    kubernetes,
    on_a_loop,
    redfish,
)
from tests.fuzz.judge import Face


@contextmanager
def certificates() -> Iterator[Certificates]:
    """An authority and what it signed, for a while."""
    with tempfile.TemporaryDirectory(prefix="mews-fuzz-") as folder:
        yield make_certificates(Path(folder), unix_s())


@contextmanager
def secure_chassis() -> Iterator[list[Face]]:
    """A served chassis as ``mews serve`` has it: Redfish and control under TLS."""
    hardware = load_hardware(room("fixtures") / "hardware" / "demo.yaml")
    with certificates() as made:
        server = ChassisServer(
            hardware, context=EmulationContext(speed=1000.0), token=TOKEN, password=PASSWORD, control_tls=made
        )
        server.start()
        try:
            ready, trust = server.ready(), made.client_context()
            [first, *_] = ready["chassis"].values()
            admin = {"Authorization": BASIC, "OData-Version": "4.0"}
            found = crawled(first["redfish"], admin, trust)
            port, back = address_of(first["redfish"]), address_of(ready["control"]["url"])
            yield [
                Face("redfish under TLS as administrator", port, redfish(admin, found), trust),
                Face("redfish under TLS as nobody", port, redfish({}), trust),
                Face("control under TLS with the token", back, control(TOKEN), trust),
                Face("control under TLS without it", back, control("another"), trust),
            ]
        finally:
            server.stop()


@contextmanager
def secure_api() -> Iterator[list[Face]]:
    """A served API as ``mews up`` has it: under TLS, for those who have the token."""
    with (
        certificates() as made,
        on_a_loop(lambda: api_server(TOKEN, made.server_context()), ApiServer.stop) as server,
    ):
        address, trust = address_of(server.url), made.client_context()
        yield [
            Face("kubernetes under TLS with the token", address, kubernetes(TOKEN), trust),
            Face("kubernetes under TLS without it", address, kubernetes(None), trust),
        ]
