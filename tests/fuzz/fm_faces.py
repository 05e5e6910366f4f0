"""The fabric manager's face, with the cluster manager and the token service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote
from urllib.request import Request, urlopen

from mews.emulator.dialects.identities import TENANT, machine_uuid
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from mews.harness.package import room
from tests.contract.fm import AUTOSCALER, FABRIC, FORM, GROUPS, TOKEN, attach_body, detach_body, encoded, raw
from tests.fuzz.faces import PASSWORD, address_of, as_json
from tests.fuzz.judge import Face
from tests.fuzz.requests import Sent


def fm(headers: dict[str, str]) -> list[Sent]:
    """Requests of its clients, with those headers."""
    machine = f"{FABRIC}/machines/{machine_uuid('host-1')}"
    tenant = f"tenant_uuid={TENANT}"
    asked = quote('{"column":"model","operator":"eq","value":"V100"}')
    grow = {"increase_resource_count": {"spec_uuid": "x", "device_count": 5}}
    shrink = {"remove_resources": {"spec_uuid": "x", "device_count": 3, "devices": ["GPU-x"]}}
    return [
        Sent("POST", TOKEN, FORM, encoded(PASSWORD)),
        Sent("POST", TOKEN, FORM, raw(PASSWORD)),
        *(Sent("GET", f"{path}?{tenant}", headers) for path in (f"{FABRIC}/machines", f"{FABRIC}/resources", machine)),
        Sent("GET", f"{machine}/available-reserved-resources?{tenant}&res_type=gpu&condition={asked}", headers),
        as_json("PATCH", f"{machine}/update?{tenant}", attach_body("1"), headers),
        as_json("DELETE", f"{machine}/update?{tenant}", detach_body("1", "000100"), headers),
        Sent("GET", f"{AUTOSCALER}/machines/{machine_uuid('host-1')}", headers),
        *(
            as_json("POST", f"{AUTOSCALER}/machines/{machine_uuid('host-1')}/actions/resize", body, headers)
            for body in (grow, shrink)
        ),
        Sent("GET", GROUPS, headers),
    ]


@contextmanager
def fabric() -> Iterator[list[Face]]:
    """A served fabric manager, in plain HTTP as the other faces of a chassis."""
    hardware = load_hardware(room("fixtures") / "hardware" / "demo.yaml")
    server = ChassisServer(
        hardware, context=EmulationContext(speed=1000.0), password=PASSWORD, insecure=True, dialects=("fm",)
    )
    server.start()
    try:
        url = server.ready()["chassis"]["A"]["fm"]

        def bearer() -> dict[str, str]:
            with urlopen(Request(url + TOKEN, encoded(PASSWORD), FORM)) as answer:
                return {"Authorization": f"Bearer {json.loads(answer.read())['access_token']}"}

        yield [
            Face("fm with a token", address_of(url), fm(bearer()), renewed=lambda: fm(bearer())),
            Face("fm as nobody", address_of(url), fm({})),
        ]
    finally:
        server.stop()
