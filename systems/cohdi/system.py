"""CoHDI, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from msgspec import to_builtins

from mews.kube.api.objects import Object
from mews.kube.api.resources import RESOURCE_SLICES
from mews.kube.component import Runnable
from mews.kube.dra.gpus import DRIVER
from mews.kube.system.deployment import ComponentDeployment, SystemDeployment, rule
from mews.kube.system.driver_deployment import driver_deployment
from mews.kube.system.facility import Facility
from mews.kube.system.foreign import KubernetesNeeds, only_as_program
from mews.kube.system.ports import Ports
from mews.kube.system.system import EDIT_TABLES, SERVE_GPU_CLAIMS, Component, System, Watched
from mews.names import must_be
from mews.systems.cohdi.config import CDIM, CohdiConfig
from mews.systems.cohdi.options import CohdiOptions
from mews.systems.cohdi.programs import (
    composable_dra_driver,
    composable_resource_operator,
    dynamic_device_scaler,
    folder_of,
    lacking,
)

_NEEDS = KubernetesNeeds(
    gates=("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus", "DRADeviceTaints"),
    served=("resource.k8s.io/v1alpha3",),
)
"""CDD's devices have binding conditions, DDS reports them in a claim's status, CRO makes DeviceTaintRules."""


def configure(options: CohdiOptions, facility: Facility) -> CohdiConfig:
    """Return the configuration with these options.

    Raises ValueError for a chassis that there is not.
    """
    given = options.given()
    if (options.operator == CDIM) != (options.provisional_gpu is not None):
        wanted = "must be given with operator: cdim" if options.operator == CDIM else "needs operator: cdim"
        raise ValueError(f"provisionalGpu: {wanted}: CDIM knows no UUIDs of GPUs")
    known = {each.name: each for each in facility.chassis}
    wanted = given.pop("chassis", None)
    if known and wanted is not None and wanted not in known:
        raise ValueError(f"chassis: {wanted!r}: {must_be(wanted, known)}")
    chassis = next((each for each in facility.chassis if wanted in (None, each.name)), None)
    given["programs"] = folder_of(options)
    if chassis is None:
        return CohdiConfig(**given)
    return CohdiConfig(
        chassis=chassis.name,
        tenant=chassis.tenant,
        models=chassis.models,
        machines={node.name: node.machine for node in facility.nodes},
        **_on_real_nodes(facility),
        **given,
    )


def _on_real_nodes(facility: Facility) -> Mapping[str, Any]:
    """Return where what stands for their driver lies there; nothing for emulated nodes."""
    if not facility.nvml:
        return {}
    extras = to_builtins(facility.extras)
    return {
        "gpu_driver": {"nodes": [node.name for node in facility.nodes], "nvml": facility.nvml, **extras},
        "node_files": str(PurePosixPath(facility.host_files).parents[1]),
        "driver_root": str(PurePosixPath(facility.nvml).parent / "root"),
    }


def _gpu_driver(ports: Ports, config: CohdiConfig) -> Runnable:
    from mews.kube.dra.driver import DriverComponent, DriverError
    from mews.kube.dra.gpu_driver import GpuDraDriver

    node = ports.node
    assert node is not None, "each node has a driver of its own"
    if node.nvml is None or node.dra is None:
        raise DriverError(f"node {node.name}: no driver can serve there: NVML or the kubelet's sockets are missing")
    return DriverComponent(
        ports.context, GpuDraDriver(node.nvml, node.extras), link=node.dra, node=node.name, poll_s=1.0
    )


def _nodes(config: CohdiConfig) -> Sequence[str]:
    return tuple(config.machines)


def _kinds() -> Sequence[Object]:
    from mews.systems.cohdi.kinds import kinds

    return kinds()


def _objects(config: CohdiConfig) -> Sequence[Object]:
    from mews.systems.cohdi.objects import objects

    return objects(config)


def _provider_ids(config: CohdiConfig) -> Mapping[str, str]:
    from mews.systems.cohdi.objects import provider_id

    return {node: provider_id(machine, config.operator) for node, machine in config.machines.items()}


def _document(config: CohdiConfig) -> Mapping[str, Any]:
    """Return what the DRA driver reads: the programs are told all by flags, variables and objects."""
    return config.gpu_driver


def _watched() -> Sequence[Watched]:
    from mews.kube.api.resources import RESOURCE_CLAIMS
    from mews.kube.dra.claim_lines import claim_news
    from mews.systems.cohdi.journal import request_news, resource_news
    from mews.systems.cohdi.kinds import REQUESTS, RESOURCES

    return (
        Watched(RESOURCE_CLAIMS, claim_news),
        Watched(REQUESTS, request_news),
        Watched(RESOURCES, resource_news),
    )


def _images() -> Mapping[str, Mapping[str, Any]]:
    from mews.systems.cohdi.objects import DRIVER_IMAGE

    process = ["env", "PYTHONPATH={packages}", "{python}", "-m", "mews.systems.cohdi.driver_container"]
    return {DRIVER_IMAGE: {"process": process, "image": "{components}"}}


_FOLDERS = (f"/var/lib/kubelet/plugins/{DRIVER}", "/var/lib/kubelet/plugins_registry", "/var/run/cdi")
_DRIVER = driver_deployment("mews.systems.dra", _FOLDERS)
_PROGRAM = ComponentDeployment((), everywhere=(rule("*", ["*"], ["*"]),))
"""What each program may do on its own is nothing that is tested: it acts as an administrator."""


SYSTEM: System[CohdiOptions, CohdiConfig] = System(
    name="cohdi",
    sole=frozenset({EDIT_TABLES, SERVE_GPU_CLAIMS}),
    summary="runs your programs of CoHDI, which attach GPUs for claims: its DRA driver, its operator and its scaler",
    options=CohdiOptions,
    configure=configure,
    components=(
        Component("gpu-dra-driver", _gpu_driver, nodes=_nodes, deployment=_DRIVER),
        Component("composable-dra-driver", only_as_program, program=composable_dra_driver, deployment=_PROGRAM),
        Component(
            "composable-resource-operator", only_as_program, program=composable_resource_operator, deployment=_PROGRAM
        ),
        Component("dynamic-device-scaler", only_as_program, program=dynamic_device_scaler, deployment=_PROGRAM),
    ),
    title="CoHDI",
    document=_document,
    kinds=_kinds,
    watched=_watched,
    images=_images,
    objects=_objects,
    provider_ids=_provider_ids,
    needs=_NEEDS,
    lacking=lacking,
    deployment=SystemDeployment(
        config_map="cohdi-config",
        config_path="/etc/cohdi/config.yaml",
        owner="gpu-dra-driver",
        swept=lambda: (RESOURCE_SLICES,),
        exclusive="its programs act as administrators, and need feature gates and provider IDs: use --cluster kind",
        by_claims=True,
    ),
)
"""What the harness knows of it."""
