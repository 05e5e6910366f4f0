"""Machines, resources and specifications as fabric and cluster manager show them (contract cohdi.md 2.2, 2.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.identities import identity, machine_uuid, resource_uuid
from mews.emulator.dialects.machines import CabledMachine, CabledMachines, device_of, model_of

VENDOR = "nvidia"
IN_OPERATION = 15
"""``mach_status`` of a machine, as CoHDI's own mock has it."""
RESOURCE_READY = 4
"""``res_status`` of a resource, as CoHDI's own mock has it."""
GOOD, CRITICAL = "00", "20"
"""``res_op_status``: the first character decides, 0 good, 2 critical."""


class FabricView:
    """How one chassis, a fabric of its own, is shown; ``tenant`` has all of it."""

    def __init__(self, box: EmulatedChassis, tenant: str) -> None:
        spec = box.spec
        self._box = box
        self._tenant = tenant
        self.fabric_id = spec.index
        self.fabric_uuid = identity("fabric", spec.name)
        self.group_uuid = identity("nodegroup", spec.name)
        self._cabled = CabledMachines(spec)
        self.machines, self.by_port = self._cabled.machines, self._cabled.by_port

    def model(self, device: str) -> str:
        """Return the model of a device; "unknown" of one that only a listing knows."""
        return model_of(self._box, device)

    def uuid(self, device: str) -> str:
        """``res_uuid`` of a device."""
        return resource_uuid(self._box.spec.name, device)

    def device(self, res_uuid: str) -> str | None:
        """Return the device with that ``res_uuid``, in any case."""
        return device_of(self._box, res_uuid)

    def seen(self, rows: Iterable[DeviceRow]) -> dict[str, CabledMachine]:
        """Return all machines by UUID, also one that only a listing knows."""
        return self._cabled.seen(rows)

    def machine(self, machine: CabledMachine, rows: Iterable[DeviceRow] | None = None) -> dict[str, Any]:
        """MACH; with ``rows``, those that are its resources."""
        shown: dict[str, Any] = {
            "fabric_uuid": self.fabric_uuid,
            "fabric_id": self.fabric_id,
            "mach_uuid": machine.uuid,
            "mach_id": int(machine.port),
            "mach_name": machine.name,
            "mach_owner": "",
            "tenant_uuid": self._tenant,
            "mach_status": IN_OPERATION,
            "mach_status_detail": "",
            "mach_op_status": GOOD,
        }
        if rows is not None:
            shown["resources"] = [self.resource(row) for row in rows]
        return shown

    def resource(self, row: DeviceRow) -> dict[str, Any]:
        """RES: ``res_serial_num`` is what nvidia-smi prints as the UUID (cohdi.md 3)."""
        return {
            "res_uuid": self.uuid(row.device),
            "res_name": row.device,
            "res_type": row.kind.lower(),
            "res_status": RESOURCE_READY,
            "res_op_status": GOOD if row.link else CRITICAL,
            "res_serial_num": row.uuid,
            "res_spec": {"condition": [condition("model", self.model(row.device))]},
        }

    def placed(self, row: DeviceRow) -> dict[str, Any]:
        """RES of the list of all resources, with the machine that it is in."""
        machine = self.by_port.get(row.port) if row.port is not None else None
        strange = machine is None and row.port is not None
        uuid = machine_uuid(f"port-{row.port}") if strange else machine.uuid if machine is not None else None
        return {**self.resource(row), "fabric_id": self.fabric_id, "mach_uuid": uuid}

    # The cluster manager

    def kinds(self) -> dict[str, tuple[str, str]]:
        """``spec_uuid`` -> type and model, of every model that the chassis has."""
        found: dict[str, tuple[str, str]] = {}
        for row in self._box.table.listing():
            model, kind = self.model(row.device), row.kind.lower()
            found[self.spec_uuid(kind, model)] = kind, model
        return found

    def spec_uuid(self, kind: str, model: str) -> str:
        """``spec_uuid`` of a model."""
        return identity("resspec", self._box.spec.name, kind, model)

    def specification(self, uuid: str, kind: str, model: str, most: int, devices: list[dict[str, Any]]) -> Any:
        """S; ``device_count`` counts devices that are there to stay, not those in transit."""
        there = [each for each in devices if each["status"] in ("ADD_COMPLETE", "REMOVE_FAILED")]
        return {
            "spec_uuid": uuid,
            "type": kind,
            "selector": {"version": "1", "expression": {"conditions": [condition("model", model)]}},
            "min_resspec_count": 0,
            "max_resspec_count": most,
            "device_count": len(there),
            "devices": devices,
        }

    def cluster_device(self, row: DeviceRow, machine: CabledMachine, status: str, reason: str) -> dict[str, Any]:
        """D: ``device_id`` is the GPU's UUID."""
        resource, model = self.resource(row), self.model(row.device)
        return {
            "device_id": row.uuid,
            "status": status,
            "status_reason": reason,
            "detail": {
                "fabric_uuid": self.fabric_uuid,
                "fabric_id": self.fabric_id,
                "res_uuid": resource["res_uuid"],
                "fabr_gid": row.device,
                "res_type": resource["res_type"],
                "res_name": resource["res_name"],
                "res_status": resource["res_status"],
                "res_op_status": resource["res_op_status"],
                "tenant_uuid": self._tenant,
                "mach_uuid": machine.uuid,
                "resspecs": [
                    {
                        "resspec_uuid": self.spec_uuid(resource["res_type"], model),
                        "productname": model,
                        "model": model,
                        "vendor": VENDOR,
                        "removable": True,
                    }
                ],
            },
        }


def condition(column: str, value: str) -> Mapping[str, str]:
    """Return one condition that a resource fulfils."""
    return {"column": column, "operator": "eq", "value": value}
