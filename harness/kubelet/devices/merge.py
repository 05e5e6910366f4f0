"""What a container gets over all its resources (contract kubelet.md section 9; upstream deviceRunContainerOptions)."""

from __future__ import annotations

from collections.abc import Iterable

from mews.kube.deviceplugin.port import Allocation, DeviceNode, Mount


def merged(allocations: Iterable[Allocation]) -> Allocation:
    """One allocation: of equal env names, annotations and container paths the first counts; CDI devices once each."""
    envs: dict[str, str] = {}
    annotations: dict[str, str] = {}
    mounts: dict[str, Mount] = {}
    devices: dict[str, DeviceNode] = {}
    cdi: dict[str, None] = {}
    for allocation in allocations:
        envs = {**allocation.envs, **envs}
        annotations = {**allocation.annotations, **annotations}
        mounts = {**{mount.container_path: mount for mount in allocation.mounts}, **mounts}
        devices = {**{device.container_path: device for device in allocation.devices}, **devices}
        cdi |= dict.fromkeys(allocation.cdi_devices)
    return Allocation(envs, tuple(mounts.values()), tuple(devices.values()), annotations, tuple(cdi))
