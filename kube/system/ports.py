"""What one incarnation of a component is given to reach the world through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from mews.kube.chassis.port import ChassisApi
from mews.kube.component import Context
from mews.kube.deviceplugin.port import DevicePluginLink, PodResources
from mews.kube.dra.port import DraLink
from mews.kube.runtimehook.port import HookSocket
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.system.facility import ContainerExtras
from mews.kube.system.files import FileTree
from mews.kube.system.gpu_driver import GpuDriver
from mews.kube.system.nvml import NvmlPort
from mews.kube.system.services import ServicePort


class KubeletCheckpoint(Protocol):
    """The file in which a node's kubelet keeps who holds which devices (contract kubelet.md section 6)."""

    async def read(self) -> str:
        """Return its text.

        Raises OSError.
        """
        ...


class NodeAccess(Struct, frozen=True):
    """The node that a component runs on. ``files`` are the host's, ``nvml`` its driver's library; ``driver`` makes
    NVML's hot-plug calls there; ``checkpoint`` is the kubelet's, and on ``hooks`` its container runtime asks about
    containers; over ``dra`` a driver of dynamic resource allocation serves. None where the component must do
    without. ``extras`` is what containers with a device need on this node. ``device_folder``: where the host's
    device nodes are, as files, which containers are given by mounts; "": they are devices of the machine."""

    name: str
    link: DevicePluginLink
    pod_resources: PodResources
    files: FileTree | None = None
    nvml: NvmlPort | None = None
    driver: GpuDriver | None = None
    checkpoint: KubeletCheckpoint | None = None
    hooks: HookSocket | None = None
    dra: DraLink | None = None
    extras: ContainerExtras = field(default_factory=ContainerExtras)
    device_folder: str = ""


class Ports(Struct, frozen=True):
    """``chassis`` makes the clients of all chassis, given the seconds after which an unanswered call is of unknown
    outcome. ``node`` is set for a component that each node has. ``measures`` is what ``SystemMeasuring.measures`` made:
    it outlives incarnations. ``parts`` holds what the user put in the place of parts of this component, by the names of
    ``Component.parts``: loaded callables; a ``plugin`` is a factory that takes the scheduler's handle alone.
    ``service`` is what the component answers others on, where it has one (``Component.service``). ``devices`` is what
    the cluster's feature gates let a scheduler do with claimed devices."""

    context: Context
    chassis: Callable[[float], Mapping[str, ChassisApi]]
    node: NodeAccess | None = None
    measures: Any = None
    parts: Mapping[str, Callable[..., Any]] | None = None
    service: ServicePort | None = None
    devices: DeviceFeatures = DEFAULT_FEATURES

    def part(self, name: str) -> Callable[..., Any] | None:
        """Return the user's callable in the place of that part, if there is one."""
        return (self.parts or {}).get(name)
