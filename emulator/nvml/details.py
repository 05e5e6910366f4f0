"""What only ``nvidia-smi -q`` shows of a GPU: texts by name, derived from its model and its state.

A key that is missing is ``N/A`` there, and decides which elements there are (``c/smi/layout.c``). Sources: public
outputs of ``nvidia-smi -q`` of such boards; what one board of a generation has is assumed of all of its kind (HBM or
not, with NVSwitch or not, joined to a Grace CPU or not).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from zlib import crc32

from mews.emulator.hardware.gpu_profiles import GpuProfile
from mews.emulator.nvml.driver_settings import MOST_BOOST, TIMESLICES, has_setting
from mews.emulator.nvml.recovery import DRAIN_AND_RESET, RECOVERED

if TYPE_CHECKING:
    from mews.emulator.nvml.state import NvmlGpu

VOLTA, TURING, AMPERE, ADA, HOPPER, BLACKWELL = 5, 6, 7, 8, 9, 10
GEFORCE = 5
_HEX = re.compile("[0-9a-f]{16}")

HMM_SINCE = 560
"""The branch from which on the open kernel modules are the usual ones; they share the address space."""

ATOMICS = "FETCHADD_32 FETCHADD_64 SWAP_32 SWAP_64 CAS_32 CAS_64 "
MAX_OPERATING_C = 4
"""So many degrees below slowdown a GPU may work for good, as NVML's threshold says."""

MEMORY_SHARE_PERCENT = 20
"""Of a board's power, what its memory takes; assumed."""

PLATFORM_SINCE = EDPP_SINCE = 590
"""The branch whose outputs have the platform of boards outside racks in csv, and Hopper's EDPp multiplier."""

GRACE_NODES, NODES_OF_A_GPU = 2, 8
"""NUMA nodes of a tray's Grace CPUs; its GPUs' own follow, eight for each, as its instances may need them."""

HBM_BANKS, GDDR_BANKS = 640, 192
"""Banks that rows can be remapped in."""


def details_of(gpu: NvmlGpu, branch: int, *, late: bool = False) -> Mapping[str, str]:
    """Key -> text. One that begins with = is worked out by the library when it is asked for: ``=t LIMIT[ UNIT]`` is how
    many degrees are left to that limit, ``=p PART WHOLE`` that part of the power, ``=c``, ``=h`` and ``=s`` how long
    the power limit, the temperature and the target temperature have held back the clocks. ``late``: whether the release
    has what the last ones of 580 brought (``drivers.is_late``)."""
    return dict(
        (
            *_board(gpu),
            *_platform(gpu, late or branch >= PLATFORM_SINCE),
            *_modes(gpu, branch),
            *_settings(gpu),
            *_errors(gpu),
            *_heat(gpu),
            *_power(gpu.profile, branch),
            *_fabric(gpu),
        )
    )


def _board(gpu: NvmlGpu) -> Iterator[tuple[str, str]]:
    profile = gpu.profile
    yield "display_mode", "Disabled" if profile.fan else "Enabled"
    yield "display_attached", "No" if profile.fan else "Yes"
    digits = gpu.uuid.removeprefix("GPU-").replace("-", "")[:16]
    if _HEX.fullmatch(digits):
        yield "pdi", f"0x{int.from_bytes(bytes.fromhex(digits), 'little'):016x}"
    yield "gpu_part_number", f"{profile.device_id >> 16:04X}-{profile.gpu_part_suffix}-A1"
    group, _, rest = profile.part_number.partition("-")
    assert group
    code, _, revision = rest.partition("-")
    numbers = "".join(c if c.isdecimal() else "0" for c in revision[:4])
    yield "inforom_image", f"G{code[-3:]}.{numbers}.00.01"
    yield "inforom_oem", "2.1" if profile.architecture >= AMPERE else "1.1"
    if profile.ecc:
        yield "inforom_ecc", "7.16" if profile.architecture >= HOPPER else "6.16"
    yield "inforom_checksum", "valid"
    yield "pci_base_class", f"{profile.pci_class >> 16:X}"
    yield "pci_sub_class", f"{profile.pci_class >> 8 & 0xFF:X}"
    yield "csv_base_class", f"0x{profile.pci_class >> 16:X}"
    yield "csv_sub_class", f"0x{profile.pci_class >> 8 & 0xFF:X}"
    yield "replay_rollovers", "0"
    yield "power_management", "Supported"


