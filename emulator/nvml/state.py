"""The state file that the library reads: what NVML shows of one host, as frozen values, and how it is written.

What changes over time is written as spans (``mews.emulator.telemetry``) that the library evaluates: power is constant
within one, energy grows with the time, the temperature goes toward its target. The file is written again when causes
change, not as time passes.

Text, one writer. The first line is ``mews-nvml 1 <bytes of the body> <crc32 of the body, 8 hex digits>``; the body is
one ``key value`` per line: keys of the host, then for each GPU a line ``gpu`` and its keys, then ``topology``,
``level`` and ``event`` lines. Strings are percent-encoded. Readers skip keys they do not know, take defaults for
missing ones and treat a file with a wrong length or checksum as a driver that does not answer. A file is replaced
whole, by rename, so that a running process sees the old or the new one and never a mixture.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import astuple, replace

from mews.emulator.clock import monotonic_ns
from mews.emulator.hardware.drivers import DEFAULT_RELEASE, branch_of, cuda_of, is_late, nvml_of
from mews.emulator.hardware.gpu_profiles import MIB, GpuProfile
from mews.emulator.hardware.topology import Matrix, pcie
from mews.emulator.nvml.details import details_of
from mews.emulator.nvml.driver_settings import NO_SETTINGS, DriverSettings
from mews.emulator.nvml.mig.instances import NO_MIG, MigState
from mews.emulator.nvml.mig.lines import gpu_lines, table_lines
from mews.emulator.nvml.mig.models import mig_table
from mews.emulator.nvml.recovery import RECOVERED
from mews.emulator.telemetry import physics
from mews.emulator.telemetry.accounting import AccountedProcess
from mews.emulator.telemetry.controls import NO_CONTROLS, BoardControls
from mews.emulator.telemetry.physics import BoardDemand
from mews.emulator.telemetry.reading import GpuCounters
from mews.emulator.telemetry.record import BoardRecord, steady_span
from mews.emulator.telemetry.timeline import BoardTotals, TelemetrySpan
from mews.emulator.telemetry.units import NS_PER_S, PJ_PER_MJ

VERSION = 1
MILLION = 1_000_000
"""Speeds and temperatures are written in millionths."""
STATE_NAME = "nvml.state"
"""What the library looks for in its own folder."""

NVLINK_LIMIT = 18
"""Links that the API numbers."""

EVENT_RING = 256
"""Events that a state file keeps; older ones are dropped when written."""

EventKind = Literal["xid", "ecc-single", "ecc-double", "pstate", "clock", "bind", "unbind"]


class NvmlProcess(Struct, frozen=True):
    """A process on a GPU. ``kind``: C = compute, G = graphics; the instances' IDs are -1 for those of a whole GPU."""

    pid: int
    name: str
    used_mib: int = 0
    kind: Literal["C", "G"] = "C"
    gpu_instance: int = -1
    compute_instance: int = -1


class NvmlAccount(Struct, frozen=True):
    """What accounting knows of a process."""

    pid: int
    process: AccountedProcess


class EccCounts(Struct, frozen=True):
    """Errors counted since the driver was loaded (volatile) and over the board's life (aggregate)."""

    volatile_corrected: int = 0
    volatile_uncorrected: int = 0
    aggregate_corrected: int = 0
    aggregate_uncorrected: int = 0


class StateClock(Struct, frozen=True):
    """At ``monotonic_ns`` of this machine's CLOCK_MONOTONIC it was ``emulated_ns``; those pass ``speed`` times as
    fast."""

    monotonic_ns: int
    emulated_ns: int = 0
    speed: float = 1.0


