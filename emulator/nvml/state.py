"""The state file that the library reads: what NVML shows of one host, as frozen values, and how it is written.

Text, one writer. The first line is ``mews-nvml 1 <bytes of the body> <crc32 of the body, 8 hex digits>``; the body is
one ``key value`` per line: keys of the host, then for each GPU a line ``gpu`` and its keys, then ``topology`` and
``event`` lines. Strings are percent-encoded. Readers skip keys they do not know, take defaults for missing ones and
treat a file with a wrong length or checksum as a driver that does not answer. A file is replaced whole, by rename, so
that a running process sees the old or the new one and never a mixture.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mews.emulator.nvml.details import Readings, details_of
from mews.emulator.nvml.drivers import DEFAULT_RELEASE, branch_of, cuda_of, nvml_of
from mews.emulator.nvml.profiles import MIB, GpuProfile
from mews.emulator.nvml.topology import Matrix, pcie

VERSION = 1
STATE_NAME = "nvml.state"
"""What the library looks for in its own folder."""

NVLINK_LIMIT = 18
"""Links that the API numbers."""

EVENT_RING = 256
"""Events that a state file keeps; older ones are dropped when written."""

EventKind = Literal["xid", "ecc-single", "ecc-double", "pstate", "clock", "bind", "unbind"]


@dataclass(frozen=True, slots=True)
class NvmlProcess:
    """A process on a GPU. ``kind``: C = compute, G = graphics."""

    pid: int
    name: str
    used_mib: int = 0
    kind: Literal["C", "G"] = "C"


@dataclass(frozen=True, slots=True)
class EccCounts:
    """Errors counted since the driver was loaded (volatile) and over the board's life (aggregate)."""

    volatile_corrected: int = 0
    volatile_uncorrected: int = 0
    aggregate_corrected: int = 0
    aggregate_uncorrected: int = 0


@dataclass(frozen=True, slots=True)
class NvmlGpu:
    """A GPU that the driver of this host has bound.

    ``bus_id`` is sysfs' (``0000:44:00.0``). ``power_mw``, ``temperature_c`` and ``sm_clock_mhz`` follow the
    utilisation where None. ``draining``: invisible to processes that initialise NVML from now on. ``lost``: fallen off
    the bus (NVML_ERROR_GPU_IS_LOST). ``unknown_error``: calls fail with NVML_ERROR_UNKNOWN, as after a hot-plug that
    the driver did not digest. ``ecc_enabled`` counts only where the profile has ECC; ``None`` means the profile's own.
    """

    index: int
    minor: int
    bus_id: str
    uuid: str
    profile: GpuProfile
    serial: str = ""
    vbios: str = ""
    name: str = ""
    numa_node: int = -1
    cpus: str = ""
    utilization_percent: int = 0
    memory_utilization_percent: int | None = None
    memory_used_mib: int = 0
    power_mw: int | None = None
    temperature_c: int | None = None
    sm_clock_mhz: int | None = None
    energy_mj: int = 0
    persistence: bool = False
    compute_mode: int = 0
    draining: bool = False
    lost: bool = False
    unknown_error: bool = False
    ecc_enabled: bool | None = None
    ecc: EccCounts = EccCounts()
    pcie_width: int | None = None
    pcie_gen: int | None = None
    processes: tuple[NvmlProcess, ...] = ()


@dataclass(frozen=True, slots=True)
class NvmlEvent:
    """One event. ``sequence`` starts at 1 and only grows over a host's life. ``data`` is the XID number of ``xid``."""

    sequence: int
    kind: EventKind
    bus_id: str
    data: int = 0


@dataclass(frozen=True, slots=True)
class NvmlHost:
    """All of a host that NVML shows.

    ``dev_root`` is the folder of the fake ``nvidiactl`` and ``nvidia<minor>`` that clients hold open ("" = none are
    opened). ``topology`` has a row and a column per GPU in the order of ``gpus``; None = PCIe only, by NUMA node.
    ``switched``: NVLinks end at switches. ``driver_loaded`` False: nvmlInit says DRIVER_NOT_LOADED.
    ``cuda_version``: 12040 is 12.4; it and ``nvml_version`` are the driver's where they are not given.
    """

    gpus: tuple[NvmlGpu, ...] = ()
    driver_version: str = DEFAULT_RELEASE
    nvml_version: str = ""
    cuda_version: int = 0
    driver_loaded: bool = True
    dev_root: str = ""
    topology: Matrix | None = None
    switched: bool = False
    events: tuple[NvmlEvent, ...] = ()


