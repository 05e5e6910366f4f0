"""Who writes, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The part of a write that is not its object: the user, the field manager, whether to leave all as it is.

    ``validation`` is Ignore, Warn or Strict: what becomes of fields that are not known or said twice. ``duplicates``
    names the latter; ``raw`` is the JSON text of a POST or PUT, for telling them in its order. What is warned of goes
    to ``warnings``. ``subresource`` is told in managedFields where the write goes to the main resource (scale).
    """

    user: str = "system:admin"
    manager: str = ""
    dry_run: bool = False
    validation: str = "Ignore"
    raw: bytes = b""
    duplicates: Sequence[str] = ()
    subresource: str = ""
    warnings: list[str] = field(default_factory=list, compare=False)


ADMIN = WriteRequest()
