"""What a cluster of emulated nodes reaches what lies outside its components by: a port for each part of it.

There are two sets of them: in one process under virtual time (``in_process``), and over sockets, files and processes
(``served``). What one of them cannot do is None there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from mews.harness.ports.cluster import HardwareControl
from mews.harness.ports.fence import Fence
from mews.kube.chassis.port import ChassisApi
from mews.kube.client.port import KubeApi
from mews.kube.deviceplugin.port import DevicePluginLink, Endpoint, PodResources
from mews.kube.dra.port import DraLink, DraRegistry
from mews.kube.emulated.kubelet.devices import CheckpointStore
from mews.kube.emulated.kubelet.dra.state_store import DraStateStore
from mews.kube.emulated.kubelet.machine import KubeletFolder
from mews.kube.emulated.kubelet.runtime import EnginePort, Runtime
from mews.kube.emulated.kubelet.users import DeviceUsers
from mews.kube.runtimehook.port import RuntimeHooks
from mews.kube.system.facility import ContainerExtras
from mews.kube.system.files import FileTree
from mews.kube.system.gpu_driver import GpuDriver
from mews.kube.system.nvml import NvmlPort
from mews.kube.system.services import ServicePort, ServiceReply

if TYPE_CHECKING:
    from mews.certificates import Certificates
    from mews.harness.clusters.programs.control_plane import Program
    from mews.harness.ports.chassis import LocalFleet
    from mews.harness.ports.hosts import LocalHosts
    from mews.kube.emulated.core.store.store import Store
    from mews.kube.emulated.kubelet.podnet.callers import Callers
    from mews.kube.emulated.kubelet.volumes.pod_volumes import PodVolumes
    from mews.kube.emulated.ports.kubelets import KubeletDirectory


class ChassisPort(Protocol):
    """The emulated chassis: by their wire dialects, and as machines that can be switched off."""

    def client(self, name: str, dialect: str, *, timeout_s: float) -> ChassisApi:
        """Return one chassis over its wire dialect."""
        ...

    async def kill(self, name: str) -> None:
        """Kill -9 of a chassis' management server.

        Raises ValueError for one that cannot be killed alone.
        """
        ...

    async def start(self, name: str) -> None:
        """Start it again; its table is the acknowledged one."""
        ...


class ReleasedNvml(NvmlPort, Protocol):
    """NVML in the hands of one process."""

    def release(self) -> None:
        """The process is gone: it holds nothing any more."""
        ...


class ServicesPort(Protocol):
    """How components answer HTTP requests of others, and how our scheduler reaches them."""

    def port(self, service: str, fence: Fence) -> ServicePort:
        """Return where one incarnation of a component of that service serves."""
        ...

    def place(self, service: str, path: str) -> dict[str, Any]:
        """Return where that path of the service is for programs of others, as an extender's entry in a
        KubeSchedulerConfiguration says it: ``urlPrefix``, and whom to trust."""
        ...

    async def post(self, url: str, body: bytes) -> tuple[int, bytes]:
        """POST to such a URL.

        Raises ConnectionError, TimeoutError.
        """
        ...

    async def ask_all(self, service: str, path: str) -> Sequence[ServiceReply]:
        """GET a path of each that serves that name.

        Raises ConnectionError where nobody does.
        """
        ...


class HostsPort(Protocol):
    """What the emulated hosts show to the programs that run on them."""

    def files(self, host: str) -> FileTree:
        """Return the host's sys and proc, as a component on that node reads them."""
        ...

    def driver(self, host: str) -> GpuDriver | None:
        """NVML's hot-plug calls, as a component on that node makes them; None where nothing can make them."""
        ...

    def extras(self, host: str) -> ContainerExtras:
        """Return what every container with a device needs on that node: where the library and its programs are."""
        ...

    def driver_root(self, host: str) -> Path | None:
        """Return the node's folder laid out as a driver root, for a container runtime; None where nothing can be
        started."""
        ...

    def nvml(self, host: str, name: str) -> ReleasedNvml | None:
        """NVML of that host as one process of that name uses it; None where there is no library."""
        ...

    def users(self, host: str) -> DeviceUsers:
        """Return who is notified which devices containers on that host use."""
        ...

    def lacks(self, requirement: str) -> str | None:
        """Return why ``fuse`` (writes into sysfs that block and fail) or ``nvml`` (programs that load the library)
        cannot be had, None where they can."""
        ...


class HostProcessPort(Protocol):
    """The process that serves the hosts, where they have one."""

    async def kill(self) -> None:
        """Kill -9."""
        ...

    async def start(self) -> None:
        """Start it again."""
        ...


