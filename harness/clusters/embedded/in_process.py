"""The ports of a cluster in one process under virtual time: nothing is opened, nothing written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from mews.emulator.chassis.events import ChassisEvent
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.host.events import HostEvent
from mews.harness.chassis_feed import ChassisFeed
from mews.harness.clusters.ports import ClusterPorts, WorldInProcess
from mews.harness.host_feed import HostFeed
from mews.harness.ports.chassis import LOCAL_PASSWORD, LocalFleet
from mews.harness.ports.deviceplugin import LocalKubeletFolder, LocalLink, LocalPodResources
from mews.harness.ports.dra import LocalDraLink, LocalDraNode
from mews.harness.ports.hardware_control import LocalHardwareControl
from mews.harness.ports.hosts import LocalDriver, LocalHosts, LocalUsers
from mews.harness.ports.nvml import LocalNvml
from mews.harness.ports.runtime_hooks import LocalHooks
from mews.harness.ports.services import POST_TIMEOUT_S, LocalServices
from mews.harness.ports.webhooks import InProcessWebhooks
from mews.harness.run_context import RunContext
from mews.kube.chassis.dialects import client_of
from mews.kube.chassis.port import ChassisApi, RedfishCredentials
from mews.kube.deviceplugin.port import DevicePluginLink, Endpoint
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.kubelet.devices import MemoryCheckpoint
from mews.kube.emulated.kubelet.dra.state_store import MemoryDraState
from mews.kube.emulated.kubelet.users import DeviceUsers
from mews.kube.emulated.packs.kubelets.measures import serve_kinds
from mews.kube.emulated.ports.kubelets import KubeletDirectory
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease
from mews.kube.runtimehook.port import RuntimeHooks
from mews.kube.system.facility import ContainerExtras
from mews.kube.system.files import FileTree
from mews.kube.system.gpu_driver import GpuDriver


class InProcessHardware:
    """Chassis and hosts as values: a ChassisPort and a HostsPort. The journal gets their events."""

    def __init__(self, hardware: Hardware, run: RunContext) -> None:
        self._feeds = {spec.name: ChassisFeed(run.journal, spec) for spec in hardware.chassis}
        self._host_feeds = {host.name: HostFeed(run.journal, host.name) for host in hardware.hosts}
        self._hosts = LocalHosts(hardware, pace=run.pace, seed=run.seed, listener=self._on_host_event)
        self._fleet = LocalFleet(hardware, pace=run.pace, seed=run.seed, listener=self._on_chassis_event)
        self._hosts.telemetry = self._fleet.fleet.telemetry
        self.control = LocalHardwareControl(self._fleet, self._hosts)

    def begin(self) -> None:
        """Write the tables into the journal; boot the hosts."""
        for feed in self._feeds.values():
            feed.begin()
        self._hosts.begin()

    def world(self, store: Store, kubelets: KubeletDirectory) -> WorldInProcess:
        """Itself beside the API server's part."""
        return WorldInProcess(store, kubelets, self._fleet, self._hosts)

    def _on_chassis_event(self, event: ChassisEvent) -> None:
        self._feeds[event.chassis].on_event(event.number, event.event, event.fields)
        self._hosts.on_event(event)

    def _on_host_event(self, event: HostEvent) -> None:
        self._host_feeds[event.host].on_event(event.event, event.fields)

    def client(self, name: str, dialect: str, *, timeout_s: float) -> ChassisApi:
        """Return the chassis' dialect without a socket."""
        transport = self._fleet.transport(name, dialect, timeout_s=timeout_s)
        return client_of(dialect, transport, RedfishCredentials("admin", LOCAL_PASSWORD), patience_s=timeout_s)

    async def kill(self, name: str) -> None:
        """Connections end, new ones are refused."""
        self._fleet.kill(name)

    async def start(self, name: str) -> None:
        """It comes back with its table."""
        self._fleet.start(name)

    def files(self, host: str) -> FileTree:
        """Return the host's files, as values."""
        return self._hosts.tree(host)

    def driver(self, host: str) -> GpuDriver:
        """Return the emulated driver itself."""
        return LocalDriver(self._hosts, host)

    def extras(self, host: str) -> ContainerExtras:
        """Simulated containers load no library."""
        return ContainerExtras()

    def driver_root(self, host: str) -> Path | None:
        """Nothing is started."""
        return None

    def nvml(self, host: str, name: str) -> LocalNvml:
        """Return the host's state, without a library."""
        return LocalNvml(self._hosts, host, name)

    def users(self, host: str) -> DeviceUsers:
        """Return the host itself."""
        return LocalUsers(self._hosts, host)

    def lacks(self, requirement: str) -> str | None:
        """There are no files and no programs."""
        return f"there is no {requirement} in virtual time"

    async def close(self) -> None:
        """Cancel the hardware's timers."""
        self._hosts.close()
        self._fleet.close()


