"""Faults of upstream's kubelet that the emulated one has only where it is asked for them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DEVICES_IN_FLIGHT = "devices-in-flight"

KUBELET_FAULTS: Mapping[str, str] = MappingProxyType(
    {
        DEVICES_IN_FLIGHT: "collecting the devices of ended pods frees what an unanswered Allocate has reserved, so "
        "that two pods may get one device (pkg/kubelet/cm/devicemanager/manager.go of Kubernetes 1.34.2: "
        "UpdateAllocatedDevices)",
    }
)
"""Name -> what goes wrong, and where upstream has it."""
