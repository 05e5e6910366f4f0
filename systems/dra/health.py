"""Which GPUs of a node are broken, and how NVIDIA's driver taints them. Pure.

Source: cmd/gpu-kubelet-plugin/device_health.go of sigs.k8s.io/dra-driver-nvidia-gpu v0.4.1. It watches XIDs under its
gate NVMLDeviceHealthCheck, taints with NoSchedule, and takes no taint back before it starts anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.dra.driver import WELL, Condition, unwell
from mews.kube.dra.gpus import DRIVER, device_name
from mews.kube.system.nvml import NvmlReading
from mews.systems.dra.config import APPLICATION_XIDS

XID_TAINT = f"{DRIVER}/xid"


class GpuConditions:
    """The XIDs of a node's GPUs. A GPU that has left NVML and come back is another, whole one: its driver was bound
    anew."""

    def __init__(self) -> None:
        self._xids: dict[str, int] = {}
        self._gone: set[str] = set()
        self._reading = NvmlReading()

    def observe(self, reading: NvmlReading) -> None:
        """Take in a reading."""
        there = {gpu.uuid for gpu in reading.gpus}
        for uuid in self._gone & there:
            del self._xids[uuid]
        self._xids.update({each.uuid: each.xid for each in reading.xids if each.xid not in APPLICATION_XIDS})
        self._gone = self._xids.keys() - there
        self._reading = reading

    def taints(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return those of each broken device: its last XID that no program causes."""
        return {
            device_name(gpu): [{"key": XID_TAINT, "value": str(self._xids[gpu.uuid]), "effect": "NoSchedule"}]
            for gpu in self._reading.gpus
            if gpu.uuid in self._xids
        }

    def conditions(self) -> Mapping[str, Condition]:
        """Return how each device is; a GPU that NVML does not list is left out."""
        found: dict[str, Condition] = {}
        for gpu in self._reading.gpus:
            condition = WELL
            if gpu.uuid in self._xids:
                condition = unwell(f"XID {self._xids[gpu.uuid]}")
            elif gpu.lost:
                condition = unwell("the GPU does not answer")
            found[device_name(gpu)] = condition
        return found
