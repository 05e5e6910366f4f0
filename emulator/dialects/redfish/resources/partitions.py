"""The MIG devices of a GPU: processors of the type Partition below it (DSP8010, Processor: ``SubProcessors``)."""

from __future__ import annotations

from collections.abc import Callable

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.resources.blocks import block_processor
from mews.emulator.dialects.redfish.resources.chassis import PARTS
from mews.emulator.dialects.redfish.resources.inventory import cores_of, profile_of
from mews.emulator.dialects.redfish.resources.systems import processor
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, collection, links, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.telemetry.parts import BoardPart

Owned = Callable[[RedfishView, str, str], Body | None]
"""(view, owner, device) -> the GPU as the owner's processor, if it is one."""


def _body(view: RedfishView, gpu: Body, device: str, part: BoardPart) -> Body:
    profile = profile_of(view, device)
    assert profile is not None, "boards of known models alone are divided"
    return resource(
        "Processor",
        f"{gpu['@odata.id']}/{PARTS}/{part.name}",
        f"MIG {part.profile} of {device}",
        ProcessorType="Partition",
        Manufacturer=gpu["Manufacturer"],
        Model=f"{gpu['Model']} MIG {part.profile}",
        UUID=part.uuid.removeprefix("MIG-"),
        TotalCores=cores_of(profile, part.multiprocessors),
        MemorySummary={"TotalMemorySizeMiB": part.memory_mib},
        Status=dict(OK),
        Links=links([gpu["Links"]["PCIeDevice"]["@odata.id"] + "/PCIeFunctions/0"], "PCIeFunctions"),
    )


def _routes(home: str, owned: Owned) -> tuple[RedfishRoute, RedfishRoute]:
    def every(view: RedfishView, owner: str, device: str) -> Body | None:
        gpu, parts = owned(view, owner, device), view.box.telemetry.parts(device)
        if gpu is None or parts is None:
            return None
        uri = f"{gpu['@odata.id']}/{PARTS}"
        return collection("Processor", uri, f"MIG devices of {device}", [f"{uri}/{part.name}" for part in parts])

    def one(view: RedfishView, owner: str, device: str, name: str) -> Body | None:
        gpu, parts = owned(view, owner, device), view.box.telemetry.parts(device) or ()
        part = next((part for part in parts if part.name == name), None)
        return None if gpu is None or part is None else _body(view, gpu, device, part)

    return RedfishRoute(f"{home}/{PARTS}", every), RedfishRoute(f"{home}/{PARTS}/{{part}}", one)


ROUTES = (
    *_routes(f"{uris.SYSTEMS}/{{system}}/Processors/{{processor}}", processor),
    *_routes(f"{uris.BLOCKS}/{{block}}/Processors/{{processor}}", block_processor),
)