class KubeletsPort(Protocol):
    """Where the kubelet of each node has its folders and its addresses."""

    def folder(self, host: str) -> KubeletFolder:
        """Return the device-plugins folder of a node."""
        ...

    def checkpoint(self, host: str) -> CheckpointStore:
        """Return where that node's kubelet keeps its checkpoint."""
        ...

    def dra(self, host: str) -> DraRegistry:
        """Return the drivers of dynamic resource allocation of a node."""
        ...

    def dra_health_state(self, host: str) -> DraStateStore:
        """Return where the node's kubelet keeps what it knows of the health of devices."""
        ...

    def dra_state(self, host: str) -> DraStateStore:
        """Return where that node's kubelet keeps the claims it has prepared."""
        ...

    def pod_resources(self, host: str) -> PodResources:
        """Return the podresources API of whichever kubelet runs on that node."""
        ...

    async def serve_hooks(self, host: str, hooks: RuntimeHooks) -> Endpoint:
        """Answer what that node's runtime asks about its containers, in place of whoever did.

        Raises OSError.
        """
        ...

    def hooks(self, host: str) -> RuntimeHooks:
        """Whoever answers that, as the node's runtime asks."""
        ...

    def address(self, host: str) -> tuple[str, int] | None:
        """Return where the API server finds that host's kubelet; None where it needs no address."""
        ...

    def network(self, number: int) -> str:
        """Return the first three numbers of the pods' addresses on the node of that number."""
        ...


class KillableDraLink(DraLink, Protocol):
    """A DRA driver's link that ends with its process."""

    def kill(self) -> None:
        """The process is gone: nobody answers, and the sockets' files stay."""
        ...


class PluginsPort(Protocol):
    """How device plugins reach their kubelet."""

    def link(self, host: str) -> DevicePluginLink:
        """Return the node's kubelet, as one incarnation of a plugin sees it."""
        ...

    def dra_link(self, host: str) -> KillableDraLink | None:
        """Return the node, as one incarnation of a DRA driver sees it; None where it cannot be reached."""
        ...

    def bury(self, link: DevicePluginLink) -> Awaitable[None] | None:
        """Return a plugin's process is gone: what it served ends."""
        ...


class ProcessesPort(Protocol):
    """Processes and files of this machine, where the cluster runs in wall-clock time."""

    @property
    def runtime(self) -> Runtime:
        """What runs containers as processes."""
        ...

    def engine(self, host: str) -> EnginePort | None:
        """Return what runs real images on that host; None where no image asks for it."""
        ...

    @property
    def scratch(self) -> Path:
        """A folder for configuration files and logs; it goes with the cluster."""
        ...

    @property
    def pod_volumes(self) -> PodVolumes:
        """What makes the volumes of the pods that run as processes."""
        ...

    @property
    def volumes(self) -> Path:
        """The folder of the nodes' volumes; it goes with the cluster."""
        ...

    @property
    def names_file(self) -> Path:
        """A file in the form of /etc/hosts, where the processes look up the names of services."""
        ...

    @property
    def callers(self) -> Callers | None:
        """By which programs outside of pods find pods and Services at their addresses; None where none can."""
        ...

    def program(
        self,
        component: str,
        options: Mapping[str, Any],
        *,
        extenders: Sequence[Mapping[str, Any]] = (),
        kubeconfig: Path | None = None,
    ) -> Program | None:
        """Return the real program that takes the place of our ``default-scheduler`` or ``controller-manager``, if any;
        ``kubeconfig``: another than the administrator's, which is there when it starts."""
        ...

    @property
    def certificates(self) -> Certificates | None:
        """Those that the run's own servers show; None where they serve plain HTTP."""
        ...

    def authority(self) -> str | None:
        """Return the certificates by which the API server is known, in PEM; None for plain HTTP."""
        ...

    def ready(self) -> dict[str, Any]:
        """Return where other processes reach everything (``ReachableCluster.ready``)."""
        ...


class WorldInProcess(Struct, frozen=True):
    """What the ports of a cluster in one process stand before, to be shown to other processes while it stands still."""

    store: Store
    kubelets: KubeletDirectory
    fleet: LocalFleet
    hosts: LocalHosts


class ClusterPorts(Struct, frozen=True):
    """All ports of one cluster of emulated nodes; ``kube`` gives an actor its Kubernetes API, ``close`` gives
    everything back."""

    kube: Callable[[str], KubeApi]
    hardware: HardwareControl
    chassis: ChassisPort
    hosts: HostsPort
    kubelets: KubeletsPort
    plugins: PluginsPort
    services: ServicesPort
    close: Callable[[], Awaitable[None]]
    host_server: HostProcessPort | None = None
    """None: the hosts are values in this process."""
    processes: ProcessesPort | None = None
    """None in virtual time, where nothing is started and nothing written."""
    world: WorldInProcess | None = None
    """None in wall-clock time, where other processes reach all of it anyway."""

    def program(
        self,
        component: str,
        options: Mapping[str, Any],
        *,
        extenders: Sequence[Mapping[str, Any]] = (),
        kubeconfig: Path | None = None,
    ) -> Program | None:
        """Return the real program in a component's place; None where ours runs."""
        return (
            None
            if self.processes is None
            else self.processes.program(component, options, extenders=extenders, kubeconfig=kubeconfig)
        )

    def needed_processes(self) -> ProcessesPort:
        """Return the processes, for what is only asked for in wall-clock time.

        Raises RuntimeError in virtual time.
        """
        if self.processes is None:
            raise RuntimeError("in virtual time nothing is written, and no other process can reach the cluster")
        return self.processes