def _platform(gpu: NvmlGpu, late: bool) -> Iterator[tuple[str, str]]:
    """Yield where the board sits. ``csv_``: what ``--query-gpu`` has of it, also without a rack (captures of H200,
    L40S)."""
    yield "module_id", str(gpu.index + 1 if gpu.profile.nvlinks else 1)
    serial = str(1_820_000_000_000 + _number(gpu.serial, "chassis") % 10_000_000_000)
    guid = f"0x{_number(gpu.uuid, 'guid'):08x}{_number(gpu.uuid, 'fabric'):08x}"
    names = ("chassis_serial_number", "slot_number", "tray_index", "host_id", "peer_type", "gpu_fabric_guid")
    if gpu.profile.grace:
        in_rack = tuple(zip(names, (serial, "11", "5", "1", "Switch Connected", guid), strict=True))
        yield from in_rack
        yield from ((f"csv_{name}", text) for name, text in in_rack)
    elif late:
        alone = ("", "0", "0", "1", "Direct Connected", guid if gpu.profile.nvlinks else "0x0000000000000000")
        yield from ((f"csv_{name}", text) for name, text in zip(names, alone, strict=True))


def _modes(gpu: NvmlGpu, branch: int) -> Iterator[tuple[str, str]]:
    profile = gpu.profile
    shared = branch >= HMM_SINCE and profile.architecture >= TURING
    yield "addressing_mode", "ATS" if profile.grace else "HMM" if shared else "None"
    if profile.brand == GEFORCE:
        yield "host_link_gen", str(profile.pcie_gen)
    if profile.grace:
        yield "numa_id", str(GRACE_NODES + NODES_OF_A_GPU * gpu.index)
    if profile.architecture >= HOPPER:
        yield "c2c_mode", "Enabled" if profile.grace else "Disabled"
    if profile.architecture == HOPPER:
        yield "sparse_mode", "Disabled"
    if profile.architecture >= BLACKWELL:
        yield "atomic_caps", ATOMICS
    yield "reset_required", "No"
    yield "display_clocks", "Not Active"
    yield "throttled_sw_power_cap", "=c"
    yield "throttled_hw_thermal", "=h"
    yield "throttled_sw_thermal", "=s"
    for cause in ("sync_boost", "hw_power_brake"):
        yield f"throttled_{cause}", "0 us"
    yield "cc_memory", "0 MiB"
    yield "fbc", "0"
    yield "egm", "disabled"


def _settings(gpu: NvmlGpu) -> Iterator[tuple[str, str]]:
    settings, profile = gpu.settings, gpu.profile
    yield "timeslice", TIMESLICES[settings.timeslice]
    if has_setting("boost", profile):
        yield "boost", str(settings.boost)
        yield "boost_most", str(MOST_BOOST)
    if has_setting("gpm-streaming", profile):
        yield "gpm_streaming", str(int(settings.streaming))
    if has_setting("memory-clocks-deferred", profile) and settings.deferred_mhz is not None:
        yield "deferred_memory", f"{settings.deferred_mhz} MHz"


