"""What a container gets over all its resources (contract kubelet.md section 9; upstream deviceRunContainerOptions)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from mews.kube.deviceplugin.port import Allocation, DeviceNode, Mount

V = TypeVar("V")


def merged(allocations: Iterable[Allocation]) -> Allocation:
    """Return one allocation: of equal env names, annotations and container paths the first counts; CDI devices once
    each."""
    envs: dict[str, str] = {}
    annotations: dict[str, str] = {}
    mounts: dict[str, Mount] = {}
    devices: dict[str, DeviceNode] = {}
    cdi: dict[str, None] = {}
    for allocation in allocations:
        _add(envs, allocation.envs.items())
        _add(mounts, ((mount.container_path, mount) for mount in allocation.mounts))
        _add(devices, ((device.container_path, device) for device in allocation.devices))
        _add(annotations, allocation.annotations.items())
        _add(cdi, ((name, None) for name in allocation.cdi_devices))
    return Allocation(envs, tuple(mounts.values()), tuple(devices.values()), annotations, tuple(cdi))


def _add(known: dict[str, V], more: Iterable[tuple[str, V]]) -> None:
    for key, value in more:
        known.setdefault(key, value)
