"""From a scenario and a target to a running real cluster."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mews.emulator.chassis.inventory import Hardware
from mews.emulator.nvml import library
from mews.harness.clusters.real.admin import ClusterAdmin
from mews.harness.clusters.real.bringing import Baggage
from mews.harness.clusters.real.cluster import Deployment, RealCluster
from mews.harness.clusters.real.rollout import Tell
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.clusters.stack import kod2_config, kubecomp_config
from mews.harness.errors import Lacks
from mews.harness.manifests.guests import brought
from mews.harness.manifests.stack import NVML, StackSpec, endpoint
from mews.harness.run_context import RunContext
from mews.harness.scenario.hardware import hardware_document, hardware_of
from mews.harness.scenario.model import Scenario
from mews.kube.clock import Pace
from mews.kube.deviceplugin.port import Mount
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kubecomp.config import AllocateConfig, KubeCompConfig
from mews.systems.kubecomp.config_file import as_document

IN_CONTAINER = "/usr/local/nvidia/lib64"
"""Where a container with a device finds the library and nvidia-smi; NVIDIA's own images look there, too."""
_SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def stack_spec(
    scenario: Scenario,
    hardware: Hardware,
    document: Mapping[str, Any],
    target: DeploymentTarget,
    *,
    dialect: str,
    token: str,
    speed: float = 1.0,
    baggage: Baggage | None = None,
) -> tuple[StackSpec, KubeCompConfig]:
    """What is deployed for a scenario in a place, and KubeComp's configuration there: nodes instead of hosts, chassis
    by their service. ``baggage`` is what the scenario brings along.

    Raises ScenarioError for options that a component does not have.
    """
    endpoints = {spec.name: endpoint(target.namespace, number) for number, spec in enumerate(hardware.chassis)}
    config = kubecomp_config(scenario, hardware, dialect=dialect, endpoints=endpoints)
    named = config.namespace
    nodes = tuple(replace(node, name=target.nodes[node.name]) for node in config.nodes)
    config = replace(config, nodes=nodes, namespace=target.namespace, allocate=_allocate())
    parts = scenario.stack.kubecomp
    running = {
        "scheduler": parts is not None and parts.scheduler is not None,
        "reconfig-manager": parts is not None and parts.reconfig_manager is not None,
        "device-manager": parts is not None and parts.device_manager is not None,
    }
    spec = StackSpec(
        namespace=target.namespace,
        image=target.image,
        hardware=document,
        chassis=[entry.name for entry in hardware.chassis],
        config=as_document(config),
        nodes=[node.name for node in nodes],
        token=token,
        parts=frozenset(name for name, runs in running.items() if runs),
        pull=target.pull,
        prefix=target.prefix,
        hosts={target.nodes[host.name]: host.name for host in hardware.hosts},
        tidy=target.tidy,
        operator=_operator(scenario, target, speed),
        named=named,
    )
    return (spec if baggage is None else baggage.into(spec)), config


def _operator(scenario: Scenario, target: DeploymentTarget, speed: float) -> OperatorConfig | None:
    if scenario.stack.kod2 is None:
        return None
    return replace(kod2_config(scenario, Pace(speed)), pool_namespace=target.namespace)


def _allocate() -> AllocateConfig:
    """What containers with a device get: NVML, where this machine can compile it into the image."""
    if not library.available():
        return AllocateConfig()
    return AllocateConfig(
        envs={"LD_LIBRARY_PATH": IN_CONTAINER, "PATH": f"{IN_CONTAINER}:{_SEARCH_PATH}"},
        mounts=(Mount(IN_CONTAINER, NVML, read_only=True),),
    )


async def open_real(
    scenario: Scenario, admin: ClusterAdmin, run: RunContext, *, tell: Tell, brings: Baggage
) -> RealCluster:
    """A running cluster for the scenario, with what it ``brings``; close it.

    Raises ScenarioError for hardware or options that cannot be read, Lacks for what the cluster does not let us do.
    """
    hardware = hardware_of(scenario)
    document, _ = hardware_document(scenario)
    if scenario.stack.kod2 is not None and admin.target.namespaces:
        raise Lacks("stack.kod2: the operator serves the TFJobs of a whole cluster, and this one is somebody's")
    token = secrets.token_urlsafe(24)
    spec, config = stack_spec(
        scenario, hardware, document, admin.target, dialect=run.dialect, token=token, speed=run.speed, baggage=brings
    )
    brought(spec)  # raises for what cannot be, before anything is made
    deployment = Deployment(
        scenario,
        hardware,
        replace(spec, seed=run.seed),
        resource=config.resource,
        device_kind=config.device_kind,
        settings=brings.settings,
    )
    cluster = RealCluster(deployment, run, admin, tell)
    try:
        await cluster.open()
    except BaseException:
        await cluster.close()
        raise
    return cluster