def state_beside(folder: Path) -> Path:
    """Where a library in this folder looks for its state."""
    return folder / STATE_NAME


def write_state(path: Path, host: NvmlHost) -> None:
    """Replace the state file at once. Raises OSError."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_bytes(render(host))
    fresh.replace(path)


def render(host: NvmlHost) -> bytes:
    """The file's bytes. Raises ValueError for a topology that does not fit the GPUs, and for an unknown driver."""
    body = "".join(f"{line}\n" for line in _lines(host)).encode("ascii")
    return f"mews-nvml {VERSION} {len(body)} {zlib.crc32(body):08x}\n".encode("ascii") + body


def _lines(host: NvmlHost) -> Iterator[str]:
    yield f"driver_version {_text(host.driver_version)}"
    yield f"nvml_version {_text(host.nvml_version or nvml_of(host.driver_version))}"
    yield f"cuda_version {host.cuda_version or cuda_of(host.driver_version)}"
    yield f"driver_loaded {int(host.driver_loaded)}"
    yield f"switched {int(host.switched)}"
    if host.dev_root:
        yield f"dev_root {_text(host.dev_root)}"
    order = sorted(range(len(host.gpus)), key=lambda place: (host.gpus[place].index, host.gpus[place].bus_id))
    matrix = _matrix(host)
    branch = branch_of(host.driver_version)
    for gpu in (host.gpus[place] for place in order):
        yield "gpu"
        keys = dict(_keys(gpu))
        for key, value in keys.items():
            yield f"{key} {_text(value) if isinstance(value, str) else int(value)}".rstrip()
        readings = Readings(int(keys["power"]), int(keys["temperature"]))
        for key, text in details_of(gpu, readings, branch).items():
            yield f"detail {key} {_text(text)}".rstrip()
        for process in gpu.processes:
            yield f"process {process.pid} {process.kind} {process.used_mib * MIB} {_text(process.name)}"
    for row in order:
        yield "topology " + " ".join(matrix[row][column] for column in order)
    for event in host.events[-EVENT_RING:]:
        yield f"event {event.sequence} {event.kind} {event.bus_id} {event.data}"


def _matrix(host: NvmlHost) -> Matrix:
    matrix = host.topology or pcie(tuple(gpu.numa_node for gpu in host.gpus))
    count = len(host.gpus)
    if len(matrix) != count or any(len(row) != count for row in matrix):
        raise ValueError(f"topology: {len(matrix)} rows for {count} GPUs; give one row and column per GPU")
    return matrix


def _keys(gpu: NvmlGpu) -> Iterator[tuple[str, str | int]]:
    yield from _identity(gpu)
    yield from _constants(gpu.profile)
    yield from _load(gpu)
    yield from _condition(gpu)


def _identity(gpu: NvmlGpu) -> tuple[tuple[str, str | int], ...]:
    return (
        ("index", gpu.index),
        ("minor", gpu.minor),
        ("bus_id", gpu.bus_id.lower()),
        ("uuid", gpu.uuid),
        ("serial", gpu.serial),
        ("vbios", gpu.vbios or gpu.profile.vbios),
        ("name", gpu.name or gpu.profile.name),
        ("numa_node", gpu.numa_node),
        ("cpus", gpu.cpus),
    )


