"""Clauses about what a Redfish chassis shows (contract chassis.md 4): its resources, their versions and contents."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any

from msgspec import Struct

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import Clause, must
from mews.harness.conformance.client import HttpReply
from mews.harness.conformance.dialects.redfish_table import ADD, REMOVE, ROOT, TYPE, durable_name, initiates, tail
from mews.harness.conformance.errors import ListingUnavailableError, MalformedError, NotJudgedError, UnmetClauseError
from mews.harness.conformance.fields import LINK, at, kind_of, leaves, link_of, links, local, members, objects, text

MOST = 1500
"""Resources of a walk."""
SAMPLE = 3
"""Where a walk takes longer than its part of the time, so many resources of each kind of path are enough."""
SAMPLED = f"reading all resources takes longer than {{most_s:.0f}} s: from then on {SAMPLE} of each kind were enough"
WHOLE = frozenset({"Chassis", "Endpoints", "Fabrics", "Managers", "PCIeDevices", "ResourceBlocks", "Switches"}) | {
    *("Systems", "Zones"),
}
"""Collections whose members are held against each other: they are read whole."""
NULL = type(None)
JSON_NAMES: Mapping[type, str] = {
    str: "a string",
    dict: "an object",
    list: "an array",
    bool: "a boolean",
    NULL: "null",
}

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
ABOVE: Mapping[str, tuple[str, ...]] = {
    "Switch": ("Fabric",),
    "Port": ("Fabric", "Switch"),
    "Zone": ("Fabric",),
    "Endpoint": ("Fabric",),
    "PCIeFunction": ("PCIeDevice",),
    "ResourceBlock": ("CompositionService",),
}
"""Resources without which a resource cannot be reached."""


TYPES: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "ServiceRoot": {"RedfishVersion": (str,), "UUID": (str, NULL), "ProtocolFeaturesSupported": (dict,)},
    "Fabric": {"Id": (str,), "FabricType": (str, NULL), "Zones": (dict,), "Endpoints": (dict,)},
    "Zone": {"Id": (str,), "ZoneType": (str,), "Links": (dict,), "Links.Endpoints": (list,), "Actions": (dict,)},
    "Endpoint": {
        "Id": (str,),
        "Links": (dict,),
        "Links.Zones": (list,),
        "Links.ConnectedPorts": (list,),
        "Identifiers": (list,),
        "Identifiers[].DurableName": (str, NULL),
        "ConnectedEntities": (list,),
        "ConnectedEntities[].EntityRole": (str, NULL),
        "ConnectedEntities[].EntityLink": (dict, NULL),
    },
    "PCIeDevice": {"Id": (str,), "Status": (dict,), "Status.State": (str, NULL), "ReadyToRemove": (bool, NULL)},
    "PCIeFunction": {"VendorId": (str, NULL), "ClassCode": (str, NULL)},
    "Processor": {"ProcessorType": (str, NULL)},
    "Port": {"LinkStatus": (str, NULL)},
    "Role": {"RoleId": (str,)},
    "EventService": {"ServerSentEventUri": (str,)},
    "ComputerSystem": {"Id": (str,), "Actions": (dict,)},
    "ResourceBlock": {"Id": (str,)},
}
"""Properties that the clauses and the stack read, and their types (DSP8010); those of inner objects by their place."""


class Walk(Struct, frozen=True):
    """Everything that can be reached from the root: path -> reply, the resources among it, what is no resource and why,
    and the properties that are of another type than their schema's."""

    replies: Mapping[str, HttpReply]
    resources: Mapping[str, Mapping[str, Any]]
    broken: Mapping[str, str]
    mistyped: Mapping[str, Sequence[str]]
    raw: Mapping[str, Mapping[str, Any]]
    """Path -> the object there, whatever it calls itself."""
    failed: Sequence[str] = ()
    """What could not be had."""

    def all(self, schema: str) -> Iterator[Mapping[str, Any]]:
        """Return the resources of a schema, collections left out."""
        return (value for value in self.resources.values() if schema_of(value) == schema)

    def of(self, schema: str) -> Iterator[Mapping[str, Any]]:
        """Return the same.

        Raises NotJudgedError where one of them has properties of another type: another clause is about that.
        """
        if schema in self.mistyped:
            raise NotJudgedError(f"4.types does not hold: {self.mistyped[schema][0]}")
        return self.all(schema)