class NvmlGpu(Struct, frozen=True):
    """A GPU that the driver of this host has bound.

    ``bus_id`` is sysfs' (``0000:44:00.0``). With a ``record`` of its telemetry the load is that of the record;
    without one it is constant: ``power_mw``, ``temperature_c`` and ``sm_clock_mhz`` follow the utilisation where
    None, and energy grows from ``energy_mj`` as power has it. ``draining``: invisible to processes that initialise
    NVML from now on. ``lost``: fallen off the bus (NVML_ERROR_GPU_IS_LOST). ``unknown_error``: calls fail with
    NVML_ERROR_UNKNOWN, as after a hot-plug that the driver did not digest. ``ecc_enabled`` counts only where the
    profile has ECC; ``None`` means the profile's own; ``ecc_pending`` counts from the next load of the driver on.
    ``accounted`` is shown while ``accounting`` is on. ``controls`` is what NVML's setters changed; ``recovery`` is
    what its XIDs ask for (``recovery.py``). ``link_ends``: bus ids of the GPUs at the ends of its NVLinks, in the
    links' order, also of those that are away; without them the links are numbered by ``NvmlHost.topology``.
    ``mig`` counts only where the model has MIG. ``link_threshold``: after which idle NVLinks sleep, in units of 100 us,
    0: the longest; ``link_bandwidth``: how many are in use, as NVML numbers the modes. ``settings``: what else the
    driver was told.
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
    ecc_pending: bool | None = None
    controls: BoardControls = NO_CONTROLS
    ecc: EccCounts = EccCounts()
    pcie_width: int | None = None
    pcie_gen: int | None = None
    processes: tuple[NvmlProcess, ...] = ()
    record: BoardRecord | None = None
    link_ends: tuple[str, ...] = ()
    mig: MigState = NO_MIG
    link_threshold: int = 0
    link_bandwidth: int = 0
    settings: DriverSettings = NO_SETTINGS
    recovery: str = RECOVERED
    accounting: bool = False
    accounted: tuple[NvmlAccount, ...] = ()

    @property
    def counters(self) -> GpuCounters:
        """Its errors: those of the record, or ``ecc``."""
        return GpuCounters(*astuple(self.ecc)) if self.record is None else self.record.counters


class NvmlEvent(Struct, frozen=True):
    """One event. ``sequence`` starts at 1 and only grows over a host's life. ``data`` is the XID number of ``xid``; the
    instances' IDs are -1 for events of a whole GPU."""

    sequence: int
    kind: EventKind
    bus_id: str
    data: int = 0
    gpu_instance: int = -1
    compute_instance: int = -1


class NvmlHost(Struct, frozen=True):
    """All of a host that NVML shows.

    ``dev_root`` is the folder of the fake ``nvidiactl`` and ``nvidia<minor>`` that clients hold open ("" = none are
    opened). ``topology`` has a row and a column per GPU in the order of ``gpus``; None = PCIe only, by NUMA node.
    ``levels``: the PCIe levels alone, for pairs that NVLinks join too; None = by NUMA node for those.
    ``switched``: NVLinks end at switches. ``driver_loaded`` False: nvmlInit says DRIVER_NOT_LOADED.
    ``cuda_version``: 12040 is 12.4; it and ``nvml_version`` are the driver's where they are not given. ``clock``: the
    time of the GPUs' records; None: time 0 is when the file is written.
    """

    gpus: tuple[NvmlGpu, ...] = ()
    driver_version: str = DEFAULT_RELEASE
    nvml_version: str = ""
    cuda_version: int = 0
    driver_loaded: bool = True
    dev_root: str = ""
    topology: Matrix | None = None
    levels: Matrix | None = None
    switched: bool = False
    events: tuple[NvmlEvent, ...] = ()
    clock: StateClock | None = None


def state_beside(folder: Path) -> Path:
    """Return where a library in this folder looks for its state."""
    return folder / STATE_NAME


def write_state(path: Path, host: NvmlHost) -> None:
    """Replace the state file at once. Raises OSError."""
    if host.clock is None:
        host = replace(host, clock=StateClock(monotonic_ns()))
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_bytes(render(host))
    fresh.replace(path)


def render(host: NvmlHost) -> bytes:
    """Return the file's bytes. Raises ValueError for a topology that does not fit the GPUs, and for an unknown
    driver."""
    body = "".join(f"{line}\n" for line in _lines(host)).encode("ascii")
    return f"mews-nvml {VERSION} {len(body)} {zlib.crc32(body):08x}\n".encode("ascii") + body


