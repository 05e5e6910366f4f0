"""What a device is to PCI: ids, class, BARs and the driver that takes it.

GPU models are those of ``mews.emulator.hardware.gpu_profiles``; ids of the others from the public PCI ID database.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from mews.emulator.hardware.gpu_profiles import DEFAULT_MODEL, MIB, GpuProfile, profile_of


class Card(Struct, frozen=True):
    """One kind of board. ``bars`` are (BAR number, bytes, prefetchable 64 bit); ``layers``: how many it climbs;
    ``virtual_functions``: of SR-IOV, 0 where it has none."""

    vendor: int
    device: int
    subsystem_vendor: int
    subsystem_device: int
    pci_class: int
    revision: int
    bars: tuple[tuple[int, int, bool], ...]
    driver: str
    layers: int
    gen: int = 4
    width: int = 16
    virtual_functions: int = 0

    @property
    def modalias(self) -> str:
        """The device's ``modalias`` text, as the kernel writes it."""
        base, sub, interface = self.pci_class >> 16, self.pci_class >> 8 & 0xFF, self.pci_class & 0xFF
        return (
            f"pci:v{self.vendor:08X}d{self.device:08X}sv{self.subsystem_vendor:08X}sd{self.subsystem_device:08X}"
            f"bc{base:02X}sc{sub:02X}i{interface:02X}"
        )


GPU_LAYERS, OTHER_LAYERS = 5, 3
"""A GPU has a device node and NVML above its driver; for anything else the driver is the top."""

RDMA_DRIVER = "mlx5_core"

NIC = Card(
    0x15B3, 0x101B, 0x15B3, 0x0007, 0x020700, 0, ((0, 32 * MIB, True),), RDMA_DRIVER, OTHER_LAYERS, virtual_functions=8
)
"""A ConnectX-6 HDR adapter; the firmware's usual number of virtual functions."""

VIRTUAL_NIC = replace(NIC, device=0x101C, bars=((0, MIB, True),), virtual_functions=0)

VIRTUAL = {RDMA_DRIVER: VIRTUAL_NIC}
"""Drivers that make virtual functions, and what these are. NVIDIA's driver makes them of GPUs for vGPU hosts alone."""

VIRTUAL_OFFSET, VIRTUAL_STRIDE = 1, 1
"""From the routing ID of a function to that of its first virtual one, and from one to the next: a ConnectX-6's with one
port."""

MOST_VIRTUAL = 127
"""Of one adapter: what ConnectX firmware can be set to."""

FPGA = Card(0x10EE, 0x5000, 0x10EE, 0x000E, 0x120000, 0, ((0, 32 * MIB, True), (2, MIB // 8, True)), "xclmgmt", 3)
"""An Alveo U200's management function."""

BRIDGE = Card(0x10B5, 0x8796, 0x10B5, 0x8796, 0x060400, 0xAB, (), "pcieport", 0, gen=3)
"""A port of a PEX 8796 switch; Falcon-class boxes are built of switches of that family (assumed)."""

OTHERS = {"NIC": NIC, "RDMA": NIC, "FPGA": FPGA}

ADAPTERS = ("NIC", "RDMA")
"""Kinds that have virtual functions."""

KINDS = ("GPU", *OTHERS)
"""What a hardware file may call a device."""


def gpu_profile(model: str) -> GpuProfile:
    """Return the GPU model of an inventory; one that nobody knows is taken for the default."""
    try:
        return profile_of(model)
    except KeyError:
        return profile_of(DEFAULT_MODEL)


def card_of(kind: str, model: str, virtual_functions: int | None = None) -> Card:
    """Return what a device of the inventory is to PCI; a kind that nobody knows is taken for an accelerator like an
    FPGA. ``virtual_functions``: how many an adapter's firmware is set to, None: as usual."""
    if kind != "GPU":
        card = OTHERS.get(kind.upper(), FPGA)
        return card if virtual_functions is None else replace(card, virtual_functions=virtual_functions)
    profile = gpu_profile(model)
    bars = ((0, 16 * MIB, False), (1, profile.bar1_mib * MIB, True), (3, 32 * MIB, True))
    return Card(
        vendor=profile.device_id & 0xFFFF,
        device=profile.device_id >> 16,
        subsystem_vendor=profile.subsystem_id & 0xFFFF,
        subsystem_device=profile.subsystem_id >> 16,
        pci_class=profile.pci_class,
        revision=0xA1,
        bars=bars,
        driver="nvidia",
        layers=GPU_LAYERS,
        gen=profile.pcie_gen,
        width=profile.pcie_width,
        virtual_functions=profile.virtual_functions,
    )
