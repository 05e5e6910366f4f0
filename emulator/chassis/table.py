"""The device lookup table of one chassis: which device is on which host port. O(1) per change."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from mews.emulator.chassis.errors import (
    DuplicateDeviceError,
    NotStoredError,
    SlotsFullError,
    StoreError,
    UnknownDeviceError,
)
from mews.emulator.chassis.store import TableStore
from mews.emulator.hardware.inventory import DeviceSpec

HISTORY = 4096
"""How many changes a stale list can be rewound over."""


class DeviceRow(Struct, frozen=True):
    """A device as the chassis sees it. ``link`` is False after a surprise removal."""

    device: str
    uuid: str
    port: str | None
    kind: str
    link: bool = True


class TableChange(Struct, frozen=True):
    """One change of the table, for rewinding."""

    t: float
    device: str
    old_port: str | None


class DeviceTable:
    """Rows by device. Every change is stored before it shows; what the store refuses did not happen."""

    def __init__(self, devices: Iterable[DeviceSpec], slots: int, store: TableStore) -> None:
        self._start = tuple(devices)
        self._slots = slots
        self._store = store
        stored = store.load()
        if stored is None:
            self._keep(lambda: store.replace(self._start))
        self._fill(self._start if stored is None else stored)

    def _fill(self, devices: Iterable[DeviceSpec]) -> None:
        self._specs = {spec.id: spec for spec in devices}
        self._rows = {spec.id: DeviceRow(spec.id, spec.uuid, spec.port, spec.kind) for spec in self._specs.values()}
        self._history: deque[TableChange] = deque(maxlen=HISTORY)
        self._listing: tuple[DeviceRow, ...] | None = None

    def __contains__(self, device: object) -> bool:
        return device in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, device: str) -> DeviceRow:
        """Return the row of one device.

        Raises UnknownDeviceError.
        """
        try:
            return self._rows[device]
        except KeyError:
            raise UnknownDeviceError(f"device {device!r}: not in this chassis") from None

    def spec(self, device: str) -> DeviceSpec:
        """Return the device's inventory record, with its present port.

        Raises UnknownDeviceError.
        """
        self.row(device)
        return self._specs[device]

    def rows(self) -> tuple[DeviceRow, ...]:
        """Return every row, also of devices whose link is down."""
        return tuple(self._rows.values())

    def devices(self) -> tuple[str, ...]:
        """Return the IDs of all devices."""
        return tuple(self._rows)

    def listing(self) -> tuple[DeviceRow, ...]:
        """Return the rows that a client is shown: the same tuple until something changes."""
        if self._listing is None:
            self._listing = tuple(row for row in self._rows.values() if row.link)
        return self._listing

    def rewound(self, t: float) -> tuple[DeviceRow, ...]:
        """Return the listing as it was at ``t``, as far as the history reaches."""
        ports: dict[str, str | None] = {}
        for change in reversed(self._history):
            if change.t <= t:
                break
            ports[change.device] = change.old_port
        return tuple(replace(row, port=ports.get(row.device, row.port)) for row in self.listing())

    def move(self, device: str, port: str | None, t: float) -> str | None:
        """Put a device on a port, or on none, and return the port that it was on.

        Raises UnknownDeviceError, NotStoredError.
        """
        row, spec = self.row(device), replace(self._specs[device], port=port)
        self._keep(lambda: self._store.save(spec))
        self._specs[device] = spec
        self._history.append(TableChange(t, device, row.port))
        self._show(replace(row, port=port))
        return row.port

    def show(self, device: str, *, link: bool | None = None, uuid: str | None = None) -> None:
        """Change what clients see of a device without touching the stored table."""
        row = self.row(device)
        self._show(replace(row, link=row.link if link is None else link, uuid=row.uuid if uuid is None else uuid))

    def insert(self, spec: DeviceSpec) -> None:
        """Put a device into an empty slot.

        Raises DuplicateDeviceError, SlotsFullError, NotStoredError.
        """
        if spec.id in self._rows:
            raise DuplicateDeviceError(f"device {spec.id!r}: is in this chassis already")
        if len(self._rows) >= self._slots:
            raise SlotsFullError(f"device {spec.id!r}: all {self._slots} slots hold a device")
        self._keep(lambda: self._store.save(spec))
        self._specs[spec.id] = spec
        self._show(DeviceRow(spec.id, spec.uuid, spec.port, spec.kind))

    def remove(self, device: str) -> str | None:
        """Pull a device out of its slot and return the port that it was on.

        Raises UnknownDeviceError, NotStoredError.
        """
        row = self.row(device)
        self._keep(lambda: self._store.remove(device))
        del self._rows[device], self._specs[device]
        self._listing = None
        return row.port

    def reset(self) -> None:
        """Make the table again what the hardware file says.

        Raises NotStoredError.
        """
        self._keep(lambda: self._store.replace(self._start))
        self._fill(self._start)

    def _show(self, row: DeviceRow) -> None:
        self._rows[row.device] = row
        self._listing = None

    def _keep(self, write: Callable[[], None]) -> None:
        try:
            write()
        except StoreError as error:
            raise NotStoredError(str(error)) from error
