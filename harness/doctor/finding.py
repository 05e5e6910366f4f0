"""The values that `mews doctor` reports."""

from __future__ import annotations

from msgspec import Struct


class WayFinding(Struct, frozen=True):
    """One way to run; ``lacks`` has a line for each missing thing, with how to get it."""

    name: str
    use: str
    lacks: tuple[str, ...] = ()


class PartFinding(Struct, frozen=True):
    """One thing that ways to run need, or that extends them.

    ``found`` is its version or place, "" where it is missing; ``get`` is what to do then; ``needed_by`` names the ways
    that cannot run without it.
    """

    name: str
    purpose: str
    found: str = ""
    get: str = ""
    needed_by: tuple[str, ...] = ()