class InProcessKubelets:
    """The kubelets' folders as values: a KubeletsPort and a PluginsPort."""

    def __init__(self, hardware: Hardware) -> None:
        self._folders = {host.name: LocalKubeletFolder() for host in hardware.hosts}
        self._checkpoints = {host.name: MemoryCheckpoint() for host in hardware.hosts}
        self._hooks = {host.name: LocalHooks() for host in hardware.hosts}
        self._dra = {host.name: LocalDraNode() for host in hardware.hosts}
        self._dra_states = {host.name: MemoryDraState() for host in hardware.hosts}
        self._dra_health_states = {host.name: MemoryDraState() for host in hardware.hosts}

    def folder(self, host: str) -> LocalKubeletFolder:
        """Return the node's folder."""
        return self._folders[host]

    def checkpoint(self, host: str) -> MemoryCheckpoint:
        """Return it in memory; it outlives the kubelet."""
        return self._checkpoints[host]

    def dra(self, host: str) -> LocalDraNode:
        """Return the node's drivers of dynamic resource allocation."""
        return self._dra[host]

    def dra_state(self, host: str) -> MemoryDraState:
        """Return it in memory; it outlives the kubelet."""
        return self._dra_states[host]

    def dra_health_state(self, host: str) -> MemoryDraState:
        """Return it in memory; it outlives the kubelet."""
        return self._dra_health_states[host]

    def dra_link(self, host: str) -> LocalDraLink:
        """Return a link of one driver incarnation."""
        return self._dra[host].link()

    def pod_resources(self, host: str) -> LocalPodResources:
        """Return the node's podresources."""
        return self._folders[host].pod_resources()

    async def serve_hooks(self, host: str, hooks: RuntimeHooks) -> Endpoint:
        """Return it without a socket."""
        return self._hooks[host].serve(hooks)

    def hooks(self, host: str) -> RuntimeHooks:
        """Whoever serves them."""
        return self._hooks[host]

    def address(self, host: str) -> tuple[str, int] | None:
        """Kubelets are asked in process."""
        return None

    def network(self, number: int) -> str:
        """Return it as kind numbers its nodes."""
        return f"10.244.{number}"

    def link(self, host: str) -> LocalLink:
        """Return a link of one plugin incarnation."""
        return self._folders[host].link()

    def bury(self, link: DevicePluginLink) -> None:
        """Its streams end."""
        assert isinstance(link, LocalLink)
        link.kill()


class InProcessServices(LocalServices):
    """A ServicesPort without sockets: a service is at ``http://NAME``."""

    def __init__(self, run: RunContext) -> None:
        super().__init__(run.rng("services"))

    def place(self, service: str, path: str) -> dict[str, Any]:
        """Return them by its name."""
        return {"urlPrefix": f"http://{service}{path}"}

    async def post(self, url: str, body: bytes) -> tuple[int, bytes]:
        """Ask one of those that serve it."""
        service, _, path = url.removeprefix("http://").partition("/")
        async with asyncio.timeout(POST_TIMEOUT_S):
            reply = await self.call(service, "POST", f"/{path}", body)
        return reply.status, reply.body


def in_process_ports(
    hardware: Hardware,
    run: RunContext,
    kubelets: KubeletDirectory,
    *,
    attended: bool = False,
    metrics: bool = False,
    release: ClusterRelease = STANDARD,
) -> ClusterPorts:
    """Return the ports of a cluster on the running virtual loop; the API server asks the kubelets of that directory.
    ``attended``: a controller makes the service accounts that pods need; ``metrics``: serve metrics.k8s.io;
    ``release``: which Kubernetes it is."""
    store = fresh_store(run.clock.now, run.rng("store"), attended=attended, release=release)
    if metrics:
        serve_kinds(store)
    devices, folders = InProcessHardware(hardware, run), InProcessKubelets(hardware)
    devices.begin()
    world = devices.world(store, kubelets)
    services = InProcessServices(run)
    store.webhooks = InProcessWebhooks(services)
    return ClusterPorts(
        kube=lambda actor: InProcessKube(store, f"system:{actor}", kubelets=kubelets),
        hardware=devices.control,
        chassis=devices,
        hosts=devices,
        kubelets=folders,
        plugins=folders,
        services=services,
        close=devices.close,
        world=world,
    )
