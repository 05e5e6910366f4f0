"""MIG as a host reports it of a board: the MIG devices that programs see, while the mode is on."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

_LONGEST_NAME, _MOST = 100, 64


class BoardPart(Struct, frozen=True):
    """A MIG device: its UUID, its profile, the IDs of its GPU and compute instance, and what it has of the board."""

    uuid: str
    profile: str
    instance: int
    compute: int
    memory_mib: int
    multiprocessors: int

    @property
    def name(self) -> str:
        """What tells it from the other parts of its board: ``GI1-CI0``."""
        return f"GI{self.instance}-CI{self.compute}"


BoardParts = tuple[BoardPart, ...]
"""Of a board in MIG mode: maybe none yet."""


def parts_value(parts: BoardParts | None) -> list[list[Any]] | None:
    """For JSON; ``parts_from`` reads it back."""
    return None if parts is None else [list(astuple(part)) for part in parts]


def parts_from(value: Any) -> BoardParts | None:
    """The parts of ``parts_value``. Raises ValueError for anything else."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > _MOST:
        raise ValueError(f"mig {str(value)[:40]}: must be null, or a list of at most {_MOST} parts")
    return tuple(_part(each) for each in value)


def _part(value: Any) -> BoardPart:
    if not isinstance(value, list) or len(value) != len(BoardPart.__struct_fields__):
        raise ValueError(f"mig {str(value)[:40]}: must be a list of {', '.join(BoardPart.__struct_fields__)}")
    texts, numbers = value[:2], value[2:]
    if not all(isinstance(text, str) and 0 < len(text) <= _LONGEST_NAME for text in texts):
        raise ValueError(f"mig {str(texts)[:40]}: must be two texts of at most {_LONGEST_NAME} characters")
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(f"mig {str(numbers)[:40]}: must be whole numbers from 0")
    return BoardPart(*texts, *numbers)
