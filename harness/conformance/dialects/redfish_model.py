"""Clauses about what a Redfish chassis shows (contract chassis.md 4): its resources, their versions and contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import Clause, must
from mews.harness.conformance.client import HttpReply
from mews.harness.conformance.dialects.redfish_table import ADD, REMOVE, ROOT, TYPE, durable_name, initiates
from mews.harness.conformance.errors import NotJudged

MOST = 1500
"""Resources of a walk."""

VERSIONS: Mapping[str, str] = {
    "ServiceRoot": "1.20.0",
    "Fabric": "1.4.0",
    "Switch": "1.11.0",
    "Port": "1.18.0",
    "Zone": "1.6.3",
    "Endpoint": "1.8.2",
    "PCIeDevice": "1.21.0",
    "PCIeFunction": "1.7.0",
    "Processor": "1.22.0",
    "Chassis": "1.28.0",
    "ComputerSystem": "1.27.0",
    "ResourceBlock": "1.4.3",
    "CompositionService": "1.2.3",
    "TaskService": "1.3.0",
    "EventService": "1.12.0",
    "SessionService": "1.2.0",
    "AccountService": "1.18.1",
    "Manager": "1.24.0",
    "UpdateService": "1.17.0",
    "TelemetryService": "1.4.1",
    "LogService": "1.9.0",
}
"""Resources of the contract and their latest versions; Task has none to show while nothing runs."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Everything that can be reached from the root: path -> reply, and the resources among it."""

    replies: Mapping[str, HttpReply]
    resources: Mapping[str, Mapping[str, Any]]

    def of(self, schema: str) -> Iterator[Mapping[str, Any]]:
        """The resources of a schema, collections left out."""
        for value in self.resources.values():
            found = TYPE.fullmatch(str(value.get("@odata.type")))
            if found and found[1] == schema:
                yield value


def walk(bench: ClauseContext) -> Walk:
    """The walk, made once a run.

    Raises NotJudged where nothing can be read with these credentials.
    """
    if "walk" not in bench.facts:
        bench.facts["walk"] = _walk(bench)
    found: Walk = bench.facts["walk"]
    return found


def _walk(bench: ClauseContext) -> Walk:
    replies: dict[str, HttpReply] = {}
    resources: dict[str, Mapping[str, Any]] = {}
    waiting = [ROOT]
    while waiting and len(replies) < MOST:
        path = waiting.pop(0)
        if path in replies:
            continue
        reply = bench.insist(partial(bench.face.send, "GET", path))
        if reply.status == 404 and path != ROOT:
            continue
        replies[path] = reply
        if reply.status == 401:
            raise NotJudged("the credentials are refused")
        value = reply.json() if "json" in reply.headers.get("content-type", "") and reply.status == 200 else None
        if isinstance(value, dict) and "@odata.id" in value:
            resources[path] = value
            bench.face.saw(value)
            waiting += [link for link in _links(value) if link not in replies]
    return Walk(replies, resources)


