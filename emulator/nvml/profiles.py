"""What a GPU model is: constants that NVML and nvidia-smi tell of it, as data.

Sources: PCI ids and board names from the public PCI ID database (``pci.ids``, vendor 10de); memory, cores, compute
capability, bus width and power limits from NVIDIA's data sheets and the CUDA programming guide's table of compute
capabilities; clocks, BAR1 sizes, temperature thresholds, VBIOS and part-number forms as public ``nvidia-smi -q``
outputs of such boards show them. Where boards of one model differ, one of them is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class GpuProfile:
    """The constants of a model. Clocks in MHz, power in milliwatts, temperatures in degrees Celsius.

    ``brand`` and ``architecture`` are NVML's numbers (nvmlBrandType_t, nvmlDeviceArchitecture_t).
    ``device_id`` and ``subsystem_id`` carry the device in the upper, the vendor in the lower 16 bits, as NVML does.
    """

    name: str
    brand: int
    architecture: int
    compute_capability: tuple[int, int]
    cores: int
    memory_mib: int
    reserved_mib: int
    bar1_mib: int
    bus_width_bits: int
    device_id: int
    subsystem_id: int
    vbios: str
    part_number: str
    sm_clock_mhz: int
    memory_clock_mhz: int
    video_clock_mhz: int
    idle_sm_clock_mhz: int
    idle_memory_clock_mhz: int
    idle_pstate: int
    power_limit_mw: int
    min_power_limit_mw: int
    max_power_limit_mw: int
    idle_power_mw: int
    idle_temperature_c: int
    busy_temperature_c: int
    slowdown_temperature_c: int
    shutdown_temperature_c: int
    pcie_gen: int
    pcie_width: int = 16
    ecc: bool = True
    memory_temperature: bool = True
    fan: bool = False
    mig_capable: bool = False

    @property
    def memory_bytes(self) -> int:
        """All of the frame buffer."""
        return self.memory_mib * MIB

    @property
    def pci_class(self) -> int:
        """The PCI class of sysfs: a VGA controller with a display engine, a 3D controller without."""
        return 0x030000 if self.fan else 0x030200


PROFILES: Mapping[str, GpuProfile] = MappingProxyType(
    {
        "V100": GpuProfile(
            name="Tesla V100-PCIE-32GB",
            brand=2,
            architecture=5,
            compute_capability=(7, 0),
            cores=5120,
            memory_mib=32768,
            reserved_mib=258,
            bar1_mib=32768,
            bus_width_bits=4096,
            device_id=0x1DB6_10DE,
            subsystem_id=0x124A_10DE,
            vbios="88.00.48.00.02",
            part_number="900-2G500-0010-000",
            sm_clock_mhz=1380,
            memory_clock_mhz=877,
            video_clock_mhz=1237,
            idle_sm_clock_mhz=135,
            idle_memory_clock_mhz=877,
            idle_pstate=0,
            power_limit_mw=250_000,
            min_power_limit_mw=100_000,
            max_power_limit_mw=250_000,
            idle_power_mw=25_000,
            idle_temperature_c=33,
            busy_temperature_c=62,
            slowdown_temperature_c=87,
            shutdown_temperature_c=90,
            pcie_gen=3,
        ),
        "V100-16GB": GpuProfile(
            name="Tesla V100-PCIE-16GB",
            brand=2,
            architecture=5,
            compute_capability=(7, 0),
            cores=5120,
            memory_mib=16384,
            reserved_mib=258,
            bar1_mib=16384,
            bus_width_bits=4096,
            device_id=0x1DB4_10DE,
            subsystem_id=0x1214_10DE,
            vbios="88.00.48.00.02",
            part_number="900-2G500-0000-000",
            sm_clock_mhz=1380,
            memory_clock_mhz=877,
            video_clock_mhz=1237,
            idle_sm_clock_mhz=135,
            idle_memory_clock_mhz=877,
            idle_pstate=0,
            power_limit_mw=250_000,
            min_power_limit_mw=100_000,
            max_power_limit_mw=250_000,
            idle_power_mw=25_000,
            idle_temperature_c=33,
            busy_temperature_c=62,
            slowdown_temperature_c=87,
            shutdown_temperature_c=90,
            pcie_gen=3,
        ),
        "P100-16GB": GpuProfile(
            name="Tesla P100-PCIE-16GB",
            brand=2,
            architecture=4,
            compute_capability=(6, 0),
            cores=3584,
            memory_mib=16276,
            reserved_mib=0,
            bar1_mib=16384,
            bus_width_bits=4096,
            device_id=0x15F8_10DE,
            subsystem_id=0x118F_10DE,
            vbios="86.00.4D.00.01",
            part_number="900-2H400-0000-000",
            sm_clock_mhz=1328,
            memory_clock_mhz=715,
            video_clock_mhz=1189,
            idle_sm_clock_mhz=405,
            idle_memory_clock_mhz=715,
            idle_pstate=0,
            power_limit_mw=250_000,
            min_power_limit_mw=125_000,
            max_power_limit_mw=250_000,
            idle_power_mw=26_000,
            idle_temperature_c=32,
            busy_temperature_c=60,
            slowdown_temperature_c=82,
            shutdown_temperature_c=85,
            pcie_gen=3,
            memory_temperature=False,
        ),
        "A100": GpuProfile(
            name="NVIDIA A100 80GB PCIe",
            brand=14,
            architecture=7,
            compute_capability=(8, 0),
            cores=6912,
            memory_mib=81920,
            reserved_mib=627,
            bar1_mib=131072,
            bus_width_bits=5120,
            device_id=0x20B5_10DE,
            subsystem_id=0x1533_10DE,
            vbios="92.00.68.00.01",
            part_number="900-21001-0020-000",
            sm_clock_mhz=1410,
            memory_clock_mhz=1512,
            video_clock_mhz=1290,
            idle_sm_clock_mhz=210,
            idle_memory_clock_mhz=1512,
            idle_pstate=0,
            power_limit_mw=300_000,
            min_power_limit_mw=150_000,
            max_power_limit_mw=300_000,
            idle_power_mw=44_000,
            idle_temperature_c=32,
            busy_temperature_c=64,
            slowdown_temperature_c=89,
            shutdown_temperature_c=92,
            pcie_gen=4,
            mig_capable=True,
        ),
        "H100": GpuProfile(
            name="NVIDIA H100 PCIe",
            brand=14,
            architecture=9,
            compute_capability=(9, 0),
            cores=14592,
            memory_mib=81559,
            reserved_mib=551,
            bar1_mib=131072,
            bus_width_bits=5120,
            device_id=0x2331_10DE,
            subsystem_id=0x1626_10DE,
            vbios="96.00.61.00.01",
            part_number="900-21010-0000-000",
            sm_clock_mhz=1755,
            memory_clock_mhz=1593,
            video_clock_mhz=1620,
            idle_sm_clock_mhz=345,
            idle_memory_clock_mhz=1593,
            idle_pstate=0,
            power_limit_mw=350_000,
            min_power_limit_mw=200_000,
            max_power_limit_mw=350_000,
            idle_power_mw=48_000,
            idle_temperature_c=34,
            busy_temperature_c=66,
            slowdown_temperature_c=87,
            shutdown_temperature_c=92,
            pcie_gen=5,
            mig_capable=True,
        ),
        "H200": GpuProfile(
            name="NVIDIA H200",
            brand=14,
            architecture=9,
            compute_capability=(9, 0),
            cores=16896,
            memory_mib=143771,
            reserved_mib=614,
            bar1_mib=262144,
            bus_width_bits=6144,
            device_id=0x2335_10DE,
            subsystem_id=0x18BE_10DE,
            vbios="96.00.A0.00.01",
            part_number="692-2G520-0280-000",
            sm_clock_mhz=1980,
            memory_clock_mhz=3201,
            video_clock_mhz=1545,
            idle_sm_clock_mhz=345,
            idle_memory_clock_mhz=3201,
            idle_pstate=0,
            power_limit_mw=700_000,
            min_power_limit_mw=200_000,
            max_power_limit_mw=700_000,
            idle_power_mw=76_000,
            idle_temperature_c=31,
            busy_temperature_c=65,
            slowdown_temperature_c=87,
            shutdown_temperature_c=92,
            pcie_gen=5,
            mig_capable=True,
        ),
        "B200": GpuProfile(
            name="NVIDIA B200",
            brand=14,
            architecture=10,
            compute_capability=(10, 0),
            cores=18944,
            memory_mib=183359,
            reserved_mib=729,
            bar1_mib=262144,
            bus_width_bits=7680,
            device_id=0x2901_10DE,
            subsystem_id=0x1999_10DE,
            vbios="97.00.88.00.0F",
            part_number="692-2G525-0220-002",
            sm_clock_mhz=1965,
            memory_clock_mhz=3996,
            video_clock_mhz=1628,
            idle_sm_clock_mhz=120,
            idle_memory_clock_mhz=3996,
            idle_pstate=0,
            power_limit_mw=1_000_000,
            min_power_limit_mw=200_000,
            max_power_limit_mw=1_000_000,
            idle_power_mw=141_000,
            idle_temperature_c=31,
            busy_temperature_c=68,
            slowdown_temperature_c=87,
            shutdown_temperature_c=92,
            pcie_gen=5,
            mig_capable=True,
        ),
        "L40S": GpuProfile(
            name="NVIDIA L40S",
            brand=14,
            architecture=8,
            compute_capability=(8, 9),
            cores=18176,
            memory_mib=46068,
            reserved_mib=498,
            bar1_mib=65536,
            bus_width_bits=384,
            device_id=0x26B9_10DE,
            subsystem_id=0x1851_10DE,
            vbios="95.02.66.00.02",
            part_number="900-2G133-0080-000",
            sm_clock_mhz=2520,
            memory_clock_mhz=9001,
            video_clock_mhz=1965,
            idle_sm_clock_mhz=210,
            idle_memory_clock_mhz=405,
            idle_pstate=8,
            power_limit_mw=350_000,
            min_power_limit_mw=100_000,
            max_power_limit_mw=350_000,
            idle_power_mw=34_000,
            idle_temperature_c=30,
            busy_temperature_c=63,
            slowdown_temperature_c=99,
            shutdown_temperature_c=102,
            pcie_gen=4,
            memory_temperature=False,
        ),
        "T4": GpuProfile(
            name="Tesla T4",
            brand=2,
            architecture=6,
            compute_capability=(7, 5),
            cores=2560,
            memory_mib=15360,
            reserved_mib=449,
            bar1_mib=256,
            bus_width_bits=256,
            device_id=0x1EB8_10DE,
            subsystem_id=0x12A2_10DE,
            vbios="90.04.38.00.03",
            part_number="900-2G183-0000-001",
            sm_clock_mhz=1590,
            memory_clock_mhz=5001,
            video_clock_mhz=1470,
            idle_sm_clock_mhz=300,
            idle_memory_clock_mhz=405,
            idle_pstate=8,
            power_limit_mw=70_000,
            min_power_limit_mw=60_000,
            max_power_limit_mw=70_000,
            idle_power_mw=9_000,
            idle_temperature_c=38,
            busy_temperature_c=71,
            slowdown_temperature_c=93,
            shutdown_temperature_c=96,
            pcie_gen=3,
            memory_temperature=False,
        ),
        "RTX 3090": GpuProfile(
            name="NVIDIA GeForce RTX 3090",
            brand=5,
            architecture=7,
            compute_capability=(8, 6),
            cores=10496,
            memory_mib=24576,
            reserved_mib=315,
            bar1_mib=256,
            bus_width_bits=384,
            device_id=0x2204_10DE,
            subsystem_id=0x1454_10DE,
            vbios="94.02.27.00.0A",
            part_number="900-1G136-2510-000",
            sm_clock_mhz=2100,
            memory_clock_mhz=9751,
            video_clock_mhz=1950,
            idle_sm_clock_mhz=210,
            idle_memory_clock_mhz=405,
            idle_pstate=8,
            power_limit_mw=350_000,
            min_power_limit_mw=100_000,
            max_power_limit_mw=400_000,
            idle_power_mw=22_000,
            idle_temperature_c=36,
            busy_temperature_c=70,
            slowdown_temperature_c=95,
            shutdown_temperature_c=98,
            pcie_gen=4,
            ecc=False,
            memory_temperature=False,
            fan=True,
        ),
    }
)

ALIASES: Mapping[str, str] = MappingProxyType({"RTX3090": "RTX 3090", "RTX-3090": "RTX 3090", "3090": "RTX 3090"})

MAKERS = ("NVIDIA", "TESLA", "GEFORCE")
"""Words that may stand before a model, in this order."""

DEFAULT_MODEL = "V100"


def profile_of(model: str) -> GpuProfile:
    """The profile of a model as inventories name it (``V100``, ``RTX 3090``, ``rtx3090``, ``NVIDIA A100``).

    Raises KeyError with the models there are.
    """
    if is_known(model):
        return PROFILES[_key(model)]
    raise KeyError(f"GPU model {model!r}: none of {', '.join(PROFILES)}")


def is_known(model: str) -> bool:
    """Whether there is such a model."""
    return _key(model) in PROFILES


def _key(model: str) -> str:
    wanted = model.strip().upper()
    for maker in MAKERS:
        wanted = wanted.removeprefix(f"{maker} ")
    return ALIASES.get(wanted, wanted)
