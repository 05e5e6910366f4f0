"""The hardware file: hosts, chassis, host ports and devices (``apiVersion: mews/v1``, ``kind: Hardware``).

``parse_hardware`` turns the file's content into frozen values or raises one line that names file, place, value and
what is allowed. Reading the file itself is ``mews.emulator.inventory_file``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mews.emulator.chassis.profiles import ChassisProfile
from mews.emulator.host.profiles import INSTANT, HostProfile
from mews.emulator.nvml.drivers import DEFAULT_RELEASE
from mews.emulator.nvml.profiles import DEFAULT_MODEL

DEFAULT_POOL = "pool-0"
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
PORT = re.compile(r"0|[1-9][0-9]{0,4}")
ID = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._:]*")
ANYTHING = re.compile(r"[^\x00-\x1f]*")


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device in a slot. ``id`` is the chassis' own (Dev_GID); ``port`` is the host port at the start, None = free.
    ``memory_mib``: of a GPU that has not its model's (None: it has)."""

    id: str
    uuid: str
    kind: str = "GPU"
    model: str = DEFAULT_MODEL
    serial: str = ""
    port: str | None = None
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class HostSpec:
    """A server. Its name is also the node's name. ``profile``: how its layers lag behind its chassis ports; ``driver``:
    the release of NVIDIA's that it shows. ``devices`` are built in: they are in no pool, and no chassis knows them."""

    name: str
    cpus: int = 192
    memory_mib: int = 1_048_576
    profile: HostProfile = INSTANT
    driver: str = DEFAULT_RELEASE
    devices: tuple[DeviceSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class ChassisSpec:
    """One chassis. ``ports`` maps each host port to the host cabled to it, or None."""

    name: str
    index: int
    pool: str
    slots: int
    ports: Mapping[str, str | None]
    devices: tuple[DeviceSpec, ...]
    profile: ChassisProfile

    def gpuid(self, device: str) -> str:
        """The pool-wide ID of a device, ``<chassis index>-<device>`` such as ``1-001300`` (chassis.md 2); a server's
        own are called by the server's name."""
        return f"{self.index if self.name else self.pool}-{device}"


@dataclass(frozen=True, slots=True)
class Hardware:
    """All of a hardware file."""

    name: str
    hosts: tuple[HostSpec, ...]
    chassis: tuple[ChassisSpec, ...]

    def pools(self) -> tuple[str, ...]:
        """The pools, in the order of the file."""
        return tuple(dict.fromkeys(spec.pool for spec in self.chassis))