def schema_of(value: Mapping[str, Any]) -> str:
    """Return the unversioned name of a resource's type; empty where it has none with a version."""
    found = TYPE.fullmatch(text(value, "@odata.type"))
    return found[1] if found else ""


def walk(bench: ClauseContext) -> Walk:
    """Return the walk, made once a run.

    Raises ListingUnavailableError where even the root cannot be had.
    """
    if "walk" not in bench.facts:
        with bench.client.one_connection():
            bench.facts["walk"] = _walk(bench)
    found: Walk = bench.facts["walk"]
    return found


def _walk(bench: ClauseContext) -> Walk:
    replies: dict[str, HttpReply] = {}
    resources: dict[str, Mapping[str, Any]] = {}
    broken: dict[str, str] = {}
    raw: dict[str, Mapping[str, Any]] = {}
    failed: list[str] = []
    waiting, seen = [ROOT], {ROOT}
    began_s, most_s = time.monotonic(), bench.reading_part * bench.client.left_s()
    names: set[str] = set()
    known: Counter[str] = Counter()
    while waiting and len(replies) < MOST:
        path = waiting.pop(0)
        shape = _shape(path, names)
        if (
            time.monotonic() - began_s > most_s
            and known[shape] >= SAMPLE
            and tail(path.rpartition("/")[0]) not in WHOLE
        ):
            bench.sampled = SAMPLED.format(most_s=most_s)
            continue
        known[shape] += 1
        try:
            reply = bench.insist(partial(bench.face.send, "GET", path))
        except ListingUnavailableError:
            if path == ROOT:
                raise
            failed.append(path)
            continue
        if reply.status == 404 and path != ROOT:
            continue
        replies[path] = reply
        if reply.status != 200 or "json" not in reply.headers.get("content-type", "json"):
            continue
        try:
            value = reply.json()
        except MalformedError as error:
            broken[path] = str(error)
            continue
        if not isinstance(value, dict):
            broken[path] = f"{kind_of(value)}, must be an object"
            continue
        raw[path] = value
        if link_of(value):
            resources[path] = value
            bench.face.saw(value)
        else:
            broken[path] = "has no @odata.id"
        names.update(map(tail, links(value, "Members")))
        found = [link for link in _links(value) if link not in seen]
        seen.update(found)
        waiting += dict.fromkeys(found)
    return Walk(replies, resources, broken, _mistyped(resources), raw, failed)


def _shape(path: str, names: Set[str]) -> str:
    """Return the path without what members of collections are called: alike for resources of one kind."""
    return "/".join("" if part in names else part for part in path.split("/"))


def somewhere(bench: ClauseContext, found: object, text: str) -> None:
    """Something must have been seen on the walk.

    Raises UnmetClauseError, and NotJudgedError where it may be among what was not read.
    """
    if not found and bench.sampled:
        raise NotJudgedError(f"{text}; {bench.sampled}")
    must(found, text)


