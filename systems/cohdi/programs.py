"""The user's programs: where they are, and how each is started (their flags and variables: cmd/ of each repository)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mews.kube.system.foreign import ForeignProgram
from mews.systems.cohdi.config import CDD, CDIM, CRO, DDS, FM, GPU_NAMESPACE, PROGRAMS, CohdiConfig
from mews.systems.cohdi.options import CohdiOptions

FOLDER = "MEWS_COHDI_PROGRAMS"
"""Environment: the folder with the programs, where ``stack.cohdi.programs`` names none."""


def folder_of(options: CohdiOptions) -> str:
    """Return the folder that is named, "" where none is."""
    return options.programs or os.environ.get(FOLDER, "")


def lacking(options: CohdiOptions, emulated_nodes: bool = True) -> str:
    """Return why they cannot be started, one line; "" where all of them can. On real nodes they run in pods."""
    folder = folder_of(options)
    if not folder:
        return f"programs: no folder is named, {FOLDER} is not set: must have {', '.join(PROGRAMS)}"
    for name, repository in PROGRAMS.items():
        file = Path(folder) / name
        if not file.is_file():
            return f"programs: {file}: not there: must be CoHDI's {repository}"
        if not os.access(file, os.X_OK):
            return f"programs: {file}: cannot be executed"
    if emulated_nodes and os.geteuid() != 0:
        return "needs root: the operator gives commands another root folder (chroot) in the driver's container"
    return ""


def composable_dra_driver(config: CohdiConfig) -> ForeignProgram:
    """CDD finds the API as programs in a cluster do; debug lines are level -4."""
    argv = ("--tenant-id", config.tenant, "--cdi-endpoint", _face("chassis", config))
    return ForeignProgram((_file(CDD, config), *argv, "--scan-interval", f"{config.scan_s}s", "-v", "-4"))


def composable_resource_operator(config: CohdiConfig) -> ForeignProgram:
    """CRO for DRA, in its mode for Fujitsu's fabric manager or for NEC's CDIM, without its webhook."""
    flags = ("--kubeconfig", "{kubeconfig}", "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
    return ForeignProgram(
        (_file(CRO, config), *flags),
        {
            "DEVICE_RESOURCE_TYPE": "DRA",
            **(_of_nec(config) if config.operator == CDIM else _of_fujitsu(config)),
            "NVIDIA_GPU_OPERATOR_NAMESPACE": GPU_NAMESPACE,
            "ENABLE_WEBHOOKS": "false",
            "SSL_CERT_FILE": "{ca}",
        },
    )


def dynamic_device_scaler(config: CohdiConfig) -> ForeignProgram:
    """DDS."""
    return ForeignProgram(
        (_file(DDS, config), "--kubeconfig", "{kubeconfig}", "--health-probe-bind-address", "0"),
        {
            "SCAN_INTERVAL": str(config.scan_s),
            "DEVICE_NO_REMOVAL_DURATION": str(config.no_removal_s),
            "DEVICE_NO_ALLOCATION_DURATION": str(config.no_allocation_s),
        },
    )


def _file(name: str, config: CohdiConfig) -> str:
    return str(Path(config.programs).absolute() / name)


def _of_fujitsu(config: CohdiConfig) -> Mapping[str, str]:
    return {
        "CDI_PROVIDER_TYPE": "FTI_CDI",
        "FTI_CDI_API_TYPE": "FM",
        "FTI_CDI_ENDPOINT": _face("address", config),
        "FTI_CDI_TENANT_ID": config.tenant,
    }


def _of_nec(config: CohdiConfig) -> Mapping[str, str]:
    """Both services are one here; their replies name no GPU by its UUID, so the operator is given one."""
    port = _face("port", config, CDIM)
    return {
        "CDI_PROVIDER_TYPE": "NEC",
        "NEC_CDIM_IP": _face("host", config, CDIM),
        "LAYOUT_APPLY_PORT": port,
        "CONFIGURATION_MANAGER_PORT": port,
        "NEC_PROVISIONAL_GPU_UUID": config.provisional_gpu,
    }


def _face(word: str, config: CohdiConfig, dialect: str = FM) -> str:
    return f"{{{word}:{config.chassis}:{dialect}}}"