def _errors(gpu: NvmlGpu) -> Iterator[tuple[str, str]]:
    profile = gpu.profile
    counted = profile.ecc and gpu.ecc_enabled is not False
    if profile.architecture <= VOLTA:
        yield "ecc_by_unit", "yes"
    if counted:
        yield "ecc_none", "0"
        yield "sram_threshold", "No"
        yield ("ecc_unit" if profile.architecture <= VOLTA else "ecc_sram"), "0"
        if profile.architecture > VOLTA:
            yield "csv_sram_threshold", "No"
    pending = profile.ecc and gpu.counters.remap_pending and profile.architecture >= AMPERE
    yield "recovery_action", DRAIN_AND_RESET if pending and gpu.recovery == RECOVERED else gpu.recovery
    yield "repair_pending", "No"
    if profile.hbm and profile.architecture >= HOPPER:
        yield "unrepairable_memory", "No"
    if profile.ecc and profile.architecture < AMPERE:
        yield "retired_pagelist", ""
    if profile.ecc and profile.architecture >= AMPERE:
        banks = HBM_BANKS if profile.hbm else GDDR_BANKS
        used = min(gpu.counters.remapped_rows, banks)  # a row of each
        yield "bank_histogram", f"{banks - used} bank(s)"
        yield "bank_histogram_high", f"{used} bank(s)"
        yield "bank_histogram_used", "0 bank(s)"
        yield "remapped_inactive", "0"
        if gpu.mig.enabled and gpu.mig.instances:
            yield "rows_hidden", "yes"


def _heat(gpu: NvmlGpu) -> Iterator[tuple[str, str]]:
    profile = gpu.profile
    if profile.architecture >= ADA:
        limit = profile.slowdown_temperature_c - MAX_OPERATING_C
        yield "tlimit_number", f"=t {limit}"
        yield "tlimit", f"=t {limit} C"
        yield "tlimit_shutdown", f"{limit - profile.shutdown_temperature_c} C"
        yield "tlimit_slowdown", f"{limit - profile.slowdown_temperature_c} C"
        yield "tlimit_max", "0 C"
        if profile.memory_temperature:
            yield "tlimit_memory", "0 C"
    if bounds := profile.target_temperatures:
        low, own, high = bounds
        wanted = gpu.controls.target_c
        yield "target_temperature", f"{own if wanted is None else wanted} C"
        yield "target_temperature_min", f"{low} C"
        yield "target_temperature_max", f"{high} C"


def _power(profile: GpuProfile, branch: int) -> Iterator[tuple[str, str]]:
    if profile.hbm and profile.architecture >= HOPPER and branch >= EDPP_SINCE:
        yield "edpp", "100"
    if profile.architecture >= ADA or (profile.architecture == AMPERE and not profile.hbm):
        yield "average_power", "yes"
    if profile.hbm and profile.architecture >= HOPPER:
        yield "memory_power", f"=p {MEMORY_SHARE_PERCENT} 100"
    if profile.hbm and profile.architecture >= BLACKWELL:
        yield "power_smoothing", "Insufficient Permissions"
    if profile.module_power_limit_mw:
        yield "module_power", f"=p {profile.module_power_limit_mw} {profile.power_limit_mw}"
        yield "module_power_limit", _watts(profile.module_power_limit_mw)
        yield "module_power_min", _watts(profile.min_power_limit_mw)


def _fabric(gpu: NvmlGpu) -> Iterator[tuple[str, str]]:
    """The fabric manager is done with every GPU of an NVSwitch system; before Hopper there was nothing to see of it."""
    if not gpu.profile.nvswitch or gpu.profile.architecture < HOPPER:
        return
    yield "fabric_state", "Completed"
    yield "fabric_status", "Success"
    yield "fabric_clique", "0"
    yield "fabric_cluster", "00000000-0000-0000-0000-000000000000"
    health = (("summary", "Healthy"), ("bandwidth", "Full"), ("trouble", "False")) if gpu.profile.grace else ()
    for name, text in health:
        yield f"fabric_{name}", text
    known = {"summary": "N/A", "bandwidth": "N/A", "trouble": "N/A", "configuration": "N/A", **dict(health)}
    for name, text in known.items():
        yield f"csv_fabric_{name}", text


def _watts(milliwatts: int) -> str:
    return f"{milliwatts // 1000}.{milliwatts % 1000 // 10:02d} W"


def _number(identity: str, what: str) -> int:
    return crc32(f"{what}/{identity}".encode())