# Complex: one branch for each optional line, in the order of the file.
def _lines(host: NvmlHost) -> Iterator[str]:  # noqa: C901
    yield f"driver_version {_text(host.driver_version)}"
    yield f"nvml_version {_text(host.nvml_version or nvml_of(host.driver_version))}"
    yield f"cuda_version {host.cuda_version or cuda_of(host.driver_version)}"
    yield f"driver_loaded {int(host.driver_loaded)}"
    yield f"switched {int(host.switched)}"
    if host.dev_root:
        yield f"dev_root {_text(host.dev_root)}"
    if host.clock is not None:
        yield f"clock_monotonic {host.clock.monotonic_ns}"
        yield f"clock_emulated {host.clock.emulated_ns}"
        yield f"clock_speed {round(host.clock.speed * MILLION)}"
    yield f"lag {round(physics.TAU_S * NS_PER_S)}"
    order = sorted(range(len(host.gpus)), key=lambda place: (host.gpus[place].index, host.gpus[place].bus_id))
    matrix = _matrix(host.topology or pcie(tuple(gpu.numa_node for gpu in host.gpus)), len(host.gpus))
    branch = branch_of(host.driver_version)
    tables = list(dict.fromkeys(table for gpu in host.gpus if (table := mig_table(gpu.profile)) is not None))
    yield from table_lines(tables)
    for gpu in (host.gpus[place] for place in order):
        yield "gpu"
        for key, value in _keys(gpu):
            yield f"{key} {_text(value) if isinstance(value, str) else int(value)}".rstrip()
        spans = _record(gpu).spans
        yield _totals(spans[0].totals)
        for span in spans:
            yield _span(span, gpu.memory_utilization_percent)
        for key, text in details_of(gpu, branch, late=is_late(host.driver_version)).items():
            yield f"detail {key} {_text(text)}".rstrip()
        for end in gpu.link_ends:
            yield f"link_end {end.lower()}"
        for account in gpu.accounted:
            yield _account(account)
        for process in gpu.processes:
            where = "" if process.gpu_instance < 0 else f" {process.gpu_instance} {process.compute_instance}"
            yield f"process {process.pid} {process.kind} {process.used_mib * MIB} {_text(process.name)}{where}"
        if (table := mig_table(gpu.profile)) is not None:
            yield from gpu_lines(gpu.mig, table, tables.index(table))
    for row in order:
        yield "topology " + " ".join(matrix[row][column] for column in order)
    if host.levels is not None and host.levels != matrix:
        levels = _matrix(host.levels, len(host.gpus))
        for row in order:
            yield "level " + " ".join(levels[row][column] for column in order)
    for event in host.events[-EVENT_RING:]:
        where = "" if event.gpu_instance < 0 else f" {event.gpu_instance} {event.compute_instance}"
        yield f"event {event.sequence} {event.kind} {event.bus_id} {event.data}{where}"


def _matrix(matrix: Matrix, count: int) -> Matrix:
    if len(matrix) != count or any(len(row) != count for row in matrix):
        raise ValueError(f"topology: {len(matrix)} rows for {count} GPUs; give one row and column per GPU")
    return matrix


def _keys(gpu: NvmlGpu) -> Iterator[tuple[str, str | int]]:
    yield from _identity(gpu)
    yield from _constants(gpu.profile)
    yield from _load(gpu)
    yield from _controls(gpu)
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
        ("power_default", profile.power_limit_mw),
        ("power_min", profile.min_power_limit_mw),
        ("power_max", profile.max_power_limit_mw),
        ("slowdown_temperature", profile.slowdown_temperature_c),
        ("shutdown_temperature", profile.shutdown_temperature_c),
        ("max_temperature", profile.slowdown_temperature_c - physics.BELOW_SLOWDOWN_C),
        ("memory_max_temperature", profile.shutdown_temperature_c - physics.BELOW_SHUTDOWN_C),
        ("max_pcie_gen", profile.pcie_gen),
        ("max_pcie_width", profile.pcie_width),
        ("mig_capable", profile.mig_capable),
        ("nvlinks", min(profile.nvlinks, NVLINK_LIMIT)),
    )


def _load(gpu: NvmlGpu) -> tuple[tuple[str, str | int], ...]:
    profile = gpu.profile
    cold, hot = (profile.idle_temperature_c, profile.busy_temperature_c) if profile.fan else (-1, -1)
    return (
        ("memory_used", gpu.memory_used_mib * MIB),
        ("bar1_used", MIB),
        ("memory_warmer", physics.MEMORY_WARMER_C if profile.memory_temperature else -1),
        ("fan_low", physics.FAN_LOW if profile.fan else -1),
        ("fan_high", physics.FAN_HIGH if profile.fan else -1),
        ("fan_cold", cold),
        ("fan_hot", hot),
    )


def _controls(gpu: NvmlGpu) -> tuple[tuple[str, str | int], ...]:
    controls, profile = gpu.controls, gpu.profile
    limit_mw = profile.power_limit_mw if controls.power_limit_mw is None else controls.power_limit_mw
    memory, graphics = controls.applications or (profile.memory_clock_mhz, profile.sm_clock_mhz)
    return (
        ("power_limit", limit_mw),
        ("application_memory_clock", memory),
        ("application_sm_clock", graphics),
        ("fan_fixed", -1 if controls.fan is None else controls.fan),
    )


