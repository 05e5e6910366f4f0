"""Who writes, and how."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """The part of a write that is not its object: the user, the field manager, whether to leave all as it is."""

    user: str = "system:admin"
    manager: str = ""
    dry_run: bool = False


ADMIN = Request()
