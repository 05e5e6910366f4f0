"""The kubelets' side of a wall-clock cluster: folders of the nodes, gRPC on their unix sockets, addresses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mews.emulator.hardware.inventory import Hardware
from mews.harness.clusters.embedded.pod_range import PodAddresses
from mews.harness.errors import RequirementError
from mews.harness.ports.dra import LocalDraLink, LocalDraNode
from mews.harness.ports.dra_folders import JoinedDraRegistry
from mews.kube.deviceplugin.errors import SocketPathTooLongError
from mews.kube.deviceplugin.grpc_client import GrpcPodResources
from mews.kube.deviceplugin.grpc_link import GrpcLink
from mews.kube.deviceplugin.port import DevicePlugin, DevicePluginLink, Endpoint, PluginOptions
from mews.kube.emulated.kubelet.devices import FileCheckpoint
from mews.kube.emulated.kubelet.dra.grpc_registry import GrpcDraRegistry
from mews.kube.emulated.kubelet.dra.state_store import HEALTH_FILE_NAME, FileDraState
from mews.kube.emulated.kubelet.grpc_server import GrpcKubeletFolder
from mews.kube.emulated.kubelet.node_folders import CDI, placed
from mews.kube.runtimehook.grpc_hooks import GrpcHooks, serve_hooks
from mews.kube.runtimehook.port import RuntimeHooks

PLUGINS, POD_RESOURCES = "device-plugins", "pod-resources"
HOOKS = "koordlet.sock"
REGISTRY, DRIVERS = "plugins_registry", "plugins"
"""Where DRA drivers register, and where each has a folder of its own."""


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


class ServedKubelets:
    """A KubeletsPort and a PluginsPort: each node has a folder of its name below ``root``.

    Raises RequirementError where ``root`` has so long a name that no socket can lie in it.
    """

    def __init__(self, root: Path, hardware: Hardware, address: Callable[[str], tuple[str, int] | None]) -> None:
        self._root = root
        self._address = address
        self._dra = {host.name: LocalDraNode() for host in hardware.hosts}
        nodes = {host.name: self.node_folder(host.name) for host in hardware.hosts}
        try:
            self._folders = {
                name: GrpcKubeletFolder(node / PLUGINS, node / POD_RESOURCES) for name, node in nodes.items()
            }
        except SocketPathTooLongError as error:
            raise RequirementError(f"{error} (XDG_RUNTIME_DIR or TMPDIR)") from error
        self._pod_resources: dict[str, GrpcPodResources] = {}
        self._hooks: dict[str, GrpcHooks] = {}
        self.addresses = PodAddresses()

    def node_folder(self, host: str) -> Path:
        """Return the folder of one node."""
        return self._root / host

    def show_driver(self, host: str, root: Path) -> None:
        """Let pods find the root of the node's driver where a GPU operator has it."""
        link = placed(self.node_folder(host), "/run/nvidia/driver")
        assert link is not None, "it is one of the node's folders"
        link.unlink(missing_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(root)

    def ready(self, host: str) -> dict[str, str]:
        """Return where the sockets of one node lie, as ready.json has it."""
        node = self.node_folder(host)
        dra = {
            "plugins_registry": str(node / REGISTRY),
            "plugins": str(node / DRIVERS),
            "cdi": str(node / CDI["/etc/cdi"]),
        }
        return {"device_plugins": str(node / PLUGINS), "pod_resources": str(node / POD_RESOURCES), **dra}

    def folder(self, host: str) -> GrpcKubeletFolder:
        """Return the node's plugin folder."""
        return self._folders[host]

    def checkpoint(self, host: str) -> FileCheckpoint:
        """Return the file in the plugin folder, as on a real node."""
        folder = self.node_folder(host) / PLUGINS
        folder.mkdir(parents=True, exist_ok=True)
        return FileCheckpoint(folder)

    def dra(self, host: str) -> JoinedDraRegistry:
        """Drivers of ours run in this process, those of others serve in the node's folder."""
        node = self.node_folder(host)
        return JoinedDraRegistry(
            self._dra[host], GrpcDraRegistry(node / REGISTRY, [node / each for each in dict.fromkeys(CDI.values())])
        )

    def dra_state(self, host: str) -> FileDraState:
        """Return the file in the node's folder, as on a real node."""
        return FileDraState(self.node_folder(host))

    def dra_health_state(self, host: str) -> FileDraState:
        """Return the file in the node's folder, as on a real node."""
        return FileDraState(self.node_folder(host), HEALTH_FILE_NAME)

    def dra_link(self, host: str) -> LocalDraLink:
        """Return a link of one driver incarnation."""
        return self._dra[host].link()

    def pod_resources(self, host: str) -> GrpcPodResources:
        """Return a client of the node's podresources socket."""
        if host not in self._pod_resources:
            self._pod_resources[host] = GrpcPodResources(self.node_folder(host) / POD_RESOURCES / "kubelet.sock")
        return self._pod_resources[host]

    async def serve_hooks(self, host: str, hooks: RuntimeHooks) -> Endpoint:
        """Return it on a socket in the node's folder. Raises OSError."""
        return await serve_hooks(self._hook_path(host), hooks)

    def hooks(self, host: str) -> RuntimeHooks:
        """Return a client of that socket."""
        if host not in self._hooks:
            self._hooks[host] = GrpcHooks(self._hook_path(host))
        return self._hooks[host]

    def _hook_path(self, host: str) -> Path:
        return self.node_folder(host) / HOOKS

    def address(self, host: str) -> tuple[str, int] | None:
        """Return them as the control plane says."""
        return self._address(host)

    def network(self, number: int) -> str:
        """Return how the addresses of a node's pods begin: on loopback, in a range that no other cluster here has, or
        the prefix by which pods are known.

        Raises RequirementError if none is left.
        """
        return self.addresses.of_node(number)

    def link(self, host: str) -> PluginLink:
        """Return the folder as one plugin incarnation sees it."""
        return PluginLink(self.node_folder(host) / PLUGINS)

    async def bury(self, link: DevicePluginLink) -> None:
        """Its sockets close."""
        assert isinstance(link, PluginLink)
        await link.kill()

    async def close(self) -> None:
        """Close the clients, and let another cluster have the addresses."""
        self.addresses.release()
        for resources in self._pod_resources.values():
            await resources.close()
        for hooks in self._hooks.values():
            await hooks.close()