def _record(gpu: NvmlGpu) -> BoardRecord:
    """Return the record that was given, or one of a load that never changes."""
    if gpu.record is not None:
        return gpu.record
    profile = gpu.profile
    demand = BoardDemand(
        utilization=gpu.utilization_percent,
        contexts=len(gpu.processes),
        fixed_power_mw=gpu.power_mw,
        fixed_sm_mhz=gpu.sm_clock_mhz,
    )
    shown_c = physics.settled_c(profile, replace(demand, fixed_power_mw=None))
    temperature_c = shown_c if gpu.temperature_c is None else gpu.temperature_c
    count = len(gpu.processes)
    totals = BoardTotals(energy_pj=gpu.energy_mj * PJ_PER_MJ)
    span = steady_span(profile, demand, 0, totals, temperature_c, temperature_c)
    shares = tuple(gpu.utilization_percent // count for _ in gpu.processes)
    return BoardRecord(gpu.uuid, (replace(span, shares=shares),))


def _account(account: NvmlAccount) -> str:
    """Return a process' life in emulated nanoseconds; its end is -1 while it runs."""
    known = account.process
    ended_ns = -1 if known.ended_ns is None else known.ended_ns
    numbers = (
        account.pid,
        known.utilization,
        known.memory_utilization,
        known.memory_mib * MIB,
        known.began_ns,
        ended_ns,
    )
    return "accounted " + " ".join(map(str, numbers))


def _totals(totals: BoardTotals) -> str:
    """Return those at the beginning of the first span, in nanoseconds and kB; the library adds up the later ones."""
    kilobytes = totals.pcie_kb_ns // NS_PER_S
    held = (totals.capped_ns, totals.hot_ns, totals.locked_ns, totals.cooled_ns)
    return f"totals {totals.work_ns} {kilobytes} {' '.join(map(str, held))}"


def _span(span: TelemetrySpan, memory_utilization: int | None) -> str:
    energy_mj, rest_pj = divmod(span.totals.energy_pj, PJ_PER_MJ)
    numbers = (
        span.at_ns,
        -1 if span.until_ns is None else span.until_ns,
        span.utilization,
        physics.memory_utilization(span.utilization) if memory_utilization is None else memory_utilization,
        span.power_mw,
        span.sm_clock_mhz,
        span.memory_clock_mhz,
        span.video_clock_mhz,
        span.pstate,
        int(span.reasons),
        span.pcie_kb_s,
        energy_mj,
        rest_pj,
        round(span.temperature_c * MILLION),
        round(span.target_c * MILLION),
        *span.shares,
    )
    return "span " + " ".join(map(str, numbers))


def _condition(gpu: NvmlGpu) -> tuple[tuple[str, str | int], ...]:
    profile = gpu.profile
    ecc_mode = -1 if not profile.ecc else int(gpu.ecc_enabled is not False)
    ecc_pending = -1 if not profile.ecc else int(gpu.ecc_pending is not False)
    counters = gpu.counters
    return (
        ("persistence", gpu.persistence),
        ("compute_mode", gpu.compute_mode),
        ("accounting", gpu.accounting),
        ("link_threshold", gpu.link_threshold),
        ("link_bandwidth", gpu.link_bandwidth),
        ("draining", gpu.draining),
        ("lost", gpu.lost),
        ("unknown_error", gpu.unknown_error),
        ("ecc_mode", ecc_mode),
        ("ecc_pending", ecc_pending),
        ("ecc_volatile_corrected", gpu.ecc.volatile_corrected),
        ("ecc_volatile_uncorrected", gpu.ecc.volatile_uncorrected),
        ("ecc_aggregate_corrected", gpu.ecc.aggregate_corrected),
        ("ecc_aggregate_uncorrected", gpu.ecc.aggregate_uncorrected),
        ("remapped_rows", counters.remapped_rows),
        ("remap_pending", counters.remap_pending),
        ("remap_failed", counters.remap_failed),
        ("pcie_replays", counters.pcie_replays),
        ("pcie_gen", profile.pcie_gen if gpu.pcie_gen is None else gpu.pcie_gen),
        ("pcie_width", profile.pcie_width if gpu.pcie_width is None else gpu.pcie_width),
    )


def _text(value: str) -> str:
    """Percent-encoded: printable ASCII but space and percent stays as it is."""
    plain = value.encode("utf-8")
    return "".join(chr(byte) if 0x20 < byte < 0x7F and byte != 0x25 else f"%{byte:02x}" for byte in plain)
