"""What differs between the two ways to run the embedded cluster: how its parts reach each other."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from mews.harness.clusters.control_plane.port import Program
from mews.harness.ports.cluster import HardwareControl
from mews.kube.chassis.port import ChassisApi
from mews.kube.client.port import KubeApi
from mews.kube.deviceplugin.port import DevicePluginLink, PodResources
from mews.kube.emulated.apiserver.wire.kubelets import KubeletDirectory
from mews.kube.emulated.kubelet.devices import CheckpointStore
from mews.kube.emulated.kubelet.machine import KubeletFolder
from mews.kube.emulated.kubelet.runtime import Runtime
from mews.kube.emulated.kubelet.users import Users
from mews.systems.kubecomp.config import AllocateConfig
from mews.systems.kubecomp.device_manager import Confirm


class World(Protocol):
    """Everything outside the components. ``virtual``: in process; ``wall``: sockets and processes."""

    name: str
    """The cluster: ``embedded``, ``control-plane``."""
    time: str

    @property
    def hardware(self) -> HardwareControl:
        """The back door of the chassis."""
        ...

    async def open(self, kubelets: KubeletDirectory) -> None:
        """Make everything answer, and begin to write the hardware's events."""
        ...

    def kube(self, actor: str) -> KubeApi:
        """Kubernetes, as that actor reaches it."""
        ...

    def kubelet_address(self, host: str) -> tuple[str, int] | None:
        """Where the API server finds that host's kubelet; None where it needs no address."""
        ...

    def program(
        self, component: str, options: Mapping[str, Any], *, extenders: Sequence[Mapping[str, Any]] = ()
    ) -> Program | None:
        """The real program that takes the place of our ``default-scheduler`` or ``controller-manager``, if any."""
        ...

    def chassis(self, name: str, dialect: str, *, timeout_s: float) -> ChassisApi:
        """One chassis over its wire dialect."""
        ...

    def folder(self, host: str) -> KubeletFolder:
        """The device-plugins folder of a node."""
        ...

    def checkpoint(self, host: str) -> CheckpointStore:
        """Where that node's kubelet keeps its checkpoint."""
        ...

    def link(self, host: str) -> DevicePluginLink:
        """The node's kubelet, as one incarnation of a plugin sees it."""
        ...

    def bury(self, link: DevicePluginLink) -> Awaitable[None] | None:
        """A plugin's process is gone: what it served ends."""
        ...

    def pod_resources(self, host: str) -> PodResources:
        """podresources of whichever kubelet runs on that node."""
        ...

    def confirm(self, host: str) -> Confirm | None:
        """How that node's DevMgr finds out whether the host sees a device; None: it does not ask."""
        ...

    def allocate(self, host: str) -> AllocateConfig:
        """What that node's DevMgr gives to every container with a device: where the library and its programs are."""
        ...

    def users(self, host: str) -> Users:
        """Who hears which devices containers on that host use."""
        ...

    def lacks(self, requirement: str) -> str | None:
        """Why ``fuse`` (writes into sysfs that block and fail) or ``nvml`` (programs that load the library) cannot be
        had, None where they can."""
        ...

    async def kill_hosts(self) -> None:
        """Kill -9 of what serves the hosts.

        Raises ValueError where there is no such process.
        """
        ...

    async def start_hosts(self) -> None:
        """Start it again."""
        ...

    def processes(self) -> Runtime | None:
        """What runs containers as processes, None where all are simulated."""
        ...

    def names_file(self) -> Path | None:
        """Where the processes look up the names of services, None where there are none."""
        ...

    def network(self, number: int) -> str:
        """The first three numbers of the pods' addresses on the node of that number."""
        ...

    def scratch(self) -> Path:
        """A folder for configuration files and logs; it goes with the world.

        Raises RuntimeError in virtual time, where nothing is written.
        """
        ...

    async def kill_chassis(self, name: str) -> None:
        """Kill -9 of a chassis' management server."""
        ...

    async def start_chassis(self, name: str) -> None:
        """Start it again; its table is the acknowledged one."""
        ...

    def ready(self) -> dict[str, Any]:
        """Where other processes reach everything (``ServedCluster.ready``).

        Raises RuntimeError where nothing can be reached.
        """
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...
