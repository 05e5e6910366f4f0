"""Objects of JSON whose members are each there once: of two of a name every reader takes another."""

from __future__ import annotations

from typing import Any


class DuplicateMemberError(ValueError):
    """``name``: the member that is there twice."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the member {name!r} is listed twice in one object")
        self.name = name


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object, for ``object_pairs_hook``.

    Raises DuplicateMemberError.
    """
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise DuplicateMemberError(name)
        found[name] = value
    return found
