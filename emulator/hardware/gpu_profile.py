"""The constants of a GPU model."""

from __future__ import annotations

from msgspec import Struct

MIB = 1024 * 1024


class GpuProfile(Struct, frozen=True):
    """The constants of a model. Clocks in MHz, power in milliwatts, temperatures in degrees Celsius.

    ``brand`` and ``architecture`` are NVML's numbers (nvmlBrandType_t, nvmlDeviceArchitecture_t).
    ``device_id`` and ``subsystem_id`` carry the device in the upper, the vendor in the lower 16 bits, as NVML does.
    ``nvlinks``: how many a GPU has, to switches if ``nvswitch``; ``grace``: joined to a Grace CPU by NVLink-C2C;
    ``module_power_limit_mw``: of the whole module with that CPU, 0 where there is none.
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
    nvlinks: int = 0
    nvswitch: bool = False
    grace: bool = False
    gpu_part_suffix: str = "885"
    module_power_limit_mw: int = 0

    @property
    def virtual_functions(self) -> int:
        """Of SR-IOV: boards of servers from Ampere on share themselves so, GeForce and what came before do not."""
        return 0 if self.architecture < 7 or self.brand == 5 else 20 if self.mig_capable else 32

    @property
    def target_temperatures(self) -> tuple[int, int, int] | None:
        """The lowest target temperature, the board's own, and the highest; None where there is no target: GeForce
        boards alone have one (``nvidia-smi -q`` of an RTX 3090, and of the boards of servers)."""
        if self.brand != 5:
            return None
        return 65, self.slowdown_temperature_c - 12, self.slowdown_temperature_c - 4

    @property
    def hbm(self) -> bool:
        """Whether its memory is HBM, which alone has a bus that wide."""
        return self.bus_width_bits >= 2048

    @property
    def memory_bytes(self) -> int:
        """All of the frame buffer."""
        return self.memory_mib * MIB

    @property
    def pci_class(self) -> int:
        """The PCI class of sysfs: a VGA controller with a display engine, a 3D controller without."""
        return 0x030000 if self.fan else 0x030200
