"""The face of configuration manager and layout-apply."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mews.emulator.dialects.cdim.groups import DEFAULT_GROUP
from mews.emulator.dialects.cdim.service import API
from mews.emulator.dialects.identities import identity
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from mews.harness.package import room
from tests.contract.cdim import node, of_operator, procedure, resource
from tests.fuzz.faces import address_of, as_json
from tests.fuzz.judge import Face
from tests.fuzz.requests import Sent

LAYOUT = "636ddde1ba"
"""No layout has this ID, which is the documents' example."""


def cdim() -> list[Sent]:
    """Requests of its clients."""
    apply = f"{API}/layout-apply"
    own = f"{API}/resources/{resource('000100')}"
    group = f"{API}/resource-groups/{DEFAULT_GROUP}"
    times = "startedAtSince=2024-01-29T10:00:00Z&endedAtUntil=2024-01-29T10:00:00%2B09:00"
    device = {"cpu": {"deviceIDs": [node("1")]}, "gpu": [{"deviceID": resource("000100")}]}
    return [
        *(
            Sent("GET", f"{API}/{path}", {})
            for path in (
                "resources?detail=true", "resources/available?resourceGroupID=x", "resources/unused", "nodes",
                "nodes?detail=true", f"nodes/{node('1')}", "cxlswitches", f"racks/{identity('rack', 'A')}?detail=true",
                "resource-groups?withResources=true", f"layout-apply/{LAYOUT}",
                f"layout-apply?status=FAILED&fields=procedures&sortBy=endedAt&orderBy=asc&limit=5&offset=1&{times}",
            )
        ),
        Sent("GET", own, {}),
        Sent("GET", group, {}),
        as_json("PUT", f"{own}/annotation", {"available": True}, {}),
        as_json("PUT", f"{own}/resource-groups", [DEFAULT_GROUP], {}),
        as_json("POST", f"{API}/resource-groups", {"name": "x", "description": "y"}, {}),
        as_json("PUT", group, {"name": "x", "description": "y"}, {}),
        Sent("DELETE", group, {}),
        as_json("POST", f"{API}/devices", [{"deviceID": resource("000100")}], {}),
        as_json("POST", apply, {"procedures": [procedure("disconnect", "1", "000100")]}, {}),
        as_json("POST", apply, {"procedures": [of_operator("connect", "1", "000100")]}, {}),
        Sent("PUT", f"{apply}/{LAYOUT}?action=cancel&rollbackOnCancel=true", {}),
        Sent("PUT", f"{apply}/{LAYOUT}?action=resume", {}),
        Sent("DELETE", f"{apply}/{LAYOUT}", {}),
        as_json(
            "POST",
            f"{API}/migration-procedures",
            {"targetNodeIDs": [node("1")], "desiredLayout": {"nodes": [{"device": device}]}},
            {},
        ),
    ]  # fmt: skip


@contextmanager
def pool() -> Iterator[list[Face]]:
    """A served chassis that speaks the dialect."""
    hardware = load_hardware(room("fixtures") / "hardware" / "demo.yaml")
    server = ChassisServer(hardware, context=EmulationContext(speed=1000.0), dialects=("cdim",))
    server.start()
    try:
        yield [Face("cdim", address_of(server.ready()["chassis"]["A"]["cdim"]), cdim())]
    finally:
        server.stop()