def _constants(profile: GpuProfile) -> tuple[tuple[str, str | int], ...]:
    return (
        ("part_number", profile.part_number),
        ("brand", profile.brand),
        ("architecture", profile.architecture),
        ("cc_major", profile.compute_capability[0]),
        ("cc_minor", profile.compute_capability[1]),
        ("cores", profile.cores),
        ("memory_total", profile.memory_bytes),
        ("memory_reserved", profile.reserved_mib * MIB),
        ("bar1_total", profile.bar1_mib * MIB),
        ("bus_width", profile.bus_width_bits),
        ("device_id", profile.device_id),
        ("subsystem_id", profile.subsystem_id),
        ("max_sm_clock", profile.sm_clock_mhz),
        ("max_memory_clock", profile.memory_clock_mhz),
        ("max_video_clock", profile.video_clock_mhz),
        ("power_limit", profile.power_limit_mw),
        ("power_default", profile.power_limit_mw),
        ("power_min", profile.min_power_limit_mw),
        ("power_max", profile.max_power_limit_mw),
        ("slowdown_temperature", profile.slowdown_temperature_c),
        ("shutdown_temperature", profile.shutdown_temperature_c),
        ("max_pcie_gen", profile.pcie_gen),
        ("max_pcie_width", profile.pcie_width),
        ("mig_capable", profile.mig_capable),
        ("nvlinks", min(profile.nvlinks, NVLINK_LIMIT)),
    )


def _load(gpu: NvmlGpu) -> tuple[tuple[str, str | int], ...]:
    profile, share = gpu.profile, gpu.utilization_percent
    busy = share > 0 or bool(gpu.processes)
    temperature = _between(profile.idle_temperature_c, profile.busy_temperature_c, share)
    if gpu.temperature_c is not None:
        temperature = gpu.temperature_c
    idle_power = profile.idle_power_mw + (profile.power_limit_mw // 10 if busy else 0)
    power = _between(idle_power, profile.power_limit_mw, share) if gpu.power_mw is None else gpu.power_mw
    sm_clock = profile.sm_clock_mhz if busy else profile.idle_sm_clock_mhz
    memory_share = gpu.memory_utilization_percent
    return (
        ("utilization", share),
        ("memory_utilization", share // 2 if memory_share is None else memory_share),
        ("memory_used", gpu.memory_used_mib * MIB),
        ("bar1_used", MIB),
        ("sm_clock", sm_clock if gpu.sm_clock_mhz is None else gpu.sm_clock_mhz),
        ("memory_clock", profile.memory_clock_mhz if busy else profile.idle_memory_clock_mhz),
        ("video_clock", profile.video_clock_mhz if busy else min(555, profile.video_clock_mhz)),
        ("pstate", 0 if busy else profile.idle_pstate),
        ("power", power),
        ("energy", gpu.energy_mj),
        ("temperature", temperature),
        ("memory_temperature", temperature + 2 if profile.memory_temperature else -1),
        ("fan", _between(30, 80, share) if profile.fan else -1),
        ("idle", not busy),
    )


def _between(low: int, high: int, percent: int) -> int:
    return low + (high - low) * max(0, min(100, percent)) // 100


def _condition(gpu: NvmlGpu) -> tuple[tuple[str, str | int], ...]:
    profile = gpu.profile
    ecc_mode = -1 if not profile.ecc else int(gpu.ecc_enabled is not False)
    return (
        ("persistence", gpu.persistence),
        ("compute_mode", gpu.compute_mode),
        ("draining", gpu.draining),
        ("lost", gpu.lost),
        ("unknown_error", gpu.unknown_error),
        ("ecc_mode", ecc_mode),
        ("ecc_volatile_corrected", gpu.ecc.volatile_corrected),
        ("ecc_volatile_uncorrected", gpu.ecc.volatile_uncorrected),
        ("ecc_aggregate_corrected", gpu.ecc.aggregate_corrected),
        ("ecc_aggregate_uncorrected", gpu.ecc.aggregate_uncorrected),
        ("pcie_gen", profile.pcie_gen if gpu.pcie_gen is None else gpu.pcie_gen),
        ("pcie_width", profile.pcie_width if gpu.pcie_width is None else gpu.pcie_width),
    )


def _text(value: str) -> str:
    """Percent-encoded: printable ASCII but space and percent stays as it is."""
    plain = value.encode("utf-8")
    return "".join(chr(byte) if 0x20 < byte < 0x7F and byte != 0x25 else f"%{byte:02x}" for byte in plain)