def _mistyped(resources: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, value in resources.items():
        schema = schema_of(value)
        wanted = TYPES.get(schema, {})
        for place, each in leaves(value) if wanted else ():
            types = wanted.get(place)
            right = types is None or (isinstance(each, types) and (not isinstance(each, bool) or bool in types))
            if types is not None and not right:
                names = " or ".join(JSON_NAMES[kind] for kind in types)
                found.setdefault(schema, []).append(f"{path}: {place} is {json.dumps(each)[:60]}, must be {names}")
    return found


def _links(value: Any) -> Iterator[str]:
    for place, found in leaves(value):
        each = local(found) if isinstance(found, str) else ""
        linked = place.endswith(LINK) and each.startswith("/redfish/v1/")
        if linked and not any(part in each for part in ("#", "/$", "JsonSchemas")):
            yield each


def _root(bench: ClauseContext) -> None:
    reply = bench.insist(partial(bench.face.send, "GET", ROOT, known=False))
    must(reply.status == 200, f"GET {ROOT}: HTTP {reply.status}, must be 200")
    try:
        value = reply.json()
    except MalformedError as error:
        raise UnmetClauseError(str(error)) from error
    must(isinstance(value, dict), f"GET {ROOT}: {kind_of(value)}, must be an object")
    inside = [name for name, each in value.items() if isinstance(each, dict) and "RedfishVersion" in each]
    wrapped = f": it is wrapped as {', '.join(map(repr, inside))}" if inside else ""
    must(text(value, "@odata.id") or text(value, "RedfishVersion"), f"GET {ROOT}: no service root{wrapped}")


def _access(bench: ClauseContext) -> None:
    root = bench.face.get(ROOT)
    for name in ("Systems", "Chassis", "Fabrics", "Managers"):
        path = link_of(root.get(name))
        if path:
            reply = bench.insist(partial(bench.face.send, "GET", path))
            must(reply.status not in (401, 403), f"GET {path} with the credentials given: HTTP {reply.status}")
            return


def _json(bench: ClauseContext) -> None:
    for path, why in walk(bench).broken.items():
        raise UnmetClauseError(f"GET {path}: {why}")


def _types(bench: ClauseContext) -> None:
    wrong = [each for found in walk(bench).mistyped.values() for each in found]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    must(not wrong, f"{wrong[0] if wrong else ''}{more}")


def _collections(bench: ClauseContext) -> None:
    for path, value in walk(bench).resources.items():
        if text(value, "@odata.type").partition(".")[0].endswith("Collection"):
            listed = value.get("Members")
            must(isinstance(listed, list), f"GET {path}: Members is {json.dumps(listed)[:60]}, must be a list")
            for each in listed if isinstance(listed, list) else ():
                must(link_of(each), f"GET {path}: the member {json.dumps(each)[:60]} is not a link")


def _present(schema: str) -> Callable[[ClauseContext], None]:
    def check(bench: ClauseContext) -> None:
        seen = walk(bench)
        found = any(seen.all(schema))
        if not found and seen.failed:
            raise NotJudgedError(f"no {schema} can be reached, and GET {seen.failed[0]} has no answer to read")
        somewhere(bench, found, f"no {schema} can be reached from {ROOT}")

    return check


def _versions(bench: ClauseContext) -> None:
    older = []
    for schema, wanted in VERSIONS.items():
        for value in walk(bench).all(schema):
            found = TYPE.fullmatch(text(value, "@odata.type"))
            version = tuple(int(part) for part in found.groups()[1:]) if found else ()
            if version < tuple(map(int, wanted.split("."))):
                older.append(f"{schema} {'.'.join(map(str, version))} (latest {wanted})")
    must(not older, ", ".join(dict.fromkeys(older)))


def _zones(bench: ClauseContext) -> None:
    seen = walk(bench)
    endpoints = {link_of(value): value for value in seen.of("Endpoint")}
    fabric = bench.face.path("Zones")
    zones = [zone for zone in seen.of("Zone") if link_of(zone).startswith(fabric)]
    hosts = [value for value in endpoints.values() if initiates(value)]
    must(len(zones) == len(hosts), f"{len(zones)} zones for {len(hosts)} host-port endpoints: must be one for each")
    for zone in zones:
        where = link_of(zone)
        must(zone.get("ZoneType") == "ZoneOfEndpoints", f"{where}: ZoneType {zone.get('ZoneType')!r}: ZoneOfEndpoints")
        listed = links(zone, "Links", "Endpoints")
        must(listed, f"{where}: has no endpoint, must hold its host port's")
        roles = [initiates(endpoints[name]) for name in listed if name in endpoints]
        must(roles and roles[0], f"{where}: its first endpoint must be the host port's")
        must(not any(roles[1:]), f"{where}: holds more than one host port")


def _actions(bench: ClauseContext) -> None:
    for port in bench.insist(bench.face.read).ports:
        zone = bench.insist(partial(bench.face.get, bench.face.zone(port)))
        for action in (ADD, REMOVE):
            must(action in members(zone, "Actions"), f"{link_of(zone)}: has no action {action}")


def _durable(bench: ClauseContext) -> None:
    devices = [value for value in walk(bench).of("Endpoint") if not initiates(value)]
    if not devices:
        raise NotJudgedError("there is no device")
    names = [durable_name(value) for value in devices]
    for value, name in zip(devices, names, strict=True):
        must(name, f"{link_of(value)}: has no Identifiers with a DurableName")
    must(len(set(names)) == len(names), "two endpoints have the same DurableName")


def _functions(bench: ClauseContext) -> None:
    found = list(walk(bench).of("PCIeFunction"))
    if not found:
        raise NotJudgedError("there is no PCIeFunction")
    units = bench.units
    gpus = [value for value in found if str(value.get("ClassCode", "")).lower() == units.class_code.lower()]
    somewhere(bench, gpus, f"no PCIeFunction has ClassCode {units.class_code}")
    for value in gpus:
        vendor = str(value.get("VendorId", "")).lower()
        must(vendor == units.vendor.lower(), f"{link_of(value)}: VendorId {vendor}, must be {units.vendor}")


def _processors(bench: ClauseContext) -> None:
    kinds = [value.get("ProcessorType") for value in walk(bench).of("Processor")]
    somewhere(bench, bench.units.processor in kinds, f"no Processor has ProcessorType {bench.units.processor}")


def _link_status(bench: ClauseContext) -> None:
    ports = list(walk(bench).of("Port"))
    if not ports:
        raise NotJudgedError("there is no port")
    for value in ports:
        must("LinkStatus" in value, f"{link_of(value)}: has no LinkStatus")


def _absent(bench: ClauseContext) -> None:
    states = {link_of(value): at(value, "Status", "State") for value in walk(bench).of("PCIeDevice")}
    empty = {name for name, state in states.items() if state == "Absent"}
    if not empty:
        raise NotJudgedError("no slot is empty")
    for value in walk(bench).of("PCIeDevice"):
        if link_of(value) in empty:
            must(not value.get("SerialNumber"), f"{link_of(value)}: is Absent and has a serial number")


def _hosts(bench: ClauseContext) -> None:
    systems = list(walk(bench).of("ComputerSystem"))
    hosts = [value for value in walk(bench).of("Endpoint") if initiates(value)]
    linked = {
        found
        for value in hosts
        for entity in objects(value, "ConnectedEntities")
        if (found := link_of(entity.get("EntityLink")))
    }
    names = {link_of(value) for value in systems}
    must(linked <= names, f"host endpoints lead to {', '.join(sorted(linked - names))}: no such ComputerSystem")
    must(names, "there is no ComputerSystem")


def _outdated(bench: ClauseContext) -> None:
    for value in walk(bench).resources.values():
        kind = text(value, "@odata.type")
        must(not kind.startswith("#PCIeSlots."), f"{link_of(value)}: PCIeSlots is deprecated")
        must(not kind.startswith("#Connection."), f"{link_of(value)}: Connection covers Storage and Memory only")


AT = "chassis.md 4"

ROOT_CLAUSE = Clause("4.root", "the service root is a JSON object", f"{AT}: rules of the protocol", _root)
ACCESS = Clause("4.access", "the credentials open the service", f"{AT}: rules of the protocol", _access)

MODEL: tuple[Clause, ...] = (
    Clause("4.json", "every resource is a JSON object", f"{AT}: resources", _json),
    Clause("4.types", "properties are of their schemas' types", f"{AT}: resources", _types),
    Clause("4.collections", "a collection's Members are a list of links", f"{AT}: resources", _collections),
    *(
        Clause(
            f"4.resource-{schema}",
            f"there is a {schema}",
            f"{AT}: resources",
            _present(schema),
            needs=tuple(f"4.resource-{above}" for above in ABOVE.get(schema, ())),
        )
        for schema in VERSIONS
    ),
    Clause("4.versions", "schemas have the latest versions", f"{AT}: resources and their latest versions", _versions),
    Clause(
        "4.zones",
        "one zone per host port, its endpoint first, then the devices'",
        f"{AT}: H3's dialect",
        _zones,
        needs=("4.uris",),
    ),
    Clause("4.actions", "zones offer AddEndpoint and RemoveEndpoint", f"{AT}: the standard", _actions),
    Clause("4.durable-name", "a device's endpoint has its UUID as DurableName", f"{AT}: Endpoint", _durable),
    Clause(
        "4.functions", "a GPU's PCIeFunction has vendor 0x10de and class 0x030200", f"{AT}: PCIeFunction", _functions
    ),
    Clause(
        "4.processors",
        "a GPU is a Processor of ProcessorType GPU",
        f"{AT}: Processor",
        _processors,
        needs=("4.resource-Processor",),
    ),
    Clause("4.link-status", "a port has a LinkStatus", f"{AT}: Port", _link_status),
    Clause("4.absent", "an empty slot is a PCIeDevice of State Absent", f"{AT}: PCIeDevice", _absent),
    Clause("4.hosts", "there is a ComputerSystem per host", f"{AT}: ComputerSystem per host", _hosts),
    Clause("4.outdated", "no PCIeSlots, no Connection for GPUs", f"{AT}: Connection, PCIeSlots", _outdated),
)
