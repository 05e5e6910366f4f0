"""GPU Share, in one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from mews.kube.component import Runnable
from mews.kube.system.command import Command
from mews.kube.system.facility import Facility
from mews.kube.system.invariant import Invariant, RunState
from mews.kube.system.ports import Ports
from mews.kube.system.services import ExtenderService
from mews.kube.system.system import Component, System
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.options import GpuShareOptions
from mews.systems.gpushare.slices import gpu_of_slice

SERVICE = "gpushare-extender"


def configure(options: GpuShareOptions, facility: Facility) -> GpuShareConfig:
    """The configuration with these options: every node shares its GPUs, unless they say which."""
    given = options.given()
    known = tuple(node.name for node in facility.nodes)
    nodes = given.pop("nodes", None)
    for name in nodes or ():
        if known and name not in known:
            raise ValueError(f"nodes: {name!r}: must be one of {', '.join(known)}")
    config = GpuShareConfig(nodes=known if nodes is None else tuple(nodes), **given)
    return config if facility.namespace is None else replace(config, namespace=facility.namespace)


def _extender(ports: Ports, config: GpuShareConfig) -> Runnable:
    from mews.systems.gpushare.extender import GpuShareExtender

    assert ports.service is not None, "it is a component with a service"
    return GpuShareExtender(ports.context, config, ports.service)


def _plugin(ports: Ports, config: GpuShareConfig) -> Runnable:
    from mews.systems.gpushare.node_plugin import GpuShareNodePlugin

    assert ports.node is not None, "each node has a plugin of its own"
    return GpuShareNodePlugin(ports.context, config, ports.node)


def extender_config(config: GpuShareConfig) -> dict[str, object]:
    """Its entry in a KubeSchedulerConfiguration, but for where it is."""
    return {
        "filterVerb": "filter",
        "bindVerb": "bind",
        "enableHTTPS": False,
        "nodeCacheCapable": True,
        "managedResources": [{"name": config.memory_resource, "ignoredByScheduler": False}],
        "ignorable": False,
    }


def _extenders(config: GpuShareConfig) -> Sequence[ExtenderService]:
    return (ExtenderService(SERVICE, "/gpushare-scheduler", extender_config(config)),)


def _nodes(config: GpuShareConfig) -> Sequence[str]:
    return config.nodes


def _document(config: GpuShareConfig) -> Mapping[str, Any]:
    return asdict(config)


def _invariants() -> Sequence[Invariant[RunState]]:
    from mews.systems.gpushare.invariants import MemoryAsked

    return (MemoryAsked(),)


def _commands() -> Sequence[Command]:
    from mews.systems.gpushare.inspect import COMMAND

    return (COMMAND,)


SYSTEM = System(
    name="gpushare",
    summary="lets pods share GPUs by memory: an extender of the default scheduler, and a device plugin",
    options=GpuShareOptions,
    configure=configure,
    components=(
        Component("gpushare-extender", _extender, service=SERVICE),
        Component("gpushare-extender-2", _extender, wanted=lambda options: options.replicas > 1, service=SERVICE),
        Component("gpushare-device-plugin", _plugin, nodes=_nodes),
    ),
    title="GPU Share",
    namespace=lambda config: None,
    document=_document,
    extenders=_extenders,
    part_of=gpu_of_slice,
    lends=_nodes,
    invariants=_invariants,
    commands=_commands,
)
"""What the harness knows of it."""
