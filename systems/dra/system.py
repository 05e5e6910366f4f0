"""The GPU driver for dynamic resource allocation, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from mews.kube.api.resources import RESOURCE_SLICES
from mews.kube.component import Runnable
from mews.kube.dra.gpus import DRIVER
from mews.kube.system.deployment import SystemDeployment
from mews.kube.system.driver_deployment import driver_deployment
from mews.kube.system.facility import Facility
from mews.kube.system.ports import Ports
from mews.kube.system.system import SERVE_GPU_CLAIMS, Component, System, Watched
from mews.systems.dra.config import DraConfig
from mews.systems.dra.options import DraOptions
from mews.systems.dra.places import CDI, PLUGINS, REGISTRY


def configure(options: DraOptions, facility: Facility) -> DraConfig:
    """Return the configuration with these options: every node has a driver, unless they say which."""
    given = options.given()
    nodes = facility.chosen_nodes(given.pop("nodes", None))
    extras = facility.extras
    return DraConfig(nodes=nodes, nvml=facility.nvml, envs=extras.envs, mounts=extras.mounts, **given)


def _driver(ports: Ports, config: DraConfig) -> Runnable:
    from mews.kube.dra.driver import DriverComponent, DriverError
    from mews.systems.dra.driver import driver_of

    node = ports.node
    assert node is not None, "each node has a driver of its own"
    if node.nvml is None or node.dra is None:
        raise DriverError(f"node {node.name}: no driver can serve there: NVML or the kubelet's sockets are missing")
    driver = driver_of(node.nvml, node.extras, health=config.health)
    return DriverComponent(ports.context, driver, link=node.dra, node=node.name, poll_s=config.poll_s)


def _nodes(config: DraConfig) -> Sequence[str]:
    return config.nodes


def _document(config: DraConfig) -> Mapping[str, Any]:
    document: Mapping[str, Any] = to_builtins(config)
    return document


def _watched() -> Sequence[Watched]:
    from mews.kube.api.resources import RESOURCE_CLAIMS
    from mews.kube.dra.claim_lines import claim_news

    return (Watched(RESOURCE_CLAIMS, claim_news),)


_DEPLOYMENT = driver_deployment("mews.systems.dra", (f"{PLUGINS}/{DRIVER}", REGISTRY, CDI))

SYSTEM: System[DraOptions, DraConfig] = System(
    name="dra",
    sole=frozenset({SERVE_GPU_CLAIMS}),
    summary="gives a host's GPUs to pods by resource claims: a DRA driver with the devices of NVIDIA's",
    options=DraOptions,
    configure=configure,
    components=(Component("dra-gpu-driver", _driver, nodes=_nodes, deployment=_DEPLOYMENT),),
    title="GPU driver for DRA",
    document=_document,
    watched=_watched,
    deployment=SystemDeployment(
        config_map="dra-config",
        config_path="/etc/dra/config.yaml",
        owner="dra-gpu-driver",
        swept=lambda: (RESOURCE_SLICES,),
        by_claims=True,
    ),
)
"""What the harness knows of it."""
