"""What a system is installed on, as an administrator would write it down. Frozen values; no emulator is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mews.dialects import DEFAULT


@dataclass(frozen=True, slots=True)
class ChassisAddress:
    """One chassis: ``index`` prefixes its devices' IDs, ``endpoint`` is its base URL ("" in process)."""

    name: str
    index: int
    pool: str
    endpoint: str = ""
    dialect: str = DEFAULT


@dataclass(frozen=True, slots=True)
class NodeCabling:
    """One node: its pool, and per chassis (by name) the host port that it is cabled to; {} for none."""

    name: str
    ports: Mapping[str, str]
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Facility:
    """Chassis, nodes and cables. ``namespace`` is where the system's own objects belong; None: its default.

    ``speed``: emulated seconds per second of the API's time, for limits that are weighed against emulated time.
    """

    chassis: tuple[ChassisAddress, ...] = ()
    nodes: tuple[NodeCabling, ...] = ()
    namespace: str | None = None
    speed: float = 1.0
