"""All faults of a host by kind; one is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mews.emulator.chassis.faults.spec import fault_registry

OURS: Mapping[str, str] = {
    "layer-cut": "mews.emulator.host.faults.layers:LayerCut",
    "layer-slow": "mews.emulator.host.faults.layers:LayerSlow",
    "driver-fails": "mews.emulator.host.faults.layers:DriverFails",
    "xid": "mews.emulator.host.faults.gpu:Xid",
    "fallen-off-bus": "mews.emulator.host.faults.gpu:FallenOffBus",
    "ecc-errors": "mews.emulator.host.faults.gpu:EccErrors",
    "nvml-unknown-error": "mews.emulator.host.faults.gpu:NvmlUnknownError",
}

HOST_FAULTS: Final = fault_registry(OURS, "host")
