"""MIG as a host reports it of a board: the MIG devices that programs see, while the mode is on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from mews.emulator.telemetry.physics import FILLED_PERCENT
from mews.emulator.telemetry.reading import ProcessReading

_LONGEST_NAME, _MOST, _MOST_KEYS, _WHOLE = 100, 64, 1000, 100


class BoardPart(Struct, frozen=True):
    """A MIG device: its UUID, its profile, the IDs of its GPU and compute instance, and what it has of the board.

    The others are of its GPU instance: ``percent`` of the board's units, the memory that is in use when nothing runs
    there, and ``processes``, the keys of those that work on any of its MIG devices.
    """

    uuid: str
    profile: str
    instance: int
    compute: int
    memory_mib: int
    multiprocessors: int
    percent: float = 100.0
    idle_mib: int = 0
    processes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What tells it from the other parts of its board: ``GI1-CI0``."""
        return f"GI{self.instance}-CI{self.compute}"

    def used_mib(self, processes: Iterable[ProcessReading]) -> int:
        """Memory of the GPU instance in use, as NVML has it: no process uses more than there is."""
        most = self.memory_mib * FILLED_PERCENT // 100
        mine = (process.memory_mib for process in processes if process.key in self.processes)
        return self.idle_mib + sum(min(used, most) for used in mine)

    def busy_percent(self, utilization_percent: int, processes: Iterable[ProcessReading]) -> int:
        """Return how busy the GPU instance is, as NVML's GPM metrics have it: its processes' part of the board's
        load."""
        shares = {process.key: process.utilization_percent for process in processes}
        every, mine = sum(shares.values()), sum(shares.get(key, 0) for key in self.processes)
        return min(round(utilization_percent * mine / every * 100 / self.percent), 100) if every else 0


BoardParts = tuple[BoardPart, ...]
"""Of a board in MIG mode: maybe none yet."""


def parts_value(parts: BoardParts | None) -> list[list[Any]] | None:
    """Return them for JSON; ``parts_from`` reads it back."""
    if parts is None:
        return None
    return [[*astuple(part)[:-1], list(part.processes)] for part in parts]


def parts_from(value: Any) -> BoardParts | None:
    """Return the parts of ``parts_value``. Raises ValueError for anything else."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > _MOST:
        raise ValueError(f"mig {str(value)[:40]}: must be null, or a list of at most {_MOST} parts")
    return tuple(_part(each) for each in value)


def _part(value: Any) -> BoardPart:
    if not isinstance(value, list) or len(value) != len(BoardPart.__struct_fields__):
        raise ValueError(f"mig {str(value)[:40]}: must be a list of {', '.join(BoardPart.__struct_fields__)}")
    texts, numbers, percent, idle_mib, keys = value[:2], value[2:6], *value[6:]
    if not all(isinstance(text, str) and 0 < len(text) <= _LONGEST_NAME for text in texts):
        raise ValueError(f"mig {str(texts)[:40]}: must be two texts of at most {_LONGEST_NAME} characters")
    if not all(type(number) is int and number >= 0 for number in (*numbers, idle_mib)):
        raise ValueError(f"mig {str(numbers)[:40]}: must be whole numbers from 0")
    if type(percent) not in (int, float) or not 0 < percent <= _WHOLE:
        raise ValueError(f"mig {str(percent)[:40]}: must be a percentage above 0")
    if not isinstance(keys, list) or len(keys) > _MOST_KEYS or not all(isinstance(key, str) for key in keys):
        raise ValueError(f"mig {str(keys)[:40]}: must be a list of at most {_MOST_KEYS} texts")
    uuid, profile = texts
    instance, compute, memory_mib, multiprocessors = numbers
    shares = float(percent), idle_mib, tuple(keys)
    return BoardPart(uuid, profile, instance, compute, memory_mib, multiprocessors, *shares)
