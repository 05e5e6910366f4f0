"""The hardware file: hosts, chassis, host ports and devices (``apiVersion: mews/v1``, ``kind: Hardware``).

``parse_hardware`` turns the file's content into frozen values or raises one line that names file, place, value and
what is allowed. Reading the file itself is ``mews.emulator.inventory_file``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from mews.emulator.hardware.chassis_profiles import ChassisProfile
from mews.emulator.hardware.drivers import DEFAULT_RELEASE
from mews.emulator.hardware.gpu_profiles import DEFAULT_MODEL
from mews.emulator.hardware.host_profiles import INSTANT, HostProfile
from mews.emulator.hardware.pcie_tree import PcieTree
from mews.emulator.hardware.topology import LinkMatrix

DEFAULT_POOL = "pool-0"
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
PORT = re.compile(r"0|[1-9][0-9]{0,4}")
ID = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._:]*")
ANYTHING = re.compile(r"[^\x00-\x1f]*")


class DeviceSpec(Struct, frozen=True):
    """A device in a slot. ``id`` is the chassis' own (Dev_GID); ``port`` is the host port at the start, None = free.
    ``memory_mib``: of a GPU that has not its model's (None: it has); ``virtual_functions``: of an adapter whose
    firmware is not set to the usual number; ``below``: the root complex or switch that a built-in device is on."""

    id: str
    uuid: str
    kind: str = "GPU"
    model: str = DEFAULT_MODEL
    serial: str = ""
    port: str | None = None
    memory_mib: int | None = None
    virtual_functions: int | None = None
    below: str | None = None


class HostSpec(Struct, frozen=True):
    """A server. Its name is also the node's name. ``profile``: how its layers lag behind its chassis ports; ``driver``:
    the release of NVIDIA's that it shows. ``devices`` are built in: they are in no pool, and no chassis knows them;
    ``pcie`` is the tree that they are in (None: one switch), ``links`` how NVLinks join its GPUs (None: as their model
    has it)."""

    name: str
    cpus: int = 192
    memory_mib: int = 1_048_576
    profile: HostProfile = INSTANT
    driver: str = DEFAULT_RELEASE
    devices: tuple[DeviceSpec, ...] = ()
    pcie: PcieTree | None = None
    links: LinkMatrix | None = None

    @property
    def numa_nodes(self) -> int:
        """How many NUMA nodes share its processors: two, or more where its tree has a higher one."""
        return max(2, *(root.numa_node + 1 for root in self.pcie.roots)) if self.pcie is not None else 2


class ChassisSpec(Struct, frozen=True):
    """One chassis. ``ports`` maps each host port to the host cabled to it, or None. ``prefixed``: whether pool-wide IDs
    begin with its index."""

    name: str
    index: int
    pool: str
    slots: int
    ports: Mapping[str, str | None]
    devices: tuple[DeviceSpec, ...]
    profile: ChassisProfile
    prefixed: bool = True

    def gpuid(self, device: str) -> str:
        """Return the pool-wide ID of a device, ``<chassis index>-<device>`` such as ``1-001300`` (chassis.md 2), or
        ``001300`` alone as the public KubeComp has it; a server's own are called by the server's name."""
        if not self.prefixed:
            return device
        return f"{self.index if self.name else self.pool}-{device}"


class Hardware(Struct, frozen=True):
    """All of a hardware file."""

    name: str
    hosts: tuple[HostSpec, ...]
    chassis: tuple[ChassisSpec, ...]

    def pools(self) -> tuple[str, ...]:
        """Return the pools, in the order of the file."""
        return tuple(dict.fromkeys(spec.pool for spec in self.chassis))
