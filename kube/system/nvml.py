"""A node's GPUs as NVML shows them to a component that runs there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct


class GpuProcess(Struct, frozen=True):
    """A process that computes on a GPU, and what it has of its memory; one process has one on each GPU."""

    pid: int
    used_mib: int


class ListedGpu(Struct, frozen=True):
    """One GPU: its NVML index, minor number, and memory as NVML counts it; ``lost``: it does not answer any more;
    ``divided``: it is in MIG mode, so that no program can use it whole."""

    index: int
    uuid: str
    bus_id: str
    minor: int
    memory_mib: int
    lost: bool = False
    processes: tuple[GpuProcess, ...] = ()
    divided: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether a component may offer it, or its memory, as a whole."""
        return not (self.lost or self.divided)


class ReportedXid(Struct, frozen=True):
    """An XID that the driver reported of a GPU."""

    uuid: str
    xid: int


class NvmlReading(Struct, frozen=True):
    """All GPUs in order of index, and the XIDs since the reading before."""

    gpus: tuple[ListedGpu, ...] = ()
    xids: tuple[ReportedXid, ...] = ()


class GpuDescription(Struct, frozen=True):
    """What stays the same of a GPU: its product's name, NVML's number of its architecture, and its slot at best."""

    uuid: str
    name: str
    architecture: int = 0
    pcie_generation: int = 0
    pcie_width: int = 0


class NvmlDescription(Struct, frozen=True):
    """The driver, the GPUs in order of index, and how they are joined: a row and a column for each in the words of
    ``nvidia-smi topo -m`` (``X``, ``NV2``, ``PIX``, ``PXB``, ``PHB``, ``NODE``, ``SYS``)."""

    driver_version: str = ""
    gpus: tuple[GpuDescription, ...] = ()
    matrix: tuple[tuple[str, ...], ...] = ()


class NvmlError(Exception):
    """NVML cannot be used, or answered with an error; one line."""


class NvmlPort(Protocol):
    """NVML of one node, held open between two calls: who holds it keeps its GPUs from being removed in an orderly way
    (contract host.md section 3)."""

    async def read(self) -> NvmlReading:
        """Look, opening the library where it is not open.

        Raises NvmlError.
        """
        ...

    async def describe(self) -> NvmlDescription:
        """Return what stays the same while no GPU comes or goes; the library is opened where it is not open.

        Raises NvmlError.
        """
        ...

    def watch(self, changed: Callable[[], None]) -> None:
        """Have ``changed`` called whenever other GPUs are shown than before, where the library reports it. It need not:
        a caller that must know also looks from time to time."""
        ...

    async def close(self) -> None:
        """Let go of all GPUs."""
        ...
