"""One chassis, put together: its table, its one management CPU, its faults. Pure: the time is an argument, chance is
injected.

Everything that is due happens in order of its time, whenever it is settled.
"""

from __future__ import annotations

import random

from mews.emulator.chassis.agenda import SettledAgenda
from mews.emulator.chassis.event_outlet import EventOutlet
from mews.emulator.chassis.events import ChassisEvent, Listener, ignore
from mews.emulator.chassis.faults.board import FaultBoard
from mews.emulator.chassis.management_cpu import ManagementCpu
from mews.emulator.chassis.operation import Answer, Operation, OperationKind
from mews.emulator.chassis.operation_queue import OperationQueue
from mews.emulator.chassis.store import MemoryStore, TableStore
from mews.emulator.chassis.table import DeviceRow, DeviceTable
from mews.emulator.chassis.table_edits import TableEdits
from mews.emulator.hardware.inventory import ChassisSpec
from mews.emulator.telemetry.chassis import ChassisTelemetry, InstalledBoard

_BOARD_CHANGES = ("table-changed", "device-inserted", "device-removed", "link-down", "link-up")


class EmulatedChassis:
    """One emulated chassis. All methods take ``now_s``, emulated seconds that never go back.

    Its parts: ``table`` with its ``edits``, ``operations``, the ``management`` CPU, ``faults``, ``events`` and, with
    what is going to happen, ``agenda``.
    """

    def __init__(
        self,
        spec: ChassisSpec,
        rng: random.Random,
        *,
        listener: Listener = ignore,
        store: TableStore | None = None,
        telemetry: ChassisTelemetry | None = None,
        events_emitted: int = 0,
    ) -> None:
        self.spec = spec
        self.profile = spec.profile
        self.telemetry = ChassisTelemetry() if telemetry is None else telemetry
        self._seed = rng.getrandbits(64)
        self.agenda = SettledAgenda()
        self.table = DeviceTable(spec.devices, spec.slots, MemoryStore() if store is None else store)
        self.faults = FaultBoard(self)
        self.events = EventOutlet(
            spec.name, self.agenda, listener, emitted=events_emitted, hold=self.faults.delay, heed=self._follow
        )
        self.edits = TableEdits(spec, self.table, self.agenda, self.events)
        self.operations = OperationQueue(
            self.profile, self.table, self.edits, agenda=self.agenda, events=self.events, faults=self.faults
        )
        self.management = ManagementCpu(self.agenda, self.events, self.operations)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.agenda.clear()
        self.operations.begin_anew(random.Random(self._seed))
        self.faults.begin_anew(random.Random(self._seed + 1))
        for quirk in self.profile.quirks:
            self.faults.add(quirk, self.now_s, built_in=True)
        self.telemetry.begin(map(self._board, self.table.rows()), self.now_s)

    # Looking

    @property
    def now_s(self) -> float:
        """The time up to which everything has happened."""
        return self.agenda.now_s

    def settle(self, now_s: float) -> None:
        """Let everything happen that was due by now, each at its own time."""
        self.agenda.settle(now_s)

    def rows(self, now_s: float) -> tuple[DeviceRow, ...]:
        """Return the whole table, also devices that clients are not shown."""
        self.agenda.settle(now_s)
        return self.table.rows()

    def row(self, device: str, now_s: float) -> DeviceRow:
        """Return one row of the table.

        Raises UnknownDeviceError.
        """
        self.agenda.settle(now_s)
        return self.table.row(device)

    # What dialects begin and finish

    def begin_attach(self, device: str, port: str, now_s: float) -> Operation:
        """Ask for a free device to be put on a host port."""
        return self.operations.begin(OperationKind.ATTACH, device, port, now_s)

    def begin_detach(self, device: str, now_s: float) -> Operation:
        """Ask for a device to be taken off its host port; one that is free already stays so, and that is well."""
        return self.operations.begin(OperationKind.DETACH, device, None, now_s)

    def begin_read(self, now_s: float) -> Operation:
        """Ask for the listing as it will be when the read is due."""
        return self.operations.begin(OperationKind.READ, "", None, now_s)

    def finish(self, operation: Operation, now_s: float) -> Answer:
        """Return the answer to an operation whose ``answer_s`` has come."""
        self.agenda.settle(max(now_s, operation.answer_s))
        return operation.answer()

    # Power

    def reset(self, now_s: float) -> None:
        """Table, faults, operations and chance as they were at the start; running operations get no answer.

        Raises NotStoredError.
        """
        self.agenda.settle(now_s)
        self.operations.lose_all()
        self.table.reset()
        self.events.release()
        self._begin_anew()
        self.events.emit("reset")

    def power_off(self, now_s: float) -> None:
        """Kill -9: what runs is lost, nothing happens any more. ``Fleet.build`` makes its successor from the store."""
        self.agenda.settle(now_s)
        self.events.release()
        self.agenda.clear()
        self.operations.lose_all()

    # Boards

    def _board(self, row: DeviceRow) -> InstalledBoard:
        spec = self.table.spec(row.device)
        return InstalledBoard(row.device, spec.uuid, spec.model, row.link and row.port is not None)

    def _follow(self, event: ChassisEvent) -> None:
        """Let the telemetry follow a change of a device's place or link."""
        if event.event not in _BOARD_CHANGES:
            return
        device = event.fields["device"]
        if event.event == "device-removed":
            self.telemetry.remove(device)
            return
        self.telemetry.install(self._board(self.table.row(device)), self.now_s)
        if event.event == "link-up":
            self.telemetry.retrained(device, self.now_s)
