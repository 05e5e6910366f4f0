"""What the three programs are told. Frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

CDD, CRO, DDS = "cdd", "cro-manager", "dds-manager"
PROGRAMS: Final = {
    CDD: "composable-dra-driver",
    CRO: "composable-resource-operator",
    DDS: "dynamic-device-scaler",
}
"""File in the folder of programs -> the repository of CoHDI that it is built from."""

LABEL_PREFIX = "cohdi.io"
DRA_NAMESPACE = "composable-dra"
OPERATOR_NAMESPACE = "composable-resource-operator-system"
GPU_NAMESPACE = "gpu-operator"

FM, CDIM = "fm", "cdim"
"""Dialects that the operator speaks; CDD speaks the first alone."""


class CohdiConfig(Struct, frozen=True):
    """``programs``: the folder that they lie in. ``chassis``: whose fabric manager they speak to; ``models``: of the
    GPUs in it; ``tenant``: whose it is. ``machines``: node -> the UUID by which the fabric manager knows it.
    ``operator``: the dialect that the operator speaks; with ``cdim``, it takes every GPU for the one with the UUID
    ``provisional_gpu``. Times are real seconds. ``gpu_driver``: what the DRA driver of a real node reads, as
    ``python -m mews.systems.dra`` has it. ``node_files``: the folder of a real node with its host's files, and
    ``driver_root`` the driver root in it; "" for emulated nodes, which show it where a GPU operator does."""

    programs: str = ""
    chassis: str = ""
    tenant: str = ""
    models: tuple[str, ...] = ()
    machines: Mapping[str, str] = field(default_factory=dict)
    operator: str = FM
    provisional_gpu: str = ""
    scan_s: int = 5
    no_removal_s: int = 20
    no_allocation_s: int = 10
    gpu_driver: Mapping[str, Any] = field(default_factory=dict)
    node_files: str = ""
    driver_root: str = ""
