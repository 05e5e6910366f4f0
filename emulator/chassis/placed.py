"""A value of a file together with its place, so that every complaint names both."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mews.emulator.chassis.errors import HardwareError

Place = tuple[str | int, ...]
Where = Callable[[Place], str]
"""The file, and the line if it is known, of a place."""


class PlacedValue:
    """A value and its place in the file; each method reads it as one type and refuses all others.

    ``path`` is the place as it is written in complaints: ``chassis[0].devices[1].port``.
    """

    def __init__(self, where: Where, place: Place, value: Any, prefix: str = "") -> None:
        self._where, self._prefix = where, prefix
        self.place, self.value = place, value

    @property
    def path(self) -> str:
        """The place as it is written in complaints; empty for the whole file."""
        path = self._prefix
        for part in self.place:
            path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
        return path

    def error(self, text: str) -> HardwareError:
        """Return that complaint about this place."""
        return HardwareError(f"{self._where(self.place)}: {self.path or 'file'}: {text}")

    def fail(self, allowed: str) -> HardwareError:
        """Return the complaint that the value must be something else."""
        return self.error(f"{_shown(self.value)}: must be {allowed}")

    def mapping(self, allowed: Sequence[str] | None = None) -> Mapping[str, Any]:
        """Return a mapping, with no other keys than those allowed."""
        if not isinstance(self.value, Mapping):
            raise self.fail("a mapping" + (f" with {', '.join(allowed)}" if allowed else ""))
        for key in self.value:
            if allowed is not None and key not in allowed:
                raise self.child(str(key), None).error(f"unknown key; allowed: {', '.join(allowed)}")
        return self.value

    def items(self) -> list[PlacedValue]:
        """Return the items of a list."""
        if not isinstance(self.value, list):
            raise self.fail("a list")
        return [self.child(index, item) for index, item in enumerate(self.value)]

    def child(self, key: str | int, value: Any) -> PlacedValue:
        """Return what lies below that key or index."""
        return PlacedValue(self._where, (*self.place, key), value, self._prefix)

    def get(self, key: str, default: Any = None) -> PlacedValue:
        """Return what lies below that key of a mapping."""
        return self.child(key, self.value.get(key, default))

    def text(self, pattern: re.Pattern[str], allowed: str) -> str:
        """Return a text of that form."""
        if not isinstance(self.value, str) or not pattern.fullmatch(self.value):
            raise self.fail(allowed)
        return self.value

    def whole(self, low: int, high: int) -> int:
        """Return a whole number within bounds."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not low <= self.value <= high:
            raise self.fail(f"a whole number from {low} to {high}")
        return self.value

    def flag(self) -> bool:
        """true or false."""
        if not isinstance(self.value, bool):
            raise self.fail("true or false")
        return self.value

    def unique(self, names: Sequence[str], what: str) -> None:
        """Refuse a name that is there twice."""
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise self.error(f"{what} {name!r} is listed twice; each must be unique")
            seen.add(name)


def _shown(value: Any) -> str:
    try:
        text = "null" if value is None else repr(value)
    except RecursionError:
        text = f"a {type(value).__name__} nested too deep"
    return text if len(text) <= 60 else text[:57] + "..."
