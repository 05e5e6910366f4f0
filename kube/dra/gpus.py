"""GPUs as devices of a ResourceSlice, named as NVIDIA's driver names them. Pure.

Source: cmd/gpu-kubelet-plugin of sigs.k8s.io/dra-driver-nvidia-gpu v0.4.1 (deviceinfo.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mews.kube.system.nvml import GpuDescription, ListedGpu

DRIVER = "gpu.nvidia.com"
"""The driver's name, which is also that of its device class."""
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
"""The variable by which a container learns the UUIDs of its GPUs."""
_ARCHITECTURES: Mapping[int, str] = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada Lovelace", 9: "Hopper",
    10: "Blackwell",
}  # fmt: skip
"""NVML's numbers of architectures."""


def device_name(gpu: ListedGpu) -> str:
    """``gpu-MINOR``."""
    return f"gpu-{gpu.minor}"


def devices_of(
    gpus: Iterable[ListedGpu], described: Mapping[str, GpuDescription], driver_version: str
) -> list[dict[str, Any]]:
    """Return the GPUs that answer and are whole, in order of their minor numbers."""
    return [_device(gpu, described.get(gpu.uuid), driver_version) for gpu in _answering(gpus)]


def _answering(gpus: Iterable[ListedGpu]) -> list[ListedGpu]:
    return sorted((gpu for gpu in gpus if gpu.is_usable), key=lambda gpu: gpu.minor)


def _device(gpu: ListedGpu, description: GpuDescription | None, driver_version: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "type": {"string": "gpu"},
        "uuid": {"string": gpu.uuid},
        "resource.kubernetes.io/pciBusID": {"string": gpu.bus_id.lower()},
    }
    if description is not None:
        attributes["productName"] = {"string": description.name}
        attributes["brand"] = {"string": "Nvidia"}
        if description.architecture in _ARCHITECTURES:
            attributes["architecture"] = {"string": _ARCHITECTURES[description.architecture]}
    if driver_version:
        attributes["driverVersion"] = {"version": semantic(driver_version)}
    capacity = {"memory": {"value": f"{gpu.memory_mib}Mi"}}
    return {"name": device_name(gpu), "attributes": attributes, "capacity": capacity}


def semantic(version: str) -> str:
    """Return a driver's version as a semantic one: three numbers without leading zeros."""
    numbers = [part.lstrip("0") or "0" for part in version.split(".")[:3]]
    return ".".join([*numbers, *["0"] * (3 - len(numbers))])


def uuids_of(gpus: Iterable[ListedGpu]) -> dict[str, str]:
    """Device -> UUID, of the GPUs that answer."""
    return {device_name(gpu): gpu.uuid for gpu in _answering(gpus)}
