"""``/proc/driver/nvidia``: version, params and one ``information`` per GPU (contract host.md section 2).

``/proc/devices`` has the driver's major numbers, by which programs make the nodes of MIG's capabilities; every process
that has a GPU open has ``/proc/PID`` with its name, its cgroup and its open device nodes, as ``fuser`` looks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mews.emulator.hardware.cards import gpu_profile
from mews.emulator.host.capabilities import capability_files, minors_file
from mews.emulator.host.entries import File, Folder, Link, Node
from mews.emulator.host.function import BringUpStage, Function
from mews.emulator.host.holders import Holder
from mews.emulator.host.host import Host

VERSION = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {release}  Mon Jan  5 12:00:00 UTC 2026\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
)
"""In the form of the real file; the driver is emulated."""

MAJOR, UVM_MAJOR, CAPABILITIES_MAJOR = 195, 511, 237
"""NVIDIA's own number, and two of those that the kernel gives to nvidia-uvm and nvidia-caps."""

DEVICES = f"""\
Character devices:
  1 mem
{MAJOR} nvidia
{MAJOR} nvidia-modeset
{MAJOR} nvidiactl
{CAPABILITIES_MAJOR} nvidia-caps
{UVM_MAJOR} nvidia-uvm

Block devices:
259 blkext
"""

PARAMS = """\
ResmanDebugLevel: 4294967295
ModifyDeviceFiles: 1
DeviceFileUID: 0
DeviceFileGID: 0
DeviceFileMode: 438
PreserveVideoMemoryAllocations: 0
EnableGpuFirmware: 18
"""


def proc_folder(host: Host) -> Folder:
    """``proc``: the driver's folder (without a bound GPU the driver still is loaded), and who has GPUs open."""
    driver = Folder(
        lambda: {
            "version": File(lambda: VERSION.format(release=host.spec.driver).encode()),
            "params": File(lambda: PARAMS.encode()),
            "gpus": Folder(lambda: _gpus(host)),
            "capabilities": Folder(lambda: capability_files(host)),
        }
    )

    def drivers() -> Mapping[str, Node]:
        minors = minors_file(host)
        return {"nvidia": driver, **({"nvidia-caps": Folder(lambda: minors)} if minors else {})}

    devices = File(lambda: DEVICES.encode())
    return Folder(lambda: {"devices": devices, "driver": Folder(drivers), **_processes(host)})


def _processes(host: Host) -> Mapping[str, Node]:
    opened: dict[int, list[Holder]] = {}
    for holder in host.holders:
        opened.setdefault(holder.pid, []).append(holder)
    return {str(pid): _process(host, holders) for pid, holders in sorted(opened.items())}


def _process(host: Host, holders: list[Holder]) -> Folder:
    name = next((holder.name for holder in holders if holder.name), holders[0].key)
    uuids = {uuid for holder in holders for uuid in holder.uuids}

    def descriptors() -> Mapping[str, Node]:
        nodes = [f"nvidia{f.minor}" for f in host.bus.functions() if f.has_node and f.device.uuid in uuids]
        return {str(number): Link(f"/dev/{node}") for number, node in enumerate(nodes, start=3)}

    # The kernel keeps 15 characters of a program's name.
    comm = f"{name.rpartition('/')[2][:15]}\n".encode()
    # As with cgroup v2: one line for the one hierarchy.
    cgroup = f"0::{max((holder.cgroup for holder in holders), key=len)}\n".encode()
    return Folder(lambda: {"cgroup": File(lambda: cgroup), "comm": File(lambda: comm), "fd": Folder(descriptors)})


def _gpus(host: Host) -> Mapping[str, Node]:
    return {f.bdf: _gpu(f) for f in host.bus.functions() if f.is_gpu and f.stage >= BringUpStage.DRIVER}


def _gpu(function: Function) -> Folder:
    def children() -> Mapping[str, Node]:
        return {"information": File(_information(function)), "power": File(lambda: b"Runtime D3 status:  Disabled\n")}

    return Folder(children)


def _information(function: Function) -> Callable[[], bytes]:
    def text() -> bytes:
        profile = gpu_profile(function.device.model)
        lines = {
            "Model": profile.name,
            "IRQ": irq_of(function),
            "GPU UUID": function.device.uuid,
            "Video BIOS": profile.vbios if not function.lost else "??.??.??.??.??",
            "Bus Type": "PCIe",
            "DMA Size": "47 bits",
            "DMA Mask": "0x7fffffffffff",
            "Bus Location": function.bdf,
            "Device Minor": function.minor,
            "GPU Firmware": "N/A",
            "GPU Excluded": "No",
        }
        return "".join(f"{name + ':':<16} {value}\n" for name, value in lines.items()).encode()

    return text


def irq_of(function: Function) -> int:
    """Return the interrupt that the kernel gave the function."""
    return 64 + int(function.bdf.split(":")[1], 16)
