"""The cluster manager: machines are resized to a target, and get there in their own time (contract cohdi.md 2.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.operation import Operation, OperationKind
from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.fm.bodies import Resize
from mews.emulator.dialects.fm.errors import FabricManagerError
from mews.emulator.dialects.fm.records import FabricView
from mews.emulator.dialects.identities import CLUSTER
from mews.emulator.dialects.machines import CabledMachine

ADDED, ADDING, ADD_FAILED = "ADD_COMPLETE", "ADDING", "ADD_FAILED"
REMOVING, REMOVE_FAILED = "REMOVING", "REMOVE_FAILED"
"""Words of a device's status; ADDING and REMOVING are assumed, the clients know the others."""


class _Move(Struct):
    """What was last asked of a device through the cluster manager."""

    operation: Operation
    port: str


class ClusterManager:
    """Moves devices of one chassis for composed clusters. What failed is remembered until it is asked for again."""

    def __init__(self, box: EmulatedChassis, view: FabricView, tenant: str) -> None:
        self._box, self._view, self._tenant = box, view, tenant
        self._moves: dict[str, _Move] = {}

    def machine(self, machine: CabledMachine, rows: Iterable[DeviceRow]) -> dict[str, Any]:
        """Return a machine with all of its specifications."""
        rows = tuple(rows)
        specs = [self._specification(uuid, kind, model, machine, rows) for uuid, kind, model in self._kinds()]
        shown = {
            "uuid": machine.uuid,
            "name": machine.name,
            "status": "ACTIVE",
            "status_reason": "",
            "resspecs": specs,
        }
        return {"data": {"tenant_uuid": self._tenant, "cluster": {"cluster_uuid": CLUSTER, "machine": shown}}}

    def _kinds(self) -> list[tuple[str, str, str]]:
        return [(uuid, kind, model) for uuid, (kind, model) in self._view.kinds().items()]

    def _specification(
        self, uuid: str, kind: str, model: str, machine: CabledMachine, rows: tuple[DeviceRow, ...]
    ) -> dict[str, Any]:
        own = [row for row in rows if self._view.model(row.device) == model and row.kind.lower() == kind]
        devices = []
        for row in own:
            status, reason = self._status(row, machine)
            if status:
                devices.append(self._view.cluster_device(row, machine, status, reason))
        shown: dict[str, Any] = self._view.specification(uuid, kind, model, len({r.device for r in own}), devices)
        return shown

    def _status(self, row: DeviceRow, machine: CabledMachine) -> tuple[str, str]:
        """Word and reason of a device as that machine has it; "" where it has nothing to do with it."""
        move = self._moves.get(row.device)
        moving = next((each for each in self._box.operations.writes() if each.device == row.device), None)
        if row.port == machine.port:
            if moving is not None and moving.kind is OperationKind.DETACH:
                return REMOVING, ""
            failed = move is not None and move.operation.kind is OperationKind.DETACH and move.operation.settled
            return (REMOVE_FAILED, _why(move.operation)) if failed and move is not None else (ADDED, "")
        if moving is not None and moving.kind is OperationKind.ATTACH and moving.port == machine.port:
            return ADDING, ""
        if row.port is None and move is not None and move.port == machine.port:
            operation = move.operation
            if operation.kind is OperationKind.ATTACH and operation.settled and not _took_effect(operation):
                return ADD_FAILED, _why(operation)
        return "", ""

    def resize(self, machine: CabledMachine, asked: Resize, now_s: float) -> list[Operation]:
        """Begin what is needed to get there; what is under way already is not begun again.

        Raises FabricManagerError.
        """
        self._box.settle(now_s)
        kinds = self._view.kinds()
        if asked.spec_uuid not in kinds:
            raise FabricManagerError("bad-request", f"spec_uuid {asked.spec_uuid!r}: not one of machine {machine.uuid}")
        kind, model = kinds[asked.spec_uuid]
        rows = [r for r in self._box.table.listing() if r.kind.lower() == kind and self._view.model(r.device) == model]
        if asked.remove is None:
            return self._grow(machine, rows, asked.count, now_s)
        return self._shrink(machine, rows, asked.remove, now_s)

    def _grow(self, machine: CabledMachine, rows: list[DeviceRow], count: int, now_s: float) -> list[Operation]:
        moving = {each.device: each for each in self._box.operations.writes()}
        leaving = {d for d, each in moving.items() if each.kind is OperationKind.DETACH}
        there = [row for row in rows if row.port == machine.port and row.device not in leaving]
        coming = [row for row in rows if row.device in moving and moving[row.device].port == machine.port]
        needed = count - len(there) - len(coming)
        free = [row.device for row in rows if row.port is None and row.device not in moving]
        if needed > len(free):
            raise FabricManagerError("none-free", f"{needed} more are wanted, {len(free)} are free")
        for row in rows:
            known = self._moves.get(row.device)
            if known is not None and known.port == machine.port and known.operation.settled:
                del self._moves[row.device]
        return [self._begun(device, machine, now_s, attach=True) for device in free[: max(needed, 0)]]

    def _shrink(
        self, machine: CabledMachine, rows: list[DeviceRow], devices: tuple[str, ...], now_s: float
    ) -> list[Operation]:
        """What is gone already, or on its way, is well."""
        known = {row.uuid: row for row in rows}
        unknown = [each for each in devices if each not in known]
        if unknown:
            raise FabricManagerError("unknown-device", f"device {unknown[0]}: not of this specification")
        moving = self._box.operations.pending()
        wanted = [known[each].device for each in dict.fromkeys(devices) if known[each].port == machine.port]
        return [self._begun(device, machine, now_s, attach=False) for device in wanted if device not in moving]

    def _begun(self, device: str, machine: CabledMachine, now_s: float, *, attach: bool) -> Operation:
        if attach:
            operation = self._box.begin_attach(device, machine.port, now_s)
        else:
            operation = self._box.begin_detach(device, now_s)
        self._moves[device] = _Move(operation, machine.port)
        return operation


def _took_effect(operation: Operation) -> bool:
    return operation.refusal is None and operation.applies


def _why(operation: Operation) -> str:
    """Return why a move did not come off."""
    return "the move was lost" if operation.refusal is None else str(operation.refusal)
