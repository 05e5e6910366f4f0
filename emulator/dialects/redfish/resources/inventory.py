"""What Redfish shows of a device's model: facts of ``mews.emulator.hardware.gpu_profiles``, none for unknown models."""

from __future__ import annotations

import re

from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.hardware.gpu_profiles import PROFILES, GpuProfile

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
GBPS = {1: 2.0, 2: 4.0, 3: 7.877, 4: 15.754, 5: 31.508}
"""PCIe generation -> Gbit/s of one lane after line coding."""


def profile_of(view: RedfishView, device: str) -> GpuProfile | None:
    """Return the model's profile."""
    return PROFILES.get(view.box.table.spec(device).model)


_MEMORY = {
    (5, True): "HBM2",
    (6, False): "GDDR6",
    (7, True): "HBM2E",
    (7, False): "GDDR6",
    (8, False): "GDDR6",
    (9, True): "HBM3",
    (10, True): "HBM3",
    (10, False): "GDDR7",
}
"""(architecture, whether its bus is as wide as stacks make it) -> what its memory is, as data sheets have it. HBM3e is
HBM3 to DSP8010, which has no word for it."""
_STACKED_BITS = 1024


def memory_type(profile: GpuProfile) -> str:
    """Return the ``MemoryDeviceType`` of a model's memory."""
    is_stacked = profile.bus_width_bits >= _STACKED_BITS
    return _MEMORY.get((profile.architecture, is_stacked), "HBM" if is_stacked else "GDDR")


def pcie_of(view: RedfishView, device: str) -> tuple[int, float]:
    """PCIe generation, and Gbit/s of 16 lanes."""
    profile = profile_of(view, device)
    generation = profile.pcie_gen if profile else 3
    return generation, round(16 * GBPS[generation], 3)


def class_of(view: RedfishView, device: str) -> str:
    """Return the class code: a display controller, or for what is no GPU a processing accelerator."""
    profile = profile_of(view, device)
    if view.box.table.spec(device).kind != "GPU":
        return "0x120000"
    return f"0x{profile.pci_class if profile else 0x030200:06x}"


def plain_uuid(uuid: str) -> str | None:
    """Return the UUID within ``GPU-…``, if it is one."""
    text = uuid.removeprefix("GPU-").lower()
    return text if UUID.fullmatch(text) else None


def ids_of(view: RedfishView, device: str) -> dict[str, str]:
    """Vendor, device and subsystem IDs as Redfish writes them: ``0x10de``."""
    profile = profile_of(view, device)
    chip, board = (profile.device_id, profile.subsystem_id) if profile else (0x10DE, 0x10DE)
    return {
        "VendorId": f"0x{chip & 0xFFFF:04x}",
        "DeviceId": f"0x{chip >> 16:04x}",
        "SubsystemVendorId": f"0x{board & 0xFFFF:04x}",
        "SubsystemId": f"0x{board >> 16:04x}",
    }


def cores_of(profile: GpuProfile, multiprocessors: int) -> int:
    """Return what so many of a model's multiprocessors have: 64 cores each on A100 and A30, 128 on all other models
    with MIG (CUDA C++ Programming Guide, "Compute Capabilities")."""
    return multiprocessors * (64 if profile.compute_capability == (8, 0) else 128)
