"""Where the device lookup table is kept, so that it outlives the process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mews.emulator.hardware.inventory import DeviceSpec


class TableStore(Protocol):
    """One chassis' table: a row per device, its ``port`` being where it is now. A write is durable when it returns."""

    def load(self) -> tuple[DeviceSpec, ...] | None:
        """Return all rows in order of their first writing; None where nothing was ever stored."""
        ...

    def save(self, row: DeviceSpec) -> None:
        """Write one row of the table.

        Raises StoreError, having written nothing.
        """
        ...

    def remove(self, device: str) -> None:
        """Delete the row of one device.

        Raises StoreError, having deleted nothing.
        """
        ...

    def replace(self, rows: Iterable[DeviceSpec]) -> None:
        """Write the whole table.

        Raises StoreError, having written nothing.
        """
        ...


class MemoryStore:
    """Lives as long as the process: a chassis killed and started within it finds its table again."""

    def __init__(self) -> None:
        self._rows: dict[str, DeviceSpec] | None = None

    def load(self) -> tuple[DeviceSpec, ...] | None:
        """Return all rows, or None if nothing was ever written."""
        return None if self._rows is None else tuple(self._rows.values())

    def save(self, row: DeviceSpec) -> None:
        """Write one row of the table."""
        if self._rows is None:
            self._rows = {}
        self._rows[row.id] = row

    def remove(self, device: str) -> None:
        """Delete the row of one device."""
        if self._rows is not None:
            self._rows.pop(device, None)

    def replace(self, rows: Iterable[DeviceSpec]) -> None:
        """Write the whole table."""
        self._rows = {row.id: row for row in rows}
