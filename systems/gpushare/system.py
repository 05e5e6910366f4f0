"""GPU Share, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from mews.kube.api.resources import CONFIGMAPS, NODES
from mews.kube.component import Runnable
from mews.kube.system.command import Command
from mews.kube.system.deployment import (
    CERTIFICATE,
    CONFIG,
    KEY,
    ON_NODE,
    RECORDS,
    SERVICE_HOST,
    ComponentDeployment,
    SystemDeployment,
    rule,
)
from mews.kube.system.facility import Facility
from mews.kube.system.invariant import Invariant, RunState
from mews.kube.system.ports import Ports
from mews.kube.system.services import ExtenderService
from mews.kube.system.system import Component, System, Watched, in_module
from mews.kube.system.system_parts import SystemJudging, SystemMeasuring, SystemStudies
from mews.systems.gpushare.config import EVICT, GpuShareConfig
from mews.systems.gpushare.names import LEDGER_PREFIX, UNHEALTHY_PREFIX
from mews.systems.gpushare.options import GpuShareOptions
from mews.systems.gpushare.slices import gpu_of_slice

if TYPE_CHECKING:
    pass

SERVICE = "gpushare-extender"
SEED_SLICES = (
    "match: seed prefers no slices, as the published design does, so that the kubelet takes those of any GPU, and the "
    "container is told the GPU of its annotation"
)
"""Contract gpushare.md section 3."""


def configure(options: GpuShareOptions, facility: Facility) -> GpuShareConfig:
    """Return the configuration with these options: every node shares its GPUs, unless they say which."""
    given = options.given()
    nodes = facility.chosen_nodes(given.pop("nodes", None))
    return GpuShareConfig(
        nodes=nodes,
        nvml=facility.nvml,
        envs=facility.extras.envs,
        mounts=facility.extras.mounts,
        foreign=tuple(sorted(facility.foreign)),
        **given,
    )


def _extender(ports: Ports, config: GpuShareConfig) -> Runnable:
    from mews.systems.gpushare.extender import GpuShareExtender

    assert ports.service is not None, "it is a component with a service"
    return GpuShareExtender(ports.context, config, ports.service)


def _plugin(ports: Ports, config: GpuShareConfig) -> Runnable:
    from mews.systems.gpushare.node_plugin import GpuShareNodePlugin

    assert ports.node is not None, "each node has a plugin of its own"
    return GpuShareNodePlugin(ports.context, config, ports.node)


def extender_config(config: GpuShareConfig) -> dict[str, object]:
    """Return its entry in a KubeSchedulerConfiguration, but for where it is."""
    return {
        "filterVerb": "filter",
        "bindVerb": "bind",
        "nodeCacheCapable": True,
        "managedResources": [{"name": config.memory_resource, "ignoredByScheduler": False}],
        "ignorable": False,
    }


def _extenders(config: GpuShareConfig) -> Sequence[ExtenderService]:
    return (ExtenderService(SERVICE, "/gpushare-scheduler", extender_config(config)),)


def _nodes(config: GpuShareConfig) -> Sequence[str]:
    return config.nodes


def _release_s(config: GpuShareConfig) -> float:
    return config.evict_s if config.on_shared == EVICT else 0.0


def _document(config: GpuShareConfig) -> Mapping[str, Any]:
    document: Mapping[str, Any] = to_builtins(config)
    return document


def _laws(config: GpuShareConfig) -> Sequence[Invariant[RunState]]:
    from mews.systems.gpushare.laws import laws

    return laws(config)


def _watched() -> Sequence[Watched]:
    from mews.systems.gpushare.journal import config_map_news, node_news

    return (Watched(NODES, node_news), Watched(CONFIGMAPS, config_map_news))


def _commands() -> Sequence[Command]:
    from mews.systems.gpushare.inspect import COMMAND

    return (COMMAND,)


_PORT = 39999
_NAMESPACE = "kube-system"
"""Of its ConfigMaps, whatever the stack's own is (contract gpushare.md section 3)."""
_WATCH = ("list", "watch")
_LEDGERS = rule("", ["configmaps"], ["get", *_WATCH, "create", "update", "patch"])

_EXTENDER_DEPLOYMENT = ComponentDeployment(
    (
        "-m", "mews.systems.gpushare", "extender", "--config", CONFIG, "--records", RECORDS, "--host", "0.0.0.0",
        "--port", str(_PORT), "--allow-host", SERVICE_HOST, "--certificate", CERTIFICATE, "--key", KEY,
    ),
    everywhere=(
        rule("", ["pods"], ["get", *_WATCH, "patch"]),  # to have them asked about again
        rule("", ["pods/binding"], ["create"]),
        rule("", ["nodes"], _WATCH),
    ),
    in_others={_NAMESPACE: (_LEDGERS,)},
    service_port=_PORT,
)  # fmt: skip
_PLUGIN_DEPLOYMENT = ComponentDeployment(
    ("-m", "mews.systems.gpushare", "device-plugin", "--config", CONFIG, "--records", RECORDS),
    everywhere=(
        rule("", ["pods"], ["get", *_WATCH, "patch"]),  # annotations
        rule("", ["nodes"], [*_WATCH, "patch"]),  # the sizes of its GPUs
        rule("", ["nodes/status"], ["patch"]),  # their number
        rule("", ["events"], ["create", "patch"]),
    ),
    in_others={_NAMESPACE: (_LEDGERS,)},
    security=ON_NODE,
    kubelet_folders=True,
    host_files=True,
)


SYSTEM: System[GpuShareOptions, GpuShareConfig] = System(
    name="gpushare",
    summary="lets pods share GPUs by memory: an extender of the default scheduler, and a device plugin",
    options=GpuShareOptions,
    configure=configure,
    components=(
        Component("gpushare-extender", _extender, service=SERVICE, deployment=_EXTENDER_DEPLOYMENT),
        Component(
            "gpushare-extender-2",
            _extender,
            wanted=lambda options: options.replicas > 1,
            service=SERVICE,
            deployment=_EXTENDER_DEPLOYMENT,
        ),
        Component("gpushare-device-plugin", _plugin, nodes=_nodes, deployment=_PLUGIN_DEPLOYMENT),
    ),
    title="GPU Share",
    namespace=lambda config: None,
    document=_document,
    extenders=_extenders,
    lends=_nodes,
    release_s=_release_s,
    watched=_watched,
    commands=_commands,
    deployment=SystemDeployment(
        config_map="gpushare-config",
        config_path="/etc/gpushare/config.yaml",
        owner="gpushare",
        notes={_NAMESPACE: (LEDGER_PREFIX, UNHEALTHY_PREFIX)},
    ),
    judging=SystemJudging(
        part_of=gpu_of_slice,
        parts_known=lambda config: SEED_SLICES if config.match == "seed" else "",
        laws=_laws,
    ),
    measuring=SystemMeasuring(
        service=SERVICE,
    ),
    studies=SystemStudies(
        trace_policies=in_module("mews.systems.gpushare.simulation", "TRACE_POLICIES"),
        experiments=in_module("mews.systems.gpushare.experiment.all", "EXPERIMENTS"),
    ),
)
"""What the harness knows of it."""
