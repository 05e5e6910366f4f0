"""All faults of a host by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mews.emulator.chassis.faults.spec import fault_registry
from mews.emulator.host.faults.gpu import EccErrors, FallenOffBus, NvmlUnknownError, Xid
from mews.emulator.host.faults.layers import DriverFails, LayerCut, LayerSlow

OURS: Mapping[str, type[Any]] = {
    "layer-cut": LayerCut,
    "layer-slow": LayerSlow,
    "driver-fails": DriverFails,
    "xid": Xid,
    "fallen-off-bus": FallenOffBus,
    "ecc-errors": EccErrors,
    "nvml-unknown-error": NvmlUnknownError,
}

HOST_FAULTS: Final = fault_registry(OURS, "host")
