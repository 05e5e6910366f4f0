"""How the table gets back to what it was: a file that outlives everything, and what is done with it.

The file is written before the first change and again before every other one, with every place that a device may have
been brought to. A device that is found somewhere else was moved by somebody else since, and is left alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.errors import ListingUnavailableError, MalformedError
from mews.harness.conformance.table import Limits, ListedTable, port_text
from mews.harness.errors import BadInputError, unreadable
from mews.harness.leftovers import state_folder

VERSION = 2
ROUNDS = 2
"""Of putting back: where the first takes another device off its port, that one is put back in the second."""


@dataclass(slots=True)
class Moved:
    """A device: where it was (None: on no port), and where it may have been brought."""

    port: str | None
    seen: list[str | None] = field(default_factory=list)


@dataclass(slots=True)
class RestorePlan:
    """What a restore file holds. ``neighbours``: devices that were not to be moved; ``unanswered``: writes begun whose
    answer was not seen; ``content_type``: what moves are sent in, where that was found out; ``cert`` and ``key``: files
    of this client's certificate. No credentials."""

    url: str
    dialect: str
    ca: str | None
    insecure: bool
    patience_s: float
    limits: dict[str, float]
    pid: int
    born: str
    guard: int = 0
    content_type: str = ""
    devices: dict[str, Moved] = field(default_factory=dict)
    neighbours: dict[str, Moved] = field(default_factory=dict)
    unanswered: int = 0
    cert: str | None = None
    key: str | None = None


class RestoreFile:
    """A plan on disk, whole or not at all.

    Writing raises OSError.
    """

    def __init__(self, path: Path, plan: RestorePlan) -> None:
        self.path = path
        self.plan = plan
        self._lock = threading.Lock()

    def remember(self, table: ListedTable, devices: tuple[str, ...]) -> None:
        """Take down where the devices are, before anything is changed."""
        with self._lock:
            self.plan.devices = {device: Moved(table.port(device)) for device in devices}
            self.plan.neighbours = {
                device: Moved(row.port) for device, row in table.rows.items() if device not in devices
            }
            self._write()

    def begin(self, device: str, port: str | None) -> None:
        """A device may come to that port from now on."""
        with self._lock:
            self.plan.unanswered += 1
            self._saw(device, port)
            self._write()

    def saw(self, device: str, port: str | None) -> None:
        """Our own requests brought a device there."""
        with self._lock:
            self._saw(device, port)
            self._write()

    def answered(self) -> None:
        """A write that was begun has been answered."""
        with self._lock:
            self.plan.unanswered -= 1
            self._write()

    def learned(self, content_type: str) -> None:
        """Moves work in this content type."""
        with self._lock:
            self.plan.content_type = content_type
            self._write()

    def knocked_off(self, device: str) -> None:
        """A request of ours took a neighbour off its port."""
        with self._lock:
            moved = self.plan.neighbours.get(device)
            if moved is not None and None not in moved.seen:
                moved.seen.append(None)
                self._write()

    def _saw(self, device: str, port: str | None) -> None:
        moved = self.plan.devices.get(device)
        if moved is not None and port not in moved.seen:
            moved.seen.append(port)

    def guarded_by(self, pid: int) -> None:
        """Note who restores if this process dies."""
        with self._lock:
            self.plan.guard = pid
            self._write()

    def _write(self) -> None:
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump({"version": VERSION, **asdict(self.plan)}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)

    def forget(self) -> None:
        """All is as it was."""
        self.path.unlink(missing_ok=True)


def default_path(url: str, dialect: str) -> Path:
    """Return where the restore file of a chassis lies: in ``$XDG_STATE_HOME/mews/conform`` (``~/.local/state``)."""
    digest = hashlib.sha256(f"{dialect} {url}".encode()).hexdigest()[:16]
    return state_folder() / "conform" / f"{digest}.json"


