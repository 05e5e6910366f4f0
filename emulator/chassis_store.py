"""The device lookup tables on disk (sqlite, WAL, synchronous=FULL): what was acknowledged survives kill -9."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from mews.emulator.chassis.errors import StoreError
from mews.emulator.clock import unix_s
from mews.emulator.hardware.inventory import DeviceSpec

SCHEMA = """
CREATE TABLE IF NOT EXISTS chassis (name TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS device (
  chassis TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, row TEXT NOT NULL, PRIMARY KEY (chassis, id)
);
CREATE TABLE IF NOT EXISTS telemetry (
  chassis TEXT NOT NULL, device TEXT NOT NULL, unix_s REAL NOT NULL, state TEXT NOT NULL, PRIMARY KEY (chassis, device)
);
"""


class StateFile:
    """One file for all chassis of a process, which holds it alone.

    Raises StoreError where the file cannot be used.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.5)
        except sqlite3.Error as error:
            raise StoreError(f"{path}: {error}") from error
        try:
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(SCHEMA)
        except sqlite3.Error as error:
            self._db.close()
            raise StoreError(f"{path}: {error}") from error

    def table(self, chassis: str) -> SqliteStore:
        """Return the table of one chassis."""
        return SqliteStore(self, chassis)

    def telemetry(self, chassis: str, speed: float) -> SqliteTelemetryStore:
        """Return the telemetry of one chassis' boards, whose time passes that many times as fast as real time."""
        return SqliteTelemetryStore(self, chassis, speed)

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    def limit_pages(self, pages: int) -> None:
        """Let the file grow to that many pages only, as a full disk would."""
        self._db.execute(f"PRAGMA max_page_count={int(pages)}")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Provide all or nothing, durable at its end.

        Raises StoreError.
        """
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise StoreError(f"{self._path}: {error}") from error


class SqliteStore:
    """TableStore of one chassis in a ``StateFile``."""

    def __init__(self, state: StateFile, chassis: str) -> None:
        self._state = state
        self._chassis = chassis

    def load(self) -> tuple[DeviceSpec, ...] | None:
        """Return all rows in order of their first writing, or None.

        Raises StoreError.
        """
        with self._state.transaction() as db:
            if db.execute("SELECT 1 FROM chassis WHERE name = ?", (self._chassis,)).fetchone() is None:
                return None
            query = "SELECT row FROM device WHERE chassis = ? ORDER BY position"
            return tuple(DeviceSpec(**json.loads(row)) for (row,) in db.execute(query, (self._chassis,)))

    def save(self, row: DeviceSpec) -> None:
        """Write one row; see TableStore."""
        with self._state.transaction() as db:
            self._write(db, row)

    def remove(self, device: str) -> None:
        """Delete one row; see TableStore."""
        with self._state.transaction() as db:
            db.execute("DELETE FROM device WHERE chassis = ? AND id = ?", (self._chassis, device))

    def replace(self, rows: Iterable[DeviceSpec]) -> None:
        """Write the whole table; see TableStore."""
        with self._state.transaction() as db:
            db.execute("INSERT OR IGNORE INTO chassis VALUES (?)", (self._chassis,))
            db.execute("DELETE FROM device WHERE chassis = ?", (self._chassis,))
            for row in rows:
                self._write(db, row)

    def _write(self, db: sqlite3.Connection, row: DeviceSpec) -> None:
        db.execute(
            "INSERT INTO device VALUES (?1, ?2,"
            " (SELECT coalesce(max(position), 0) + 1 FROM device WHERE chassis = ?1), ?3)"
            " ON CONFLICT (chassis, id) DO UPDATE SET row = excluded.row",
            (self._chassis, row.id, json.dumps(asdict(row), separators=(",", ":"))),
        )


class SqliteTelemetryStore:
    """TelemetryStore of one chassis in a ``StateFile``. A write that fails is let go: the board goes on all the same,
    and only after a kill would it begin with what was written before."""

    def __init__(self, state: StateFile, chassis: str, speed: float) -> None:
        self._state = state
        self._chassis = chassis
        self._speed = speed

    def load(self) -> Mapping[str, tuple[Mapping[str, Any], float]]:
        """Return all boards; see TelemetryStore. Raises StoreError."""
        with self._state.transaction() as db:
            rows = db.execute("SELECT device, unix_s, state FROM telemetry WHERE chassis = ?", (self._chassis,))
            now_s = unix_s()
            return {
                device: (json.loads(text), max(0.0, now_s - saved_s) * self._speed) for device, saved_s, text in rows
            }

    def save(self, states: Mapping[str, Mapping[str, Any]]) -> None:
        """Write boards; see TelemetryStore."""
        now_s = unix_s()
        rows = [
            (self._chassis, device, now_s, json.dumps(state, separators=(",", ":"))) for device, state in states.items()
        ]
        with suppress(StoreError), self._state.transaction() as db:
            db.executemany("INSERT OR REPLACE INTO telemetry VALUES (?, ?, ?, ?)", rows)

    def remove(self, device: str) -> None:
        """Delete one board; see TelemetryStore."""
        with suppress(StoreError), self._state.transaction() as db:
            db.execute("DELETE FROM telemetry WHERE chassis = ? AND device = ?", (self._chassis, device))
