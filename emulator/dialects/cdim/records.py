"""Resources, nodes, switches and racks as the configuration manager shows them (contract cohdi.md 2.4, 2.5).

A host port is three devices: the node's CPU, whose ID is the node's, and two adapters of the fabric, one on each end of
the cable. The published documents know the CPU; the operator finds a node by the adapters. A device that is attached
therefore has links of both kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.cdim.groups import ResourceGroups
from mews.emulator.dialects.identities import identity, resource_uuid
from mews.emulator.dialects.machines import CabledMachine, CabledMachines, model_of

CPU, SOURCE, DESTINATION = "CPU", "sourceFabricAdapter", "destinationFabricAdapter"
HOST_SIDE, FABRIC_SIDE = "eesv", "eeio"
"""``deviceSpecificInformation.status`` of the two adapters, and the type of a link to the second one."""
GOOD: Mapping[str, str] = {"state": "Enabled", "health": "OK"}
ABSENT: Mapping[str, str] = {"state": "UnavailableOffline", "health": "Critical"}
RACK_UNITS, UNITS = 42, 4
"""Height of a rack, and of a Falcon 4005 in it."""


class CdimResource(Struct, frozen=True):
    """A device as it is shown: in full, the node that it is linked to ("" for none), and whether it is detected."""

    device: Mapping[str, Any]
    node: str
    detected: bool = True

    @property
    def id(self) -> str:
        """Its ``deviceID``."""
        return str(self.device["deviceID"])

    @property
    def usable(self) -> bool:
        """Whether a design may use it, by what the hardware says."""
        return self.detected and self.device["status"] == GOOD


class CdimView:
    """How one chassis is shown: one switch, in a rack of its own."""

    def __init__(self, box: EmulatedChassis, groups: ResourceGroups) -> None:
        self._box, self._groups = box, groups
        self._name = box.spec.name
        self.cabled = CabledMachines(box.spec)
        self.switch_id = identity("switch", self._name)
        self.rack_id = identity("rack", self._name)

    def uuid(self, device: str) -> str:
        """``deviceID`` of a device."""
        return resource_uuid(self._name, device)

    def source_id(self, machine: CabledMachine) -> str:
        """Return the adapter in the node."""
        return identity(SOURCE, self._name, machine.name)

    def destination_id(self, machine: CabledMachine) -> str:
        """Return the adapter in the chassis."""
        return identity(DESTINATION, self._name, machine.name)

    def machine(self, named: str) -> CabledMachine | None:
        """Return the node with that CPU, or with one of these adapters; IDs in any case."""
        wanted = named.lower()
        for machine in self.cabled.machines.values():
            if wanted in (machine.uuid, self.source_id(machine), self.destination_id(machine)):
                return machine
        return None

    def resources(self, rows: Iterable[DeviceRow]) -> list[CdimResource]:
        """Return every device, in ascending order of its ID; those whose link is down are there, undetected."""
        rows = tuple(rows)
        listed = {row.device for row in rows}
        down = [row for row in self._box.rows(self._box.now_s) if not row.link and row.device not in listed]
        machines = self.cabled.seen(rows)
        by_port = {machine.port: machine for machine in machines.values()}
        found = [self._device(row, by_port, detected=True) for row in rows]
        found += [self._device(row, by_port, detected=False) for row in down]
        for machine in machines.values():
            found += self._cabling(machine, [row for row in rows if row.port == machine.port])
        return sorted(found, key=lambda resource: resource.id)

    def _device(self, row: DeviceRow, by_port: Mapping[str, CabledMachine], *, detected: bool) -> CdimResource:
        machine = by_port.get(row.port) if row.port is not None else None
        links = [] if machine is None else self._links(machine)
        uuid = self.uuid(row.device)
        shown = {
            "deviceID": uuid,
            "type": row.kind,
            "model": model_of(self._box, row.device),
            "attribute": {"name": row.device, "uuid": row.uuid},
            "status": dict(GOOD if detected else ABSENT),
            "powerState": "On" if detected else "Off",
            "deviceSwitchInfo": self.switch_id,
            "links": links,
        }
        seen = detected and not self._groups.undetected(uuid)
        return CdimResource(shown, "" if machine is None else machine.uuid, seen)

    def _links(self, machine: CabledMachine) -> list[dict[str, str]]:
        far = self.destination_id(machine)
        return [_link(CPU, machine.uuid), _link(FABRIC_SIDE, far), _link(DESTINATION, far)]

    def _cabling(self, machine: CabledMachine, rows: list[DeviceRow]) -> list[CdimResource]:
        near, far = self.source_id(machine), self.destination_id(machine)
        own = [_link(row.kind, self.uuid(row.device)) for row in rows]
        shown = (
            _part(machine.uuid, CPU, {"name": machine.name}, [_link(SOURCE, near), *own]),
            _part(near, SOURCE, _adapter(HOST_SIDE, machine), [_link(CPU, machine.uuid), _link(DESTINATION, far)]),
            _part(
                far, DESTINATION, _adapter(FABRIC_SIDE, machine), [_link(CPU, machine.uuid), _link(SOURCE, near), *own]
            ),
        )
        return [CdimResource(each, machine.uuid, not self._groups.undetected(each["deviceID"])) for each in shown]

    # As they go over the wire

    def resource(self, found: CdimResource, *, detail: bool = True, node_ids: bool = True) -> dict[str, Any]:
        """Resource, or ResourceSummary; within a node without ``nodeIDs``."""
        shown = {**self.unused(found, detail=detail), "detected": found.detected}
        return {**shown, "nodeIDs": [found.node] if found.node else []} if node_ids else shown

    def unused(self, found: CdimResource, *, detail: bool = True) -> dict[str, Any]:
        """ResourceForUnused: as nobody uses it, there is nothing to say of nodes and detection."""
        brief = {name: found.device[name] for name in ("deviceID", "type", "status")}
        return {
            "device": found.device if detail else brief,
            "resourceGroupIDs": [self._groups.group_of(found.id)],
            "annotation": {"available": self._groups.available(found.id)},
        }

    def nodes(self, rows: Iterable[DeviceRow], *, detail: bool) -> list[dict[str, Any]]:
        """Return every node with its resources, both in ascending order of their IDs."""
        rows = tuple(rows)
        found = self.resources(rows)
        machines = sorted(self.cabled.seen(rows).values(), key=lambda machine: machine.uuid)
        return [
            {
                "id": machine.uuid,
                "name": machine.name,
                "resources": [
                    self.resource(each, detail=detail, node_ids=False) for each in found if each.node == machine.uuid
                ],
            }
            for machine in machines
        ]

    def switch(self, found: Iterable[CdimResource], *, detail: bool) -> dict[str, Any]:
        """Return the switch with the devices behind it, those that are not detected, too."""
        behind = [each for each in found if each.device.get("deviceSwitchInfo") == self.switch_id]
        return {"id": self.switch_id, "resources": [self.resource(each, detail=detail) for each in behind]}

    def rack(self, found: Iterable[CdimResource], *, detail: bool, made: str) -> dict[str, Any]:
        """Return the rack of the chassis; ``made``: when it was registered. Devices are in ascending order of type and
        ID."""
        inside = sorted(found, key=lambda each: (str(each.device["type"]), each.id))
        inside = [each for each in inside if each.device["type"] not in (CPU, SOURCE)]
        chassis = {
            "id": identity("chassis", self._name),
            "name": self._name,
            "modelName": "Falcon 4005",
            "description": "",
            "unitPosition": 1,
            "facePosition": "Front",
            "height": UNITS,
            "depth": "Full",
            "createdAt": made,
            "updatedAt": made,
            "resources": [self.resource(each, detail=detail) for each in inside],
        }
        return {"id": self.rack_id, "name": f"rack of {self._name}", "height": RACK_UNITS, "chassis": [chassis]}


def _link(kind: str, device: str) -> dict[str, str]:
    return {"type": kind, "deviceID": device}


def _adapter(side: str, machine: CabledMachine) -> dict[str, Any]:
    return {"deviceSpecificInformation": {"status": side}, "hostPort": machine.port}


def _part(device: str, kind: str, attribute: dict[str, Any], links: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "deviceID": device,
        "type": kind,
        "model": "",
        "attribute": attribute,
        "status": dict(GOOD),
        "powerState": "On",
        "links": links,
    }
