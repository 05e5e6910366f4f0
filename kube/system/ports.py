"""What one incarnation of a component is given to reach the world through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mews.kube.chassis.port import ChassisApi
from mews.kube.component import Context
from mews.kube.deviceplugin.port import DevicePluginLink, Mount, PodResources


@dataclass(frozen=True, slots=True)
class ContainerExtras:
    """What Allocate adds for every container with a device: where the driver's library and programs are."""

    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()


@dataclass(frozen=True, slots=True)
class NodePorts:
    """The node that a component runs on. ``files`` reads the host's sys and proc (a ``FileTree``), None where the
    component must do without."""

    name: str
    link: DevicePluginLink
    pod_resources: PodResources
    files: Any = None
    extras: ContainerExtras = ContainerExtras()


@dataclass(frozen=True, slots=True)
class Ports:
    """``chassis`` makes the clients of all chassis, given the seconds after which an unanswered call is of unknown
    outcome. ``node`` is set for a component that each node has. ``measures`` is what ``System.measures`` made: it
    outlives incarnations. ``plugin`` and ``policy`` are what the user put in the place of parts of this component."""

    context: Context
    chassis: Callable[[float], Mapping[str, ChassisApi]]
    node: NodePorts | None = None
    measures: Any = None
    plugin: Any = None
    policy: Any = None
