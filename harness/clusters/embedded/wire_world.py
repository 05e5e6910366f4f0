"""The embedded cluster in wall-clock time: a real HTTP API, chassis in a process of their own, gRPC on unix sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from mews.emulator.chassis.inventory import Hardware
from mews.harness.chassis_feed import ChassisFeed
from mews.harness.clusters.control_plane.port import ControlPlane, Program
from mews.harness.clusters.embedded.chassis_process import ChassisProcess
from mews.harness.clusters.embedded.served_hosts import ServedHardware, ServedHosts
from mews.harness.errors import Lacks
from mews.harness.journal import Journal
from mews.harness.leftovers import OWNER, Owned, make_runtime_folder
from mews.harness.ports.cluster import HardwareControl
from mews.harness.ports.hardware_http import HttpHardwareControl
from mews.kube.chassis.dialects import speak
from mews.kube.chassis.http import HttpTransport
from mews.kube.chassis.port import ChassisApi
from mews.kube.chassis.redfish import Account
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest
from mews.kube.deviceplugin.errors import SocketPathTooLong
from mews.kube.deviceplugin.grpc_client import GrpcPodResources
from mews.kube.deviceplugin.grpc_link import GrpcLink
from mews.kube.deviceplugin.port import DevicePlugin, DevicePluginLink, Endpoint, PluginOptions
from mews.kube.emulated.apiserver.wire.kubelets import KubeletDirectory
from mews.kube.emulated.controllers.service_names import HOSTS_FILE
from mews.kube.emulated.kubelet.devices import FileCheckpoint
from mews.kube.emulated.kubelet.grpc_server import GrpcKubeletFolder
from mews.kube.emulated.kubelet.process import ProcessRuntime
from mews.kube.emulated.kubelet.users import Users
from mews.systems.kubecomp.config import AllocateConfig
from mews.systems.kubecomp.device_manager import Confirm
from mews.systems.kubecomp.sysfs import FolderTree, SysfsConfirm

PLUGINS, POD_RESOURCES = "device-plugins", "pod-resources"


class PluginLink:
    """GrpcLink that can be buried: what a dead incarnation served ends."""

    def __init__(self, folder: Path) -> None:
        self._link = GrpcLink(folder)
        self._served: list[Endpoint] = []

    async def serve(self, endpoint: str, plugin: DevicePlugin) -> Endpoint:
        """Serve the plugin on that socket name."""
        served = await self._link.serve(endpoint, plugin)
        self._served.append(served)
        return served

    async def register(self, endpoint: str, resource: str, options: PluginOptions) -> None:
        """Registration/Register. Raises PluginError."""
        await self._link.register(endpoint, resource, options)

    async def kubelet_restarted(self) -> None:
        """Return once the kubelet has started anew."""
        await self._link.kubelet_restarted()

    async def kill(self) -> None:
        """The process is gone, its sockets with it."""
        while self._served:
            await self._served.pop().close()


class WireWorld:
    """World over sockets. Everything lies in a short folder of its own, since a socket's path has at most 107 bytes;
    ``folder`` gets the kubeconfig and keeps the chassis' tables; ``plane`` is made in the world's own folder.

    Raises Lacks where even that folder's name is too long.
    """

    time = "wall"

    def __init__(
        self,
        hardware: Hardware,
        document: Mapping[str, Any],
        *,
        plane: Callable[[Path], ControlPlane],
        journal: Journal,
        speed: float,
        seed: int | str,
        folder: Path | None = None,
    ) -> None:
        self.root = make_runtime_folder("mews-")
        self._owned = Owned(self.root)
        self._folders = self._kubelet_folders(hardware)
        self.kubeconfig = (folder or self.root) / "kubeconfig"
        self._inventory = hardware
        self.plane = plane(self.root)
        self.name = self.plane.name
        self._journal = journal
        self._feeds: dict[str, ChassisFeed] = {}
        env = self._owned.env()
        self._process = ChassisProcess(self.root, document, speed=speed, seed=seed, keep=folder, env=env)
        ready = self._process.ready_file
        self._hosts = ServedHosts(self.root, self._process.hardware, ready, journal, speed=speed, seed=seed, env=env)
        self._runtime = ProcessRuntime(
            self.root / "pods", {HOSTS_FILE: str(self.names_file()), OWNER: str(self.root)}, speed=speed
        )
        self._transports: list[HttpTransport] = []
        self._pod_resources: dict[str, GrpcPodResources] = {}
        self._control: HttpHardwareControl | None = None
        self._feeding: asyncio.Task[None] | None = None
        self._alive = asyncio.Event()
        self._said: dict[str, Any] = {}
        self.hardware: HardwareControl = ServedHardware(
            self.control, self._hosts, [host.name for host in hardware.hosts]
        )

    async def open(self, kubelets: KubeletDirectory) -> None:
        """Start the API server and the chassis; hear the chassis from their first event on."""
        beginning = asyncio.ensure_future(self._begin())
        try:
            await self.plane.open(kubelets, [host.name for host in self._inventory.hosts])
        finally:
            await beginning
        self.plane.write_kubeconfig(self.kubeconfig)
        tables = await self.hardware.table()
        for spec in self._inventory.chassis:
            self._feeds[spec.name] = ChassisFeed(self._journal, spec, tables[spec.name])
        for feed in self._feeds.values():
            feed.begin()
        await self._hosts.open()
        self._feeding = asyncio.create_task(self._feed(), name="chassis-feed")

    async def _begin(self) -> None:
        self._said = await self._process.start()
        control = self._said["control"]
        self._control = HttpHardwareControl(control["url"], control["token"])
        self._alive.set()

    async def _feed(self) -> None:
        """All chassis' events, over every restart of their process."""
        while True:
            await self._alive.wait()
            control, last = self.control(), 0
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, RuntimeError):
                async for event in control.events(last):
                    last = event["seq"]
                    fields = {k: v for k, v in event.items() if k not in ("seq", "number", "t", "chassis", "event")}
                    self._feeds[event["chassis"]].hear(event["number"], event["event"], fields)
            await rest(0.05)

    def control(self) -> HttpHardwareControl:
        """The back door of the running process."""
        if self._control is None:
            raise RuntimeError("the chassis' process does not run")
        return self._control

    def kube(self, actor: str) -> KubeApi:
        """An HTTP client of its own for each actor."""
        return self.plane.kube(actor)

    def kubelet_address(self, host: str) -> tuple[str, int] | None:
        """Where the API server finds that host's kubelet, if by an address."""
        return self.plane.kubelet_address(host)

    def program(
        self, component: str, options: Mapping[str, Any], *, extenders: Sequence[Mapping[str, Any]] = ()
    ) -> Program | None:
        """The real program in a component's place."""
        return self.plane.program(component, options, extenders=extenders)

    def chassis(self, name: str, dialect: str, *, timeout_s: float) -> ChassisApi:
        """The chassis over HTTP."""
        transport = HttpTransport(self._said["chassis"][name][dialect], timeout_s)
        self._transports.append(transport)
        account = self._said.get("accounts", {}).get(dialect)
        return speak(dialect, transport, Account(**account) if account else None, patience_s=timeout_s)

    def node_folder(self, host: str) -> Path:
        """The folder of one node."""
        return self.root / host

    def _kubelet_folders(self, hardware: Hardware) -> dict[str, GrpcKubeletFolder]:
        nodes = {host.name: self.node_folder(host.name) for host in hardware.hosts}
        try:
            return {name: GrpcKubeletFolder(node / PLUGINS, node / POD_RESOURCES) for name, node in nodes.items()}
        except SocketPathTooLong as error:
            self._owned.release()
            raise Lacks(f"{error} (XDG_RUNTIME_DIR or TMPDIR)") from error

    def folder(self, host: str) -> GrpcKubeletFolder:
        """The node's plugin folder."""
        return self._folders[host]

    def checkpoint(self, host: str) -> FileCheckpoint:
        """The file in the plugin folder, as on a real node."""
        folder = self.node_folder(host) / PLUGINS
        folder.mkdir(parents=True, exist_ok=True)
        return FileCheckpoint(folder)

    def link(self, host: str) -> PluginLink:
        """The folder as one plugin incarnation sees it."""
        return PluginLink(self.node_folder(host) / PLUGINS)

    async def bury(self, link: DevicePluginLink) -> None:
        """Its sockets close."""
        assert isinstance(link, PluginLink)
        await link.kill()

    def pod_resources(self, host: str) -> GrpcPodResources:
        """A client of the node's podresources socket."""
        if host not in self._pod_resources:
            self._pod_resources[host] = GrpcPodResources(self.node_folder(host) / POD_RESOURCES / "kubelet.sock")
        return self._pod_resources[host]

    def confirm(self, host: str) -> Confirm:
        """By the host's files."""
        return SysfsConfirm(FolderTree(self._hosts.files(host)))

    def allocate(self, host: str) -> AllocateConfig:
        """The library beside its state, and nvidia-smi on the PATH."""
        return self._hosts.allocate(host)

    def users(self, host: str) -> Users:
        """The host's process is told."""
        return self._hosts.users(host)

    def lacks(self, requirement: str) -> str | None:
        """Why ``fuse`` or ``nvml`` cannot be had, None where they can."""
        return self._hosts.lacks(requirement)

    async def kill_hosts(self) -> None:
        """Kill -9 of the hosts' process: no file answers any more."""
        await self._hosts.kill()

    async def start_hosts(self) -> None:
        """Start it again; the hosts boot with the chassis' table."""
        await self._hosts.start()

    def processes(self) -> ProcessRuntime:
        """Containers are processes of this machine."""
        return self._runtime

    def names_file(self) -> Path:
        """A file in the form of /etc/hosts, which every process finds by MEWS_HOSTS."""
        return self.root / "hosts"

    def network(self, number: int) -> str:
        """Loopback addresses, so that each pod has one of its own."""
        return f"127.77.{number}"

    def scratch(self) -> Path:
        """The world's own folder."""
        return self.root

    async def kill_chassis(self, name: str) -> None:
        """Kill -9 of the process; it serves all chassis.

        Raises ValueError where there are several: on restart only the first keeps its port.
        """
        if len(self._inventory.chassis) > 1:
            raise ValueError(f"chassis/{name}: one process serves all {len(self._inventory.chassis)} chassis here")
        self._alive.clear()
        await self._process.kill()
        await self._drop_control()

    async def start_chassis(self, name: str) -> None:
        """Start the process again from its stored table."""
        await self._begin()

    async def _drop_control(self) -> None:
        control, self._control = self._control, None
        if control is not None:
            await control.close()

    async def close(self) -> None:
        """Give everything back: processes, sockets, the folder."""
        if self._feeding is not None:
            self._feeding.cancel()
            await asyncio.gather(self._feeding, return_exceptions=True)
        for resources in self._pod_resources.values():
            await resources.close()
        for transport in self._transports:
            await transport.close()
        await self._drop_control()
        await asyncio.gather(self._hosts.close(), self._process.stop(), self.plane.close())
        self.kubeconfig.unlink(missing_ok=True)
        await asyncio.to_thread(self._owned.release)

    def ready(self) -> dict[str, Any]:
        """Where everything is, as ``mews up`` tells it."""
        nodes: dict[str, Any] = {
            host.name: {
                "device_plugins": str(self.node_folder(host.name) / PLUGINS),
                "pod_resources": str(self.node_folder(host.name) / POD_RESOURCES),
                "sysfs": str(self._hosts.files(host.name) / "sys"),
                "root": str(self._hosts.files(host.name)),
                "env": self._hosts.env(host.name),
            }
            for host in self._inventory.hosts
        }
        return {
            "api": self.plane.url,
            "kubeconfig": str(self.kubeconfig),
            "chassis": self._said["chassis"],
            "control": self._said["control"],
            "accounts": self._said.get("accounts", {}),
            "hosts": self._hosts.control_said(),
            "nodes": nodes,
        }
