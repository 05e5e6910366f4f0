"""Setting what boards show, wherever each part of it is kept: boards' values at their chassis, errors that a driver
counts at the host that has the board."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from mews.emulator.hardware.gpu_profile import GpuProfile
from mews.emulator.telemetry.settings import ALL, NAMES, BoardSettings, changed
from mews.names import must_be

ERRORS = ("ecc_corrected", "ecc_uncorrected")
XID = "xid"
SETTABLE = (*NAMES, *ERRORS, XID, ALL)


class SettableHardware(Protocol):
    """The part of ``HardwareControl`` that is needed."""

    async def table(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Chassis -> device -> row."""
        ...

    async def set_telemetry(self, chassis: str, device: str, values: Mapping[str, Any]) -> None:
        """Set values of boards. Raises ValueError."""
        ...

    async def host_fault(self, host: str, spec: Mapping[str, Any]) -> None:
        """Add a fault to a host. Raises ValueError."""
        ...


def check_names(values: Mapping[str, Any]) -> None:
    """Raises ValueError for a name that cannot be set."""
    if not values:
        raise ValueError(f"set: must have at least one of {', '.join(SETTABLE)}")
    for name in values:
        if name not in SETTABLE:
            raise ValueError(f"set {name!r}: {must_be(name, SETTABLE)}")


def check_values(values: Mapping[str, Any], profile: GpuProfile) -> None:
    """Raises ValueError for a name or value that cannot be set on a board of that model."""
    board, _ = _parted(values)
    if board:
        changed(BoardSettings(), board, profile)


async def set_values(hardware: SettableHardware, device: str, values: Mapping[str, Any]) -> None:
    """Set values of one device (by its ID or GPUID), or of ``all``.

    Raises ValueError: an unknown device, name or value, or errors of a board that no host has.
    """
    board, faults = _parted(values)
    table = await hardware.table()
    rows = [(chassis, name, row) for chassis, devices in table.items() for name, row in devices.items()]
    named = [each for each in rows if device in (ALL, each[1], each[2]["gpuid"])]
    if not named:
        raise ValueError(f"device {device!r}: {must_be(device, (*(name for _, name, _ in rows), ALL))}")
    free = [name for _, name, row in named if row["host"] is None]
    if faults and free and device != ALL:
        raise ValueError(f"device {free[0]!r}: no host has this device, so no driver counts its errors")
    if board and device == ALL:
        await hardware.set_telemetry(ALL, ALL, board)
    elif board:
        for chassis, name, _ in named:
            await hardware.set_telemetry(chassis, name, board)
    for _, name, row in named:
        for fault in faults if row["host"] is not None and row["kind"] == "GPU" else ():
            await hardware.host_fault(row["host"], {**fault, "device": name})


def _parted(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what is set on the board itself, and the faults that stand for the rest. Raises ValueError."""
    check_names(values)
    board = {name: value for name, value in values.items() if name in (*NAMES, ALL)}
    return board, _faults({name: value for name, value in values.items() if name not in board})


def _faults(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if XID in values:
        found.append({"kind": "xid", "xid": _count(XID, values[XID])})
    counts = {name: _count(name, values[name]) for name in ERRORS if name in values}
    if counts:
        corrected, uncorrected = (counts.get(name, 0) for name in ERRORS)
        found.append({"kind": "ecc-errors", "corrected": corrected, "uncorrected": uncorrected})
    return found


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} {value!r}: must be a whole number of at least 0")
    return value