def read_file(path: Path) -> RestoreFile:
    """Return the file as it was left.

    Raises BadInputError.
    """
    try:
        value: Any = json.loads(path.read_text(encoding="utf-8"))
        if value.pop("version") != VERSION:
            raise ValueError(f"version must be {VERSION}")
        for each in ("devices", "neighbours"):
            value[each] = {name: Moved(**moved) for name, moved in value[each].items()}
        return RestoreFile(path, RestorePlan(**value))
    except FileNotFoundError:
        raise BadInputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(unreadable(path, error)) from error
    except KeyError as error:
        raise BadInputError(f"{path}: is not a restore file: it has no {error}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise BadInputError(f"{path}: is not a restore file: {error}") from error


def put_back(file: RestoreFile, bench: ClauseContext) -> list[str]:
    """Bring every device back; what could not be, in words. The file goes when all is well.

    A write that was begun by a process that died may still take effect: then the table is watched for a while.
    """
    if file.plan.content_type:
        bench.face.content_type = file.plan.content_type
    left = _put_back(file.plan, bench)
    if file.plan.unanswered:
        quiet_s, began_s = bench.limits.quiet_s, time.monotonic()
        while not left and time.monotonic() - began_s < quiet_s:
            threading.Event().wait(min(0.2, quiet_s))
            left = _put_back(file.plan, bench)
    if not left:
        with contextlib.suppress(OSError):
            file.forget()
    return left


def _put_back(plan: RestorePlan, bench: ClauseContext) -> list[str]:
    try:
        for _ in range(ROUNDS):
            table = bench.read()
            for device, moved in _not_back(plan, table):
                if device in table.rows:
                    bench.move(device, moved.port)
            left = _not_back(plan, table := bench.read())
            if not left:
                return []
        began_s = time.monotonic()
        while left and time.monotonic() - began_s < bench.limits.settle_s:
            threading.Event().wait(min(0.2, bench.limits.settle_s))
            left = _not_back(plan, table := bench.read())
    except (MalformedError, ListingUnavailableError) as error:
        return [str(error)]
    return [_unrestored(device, moved, table, bench) for device, moved in left]


def _not_back(plan: RestorePlan, table: ListedTable) -> list[tuple[str, Moved]]:
    """Return the devices that are where our requests brought them, or nowhere."""
    return [
        (device, moved)
        for device, moved in (*plan.devices.items(), *touched(plan))
        if device not in table.rows or moved.port != table.port(device) in moved.seen
    ]


def _unrestored(device: str, moved: Moved, table: ListedTable, bench: ClauseContext) -> str:
    """Return where a device is, where it was, and the request that would put it back."""
    if device not in table.rows:
        return f"device {device} is not listed any more; it was on {port_text(moved.port)}"
    call = getattr(bench.face, "call", None)
    how = f"; this would put it back: {call(device, moved.port)}" if call is not None else ""
    return f"device {device} does not go back to {port_text(moved.port)}, it is on {port_text(table.port(device))}{how}"


def touched(plan: RestorePlan) -> list[tuple[str, Moved]]:
    """Return the neighbours that requests of ours took off their ports."""
    return [(device, moved) for device, moved in plan.neighbours.items() if moved.seen]


def put_back_neighbours(plan: RestorePlan, table: ListedTable) -> list[str]:
    """Return the neighbours that were knocked off and are back, in words."""
    return [
        f"device {device} was taken off {port_text(moved.port)} by a request about another one; "
        "it has been put back there"
        for device, moved in touched(plan)
        if table.port(device) == moved.port
    ]


def strangers(plan: RestorePlan, table: ListedTable) -> list[str]:
    """Devices that somebody else has moved since, in words."""
    return [
        f"device {device} was on {port_text(moved.port)} and is on {port_text(table.port(device))}: "
        "the chassis or another client has moved it, it is left there"
        for device, moved in (*plan.devices.items(), *plan.neighbours.items())
        if device in table.rows and table.port(device) != moved.port and table.port(device) not in moved.seen
    ]


def limits_of(plan: RestorePlan) -> Limits:
    """Return the plan's limits."""
    return Limits(**plan.limits)
