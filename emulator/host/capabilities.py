"""MIG in the driver's files: ``/proc/driver/nvidia/capabilities``, ``/proc/driver/nvidia-caps/mig-minors`` and
``/dev/nvidia-caps`` (MIG User Guide, "Device Nodes and Capabilities").

Who can open a capability's device node may use that instance. Minor numbers are fixed: nine for each of fifteen GPU
instances of a GPU, behind those of ``config`` and ``monitor``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mews.emulator.hardware.cards import gpu_profile
from mews.emulator.host.entries import File, Folder, Node
from mews.emulator.host.function import BringUpStage, Function
from mews.emulator.host.host import Host

CONFIG, MONITOR, FIRST = 1, 2, 3
GPUS, INSTANCES, COMPUTE = 32, 15, 8
PER_INSTANCE = COMPUTE + 1
NODES = "nvidia-caps"
"""The folder of ``/dev``."""
FOR_ROOT, FOR_ALL = 256, 292
"""File modes 0400 and 0444, as the driver writes them."""


def capability_minor(gpu_minor: int, instance: int, compute: int | None = None) -> int:
    """Return the minor number of a GPU instance's capability, or of one of its compute instances'."""
    first = FIRST + (gpu_minor * INSTANCES + instance) * PER_INSTANCE
    return first if compute is None else first + 1 + compute


def capability_files(host: Host) -> Mapping[str, Node]:
    """``/proc/driver/nvidia/capabilities``: empty where no GPU has MIG."""
    capable = _capable(host)
    if not capable:
        return {}
    mig = {"config": _file(CONFIG, FOR_ROOT), "monitor": _file(MONITOR, FOR_ROOT)}
    gpus = {f"gpu{function.minor}": _folder({"mig": _folder(_instances(function))}) for function in capable}
    return {"mig": _folder(mig), **gpus}


def minors_file(host: Host) -> Mapping[str, Node]:
    """``/proc/driver/nvidia-caps``: empty where no GPU has MIG."""
    return {"mig-minors": File(_minors)} if _capable(host) else {}


def capability_nodes(host: Host) -> Mapping[str, Node]:
    """``/dev/nvidia-caps`` with a node for each capability that there is; none where MIG is off."""
    minors, on = [CONFIG, MONITOR], [function for function in _capable(host) if function.mig.enabled]
    for function in on:
        minor = function.minor or 0
        for instance in function.mig.instances:
            minors.append(capability_minor(minor, instance.id))
            minors += [capability_minor(minor, instance.id, one.id) for one in instance.compute]
    nodes = {f"nvidia-cap{minor}": File(lambda: b"", 0o666 if minor >= FIRST else 0o400) for minor in minors}
    return {NODES: _folder(nodes)} if on else {}


def _capable(host: Host) -> list[Function]:
    return [
        function
        for function in host.bus.functions()
        if function.is_gpu and function.stage >= BringUpStage.DRIVER and gpu_profile(function.device.model).mig_capable
    ]


def _instances(function: Function) -> Mapping[str, Node]:
    minor, found = function.minor or 0, dict[str, Node]()
    for instance in function.mig.instances:
        inside: dict[str, Node] = {"access": _file(capability_minor(minor, instance.id), FOR_ALL)}
        for one in instance.compute:
            inside[f"ci{one.id}"] = _folder({"access": _file(capability_minor(minor, instance.id, one.id), FOR_ALL)})
        found[f"gi{instance.id}"] = _folder(inside)
    return found


def _file(minor: int, mode: int) -> File:
    text = f"DeviceFileMinor: {minor}\nDeviceFileMode: {mode}\nDeviceFileModify: 1\n".encode()
    return File(lambda: text)


def _folder(children: Mapping[str, Node]) -> Folder:
    return Folder(lambda: children)


@cache
def _minors() -> bytes:
    lines = [f"config {CONFIG}", f"monitor {MONITOR}"]
    for gpu in range(GPUS):
        for instance in range(INSTANCES):
            lines.append(f"gpu{gpu}/gi{instance}/access {capability_minor(gpu, instance)}")
            for one in range(COMPUTE):
                lines.append(f"gpu{gpu}/gi{instance}/ci{one}/access {capability_minor(gpu, instance, one)}")
    return "".join(f"{line}\n" for line in lines).encode()
