"""GPU models of NVIDIA's RTX PRO Blackwell series, as data.

Names, memory as NVML shows it and device IDs: public ``nvidia-smi`` outputs of such boards and the public PCI ID
database; cores, bus and power: NVIDIA's data sheets. Assumed: idle values, clocks under load, BAR1, temperature
thresholds, subsystems, and VBIOS and part number of all but the RTX PRO 6000. None has NVLinks, C2C or HBM.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from mews.emulator.hardware.gpu_profile import GpuProfile

RTX_PRO_6000 = GpuProfile(
    name="NVIDIA RTX PRO 6000 Blackwell Server Edition",
    brand=14,
    architecture=10,
    compute_capability=(12, 0),
    cores=24064,
    memory_mib=97887,
    reserved_mib=639,
    bar1_mib=131072,
    bus_width_bits=512,
    device_id=0x2BB5_10DE,
    subsystem_id=0x204E_10DE,
    vbios="98.02.8D.00.01",
    part_number="900-2G153-0000-000",
    sm_clock_mhz=2430,
    memory_clock_mhz=12481,
    video_clock_mhz=2280,
    idle_sm_clock_mhz=180,
    idle_memory_clock_mhz=405,
    idle_pstate=8,
    power_limit_mw=600_000,
    min_power_limit_mw=300_000,
    max_power_limit_mw=600_000,
    idle_power_mw=33_000,
    idle_temperature_c=30,
    busy_temperature_c=66,
    slowdown_temperature_c=92,
    shutdown_temperature_c=97,
    pcie_gen=5,
    memory_temperature=False,
    mig_capable=True,
    gpu_part_suffix="895",
)

RTX_PRO_5000 = replace(
    RTX_PRO_6000,
    name="NVIDIA RTX PRO 5000 Blackwell",
    brand=13,
    cores=14080,
    memory_mib=48935,
    reserved_mib=540,
    bar1_mib=65536,
    bus_width_bits=384,
    device_id=0x2BB3_10DE,
    subsystem_id=0x204D_10DE,
    vbios="98.02.6A.00.03",
    part_number="900-5G153-2250-000",
    sm_clock_mhz=3090,
    memory_clock_mhz=14001,
    video_clock_mhz=2475,
    power_limit_mw=300_000,
    min_power_limit_mw=150_000,
    max_power_limit_mw=300_000,
    idle_power_mw=18_000,
    fan=True,
    gpu_part_suffix="855",
)

RTX_PRO_4500 = replace(
    RTX_PRO_5000,
    name="NVIDIA RTX PRO 4500 Blackwell",
    cores=10496,
    memory_mib=32623,
    reserved_mib=469,
    bar1_mib=32768,
    bus_width_bits=256,
    device_id=0x2C31_10DE,
    subsystem_id=0x2051_10DE,
    vbios="98.03.5E.00.02",
    part_number="900-5G147-2240-000",
    power_limit_mw=200_000,
    min_power_limit_mw=100_000,
    max_power_limit_mw=200_000,
    idle_power_mw=14_000,
    gpu_part_suffix="850",
)

RTX_PRO_MODELS: Mapping[str, GpuProfile] = MappingProxyType(
    {"RTX PRO 6000": RTX_PRO_6000, "RTX PRO 5000": RTX_PRO_5000, "RTX PRO 4500": RTX_PRO_4500}
)