def _links(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name == "@odata.id" and isinstance(each, str) and each.startswith("/redfish/v1/") and "#" not in each:
                if "/$" not in each and "JsonSchemas" not in each:
                    yield each
            else:
                yield from _links(each)
    elif isinstance(value, list):
        for each in value:
            yield from _links(each)


def _present(schema: str) -> Callable[[ClauseContext], None]:
    def check(bench: ClauseContext) -> None:
        must(any(walk(bench).of(schema)), f"no {schema} can be reached from {ROOT}")

    return check


def _versions(bench: ClauseContext) -> None:
    older = []
    for schema, wanted in VERSIONS.items():
        for value in walk(bench).of(schema):
            found = TYPE.fullmatch(str(value["@odata.type"]))
            version = tuple(int(part) for part in found.groups()[1:]) if found else ()
            if version < tuple(map(int, wanted.split("."))):
                older.append(f"{schema} {'.'.join(map(str, version))} (latest {wanted})")
    must(not older, ", ".join(dict.fromkeys(older)))


def _zones(bench: ClauseContext) -> None:
    seen = walk(bench)
    endpoints = {value["@odata.id"]: value for value in seen.of("Endpoint")}
    fabric = bench.face.path("Zones")
    zones = [zone for zone in seen.of("Zone") if str(zone["@odata.id"]).startswith(fabric)]
    hosts = [value for value in endpoints.values() if initiates(value)]
    must(len(zones) == len(hosts), f"{len(zones)} zones for {len(hosts)} host-port endpoints: must be one for each")
    for zone in zones:
        where = zone["@odata.id"]
        must(zone.get("ZoneType") == "ZoneOfEndpoints", f"{where}: ZoneType {zone.get('ZoneType')!r}: ZoneOfEndpoints")
        listed = [each["@odata.id"] for each in zone.get("Links", {}).get("Endpoints", [])]
        must(listed, f"{where}: has no endpoint, must hold its host port's")
        roles = [initiates(endpoints[name]) for name in listed if name in endpoints]
        must(roles and roles[0], f"{where}: its first endpoint must be the host port's")
        must(not any(roles[1:]), f"{where}: holds more than one host port")


def _actions(bench: ClauseContext) -> None:
    for port in bench.insist(bench.face.read).ports:
        zone = bench.insist(partial(bench.face.get, bench.face.zone(port)))
        for action in (ADD, REMOVE):
            must(action in zone.get("Actions", {}), f"{zone['@odata.id']}: has no action {action}")


def _durable(bench: ClauseContext) -> None:
    devices = [value for value in walk(bench).of("Endpoint") if not initiates(value)]
    if not devices:
        raise NotJudged("there is no device")
    names = [durable_name(value) for value in devices]
    for value, name in zip(devices, names, strict=True):
        must(name, f"{value['@odata.id']}: has no Identifiers with a DurableName")
    must(len(set(names)) == len(names), "two endpoints have the same DurableName")


def _functions(bench: ClauseContext) -> None:
    found = list(walk(bench).of("PCIeFunction"))
    if not found:
        raise NotJudged("there is no PCIeFunction")
    gpus = [value for value in found if str(value.get("ClassCode", "")).lower() == "0x030200"]
    must(gpus, "no PCIeFunction has ClassCode 0x030200")
    for value in gpus:
        vendor = str(value.get("VendorId", "")).lower()
        must(vendor == "0x10de", f"{value['@odata.id']}: VendorId {vendor}, must be 0x10de")


def _processors(bench: ClauseContext) -> None:
    kinds = [value.get("ProcessorType") for value in walk(bench).of("Processor")]
    must("GPU" in kinds, "no Processor has ProcessorType GPU")


def _link_status(bench: ClauseContext) -> None:
    for value in walk(bench).of("Port"):
        must("LinkStatus" in value, f"{value['@odata.id']}: has no LinkStatus")


def _absent(bench: ClauseContext) -> None:
    states = {value["@odata.id"]: value.get("Status", {}).get("State") for value in walk(bench).of("PCIeDevice")}
    empty = {name for name, state in states.items() if state == "Absent"}
    if not empty:
        raise NotJudged("no slot is empty")
    for value in walk(bench).of("PCIeDevice"):
        if value["@odata.id"] in empty:
            must(not value.get("SerialNumber"), f"{value['@odata.id']}: is Absent and has a serial number")


def _hosts(bench: ClauseContext) -> None:
    systems = list(walk(bench).of("ComputerSystem"))
    hosts = [value for value in walk(bench).of("Endpoint") if initiates(value)]
    linked = {
        entity["EntityLink"]["@odata.id"]
        for value in hosts
        for entity in value.get("ConnectedEntities", [])
        if isinstance(entity.get("EntityLink"), dict)
    }
    names = {value["@odata.id"] for value in systems}
    must(linked <= names, f"host endpoints lead to {', '.join(sorted(linked - names))}: no such ComputerSystem")
    must(names, "there is no ComputerSystem")


def _outdated(bench: ClauseContext) -> None:
    for value in walk(bench).resources.values():
        kind = str(value.get("@odata.type"))
        must(not kind.startswith("#PCIeSlots."), f"{value['@odata.id']}: PCIeSlots is deprecated")
        must(not kind.startswith("#Connection."), f"{value['@odata.id']}: Connection covers Storage and Memory only")


AT = "chassis.md 4"

MODEL: tuple[Clause, ...] = (
    *(
        Clause(f"4.resource-{schema}", f"there is a {schema}", f"{AT}: resources", _present(schema))
        for schema in VERSIONS
    ),
    Clause("4.versions", "schemas have the latest versions", f"{AT}: resources and their latest versions", _versions),
    Clause("4.zones", "one zone per host port, its endpoint first, then the devices'", f"{AT}: H3's dialect", _zones),
    Clause("4.actions", "zones offer AddEndpoint and RemoveEndpoint", f"{AT}: the standard", _actions),
    Clause("4.durable-name", "a device's endpoint has its UUID as DurableName", f"{AT}: Endpoint", _durable),
    Clause(
        "4.functions", "a GPU's PCIeFunction has vendor 0x10de and class 0x030200", f"{AT}: PCIeFunction", _functions
    ),
    Clause("4.processors", "a GPU is a Processor of ProcessorType GPU", f"{AT}: Processor", _processors),
    Clause("4.link-status", "a port has a LinkStatus", f"{AT}: Port", _link_status),
    Clause("4.absent", "an empty slot is a PCIeDevice of State Absent", f"{AT}: PCIeDevice", _absent),
    Clause("4.hosts", "there is a ComputerSystem per host", f"{AT}: ComputerSystem per host", _hosts),
    Clause("4.outdated", "no PCIeSlots, no Connection for GPUs", f"{AT}: Connection, PCIeSlots", _outdated),
)
