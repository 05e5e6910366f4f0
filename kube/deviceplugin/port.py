"""Device plugins as ports (contract kubelet.md sections 1, 3, 7; k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1).

``DevicePlugin`` is the plugin: what the kubelet calls. ``DevicePluginLink`` is the kubelet of one node as a plugin
sees it. ``PluginDialer`` is a plugin's endpoint as the kubelet sees it. Adapters: grpc.aio on unix sockets
(``mews.kube.deviceplugin.grpc_link``) and in process (``mews.harness.ports``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from msgspec import Struct, field

HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"


class PluginError(Exception):
    """A failed call, with gRPC's code and text; ``str()`` reads ``rpc error: code = Unknown desc = boom``."""

    def __init__(self, code: str, desc: str) -> None:
        super().__init__(f"rpc error: code = {code} desc = {desc}")
        self.code = code
        self.desc = desc


class PluginDevice(Struct, frozen=True):
    """One device of a list; anything but exactly ``Healthy`` is unhealthy."""

    id: str
    health: str = HEALTHY
    numa_nodes: tuple[int, ...] = ()


class PluginOptions(Struct, frozen=True):
    """Which optional calls the plugin wants."""

    pre_start_required: bool = False
    preferred_allocation_available: bool = False


class Mount(Struct, frozen=True):
    """A host path shown to the container."""

    container_path: str
    host_path: str
    read_only: bool = False


class DeviceNode(Struct, frozen=True):
    """A device node given to the container."""

    container_path: str
    host_path: str
    permissions: str = "rw"


class ContainerHook(Struct, frozen=True):
    """One OCI hook: the program's file and its arguments, the program's name first."""

    stage: str
    path: str
    args: tuple[str, ...] = ()


class Allocation(Struct, frozen=True):
    """What a plugin gives one container: variables, mounts, device nodes (ContainerAllocateResponse). ``hooks`` come
    with CDI devices that are resolved already; no plugin gives one."""

    envs: dict[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()
    hooks: tuple[ContainerHook, ...] = ()


class DevicePlugin(Protocol):
    """What the kubelet calls. Every method may raise PluginError."""

    async def options(self) -> PluginOptions:
        """Return which optional calls the plugin takes part in (GetDevicePluginOptions)."""
        ...

    def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        """ListAndWatch: each message is the full list."""
        ...

    async def preferred_allocation(
        self, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        """Choose devices for one container among those available (GetPreferredAllocation)."""
        ...

    async def allocate(self, requests: Sequence[Sequence[str]]) -> tuple[Allocation, ...]:
        """Allocate: device IDs per container."""
        ...

    async def pre_start(self, devices: Sequence[str]) -> None:
        """Prepare devices before a container starts (PreStartContainer)."""
        ...


class Endpoint(Protocol):
    """A plugin that is being served on a socket."""

    async def close(self) -> None:
        """Stop serving; open streams end."""
        ...


class DevicePluginLink(Protocol):
    """The kubelet of one node, as a plugin sees it: a folder with its ``kubelet.sock``."""

    async def serve(self, endpoint: str, plugin: DevicePlugin) -> Endpoint:
        """Serve the plugin on that socket name (``falcon.sock``) in the kubelet's folder, replacing a leftover."""
        ...

    async def register(self, endpoint: str, resource: str, options: PluginOptions) -> None:
        """Register a served plugin with the kubelet (Registration/Register).

        Raises PluginError.
        """
        ...

    async def kubelet_restarted(self) -> None:
        """Return once the kubelet has started anew since this link last served or this last returned: serve and
        register again (its start removes all sockets of the folder; compare mtime, inode numbers are reused)."""
        ...


class DialedPlugin(DevicePlugin, Protocol):
    """A plugin over a connection of its own."""

    def is_connected(self) -> bool:
        """Return whether the other side is still there, as far as is known without asking."""
        ...

    async def close(self) -> None:
        """Close the connection: open streams end, on the plugin's side too."""
        ...


class PluginDialer(Protocol):
    """How the kubelet reaches an endpoint of its folder."""

    async def dial(self, endpoint: str) -> DialedPlugin:
        """Return the plugin behind the socket.

        Raises PluginError("DeadlineExceeded", "context deadline exceeded") when nothing answers within ten seconds.
        """
        ...


class ContainerDevices(Struct, frozen=True):
    """Devices of one resource that a container holds."""

    resource: str
    device_ids: tuple[str, ...]
    numa_nodes: tuple[int, ...] = ()


class ClaimDevice(Struct, frozen=True):
    """A device of a claim, and the CDI devices that stand for it. ``share``: which of its shares."""

    driver: str
    pool: str
    device: str
    cdi_ids: tuple[str, ...] = ()
    share: str = ""


class DynamicResource(Struct, frozen=True):
    """A claim that a container uses, with all its devices."""

    claim: str
    namespace: str
    devices: tuple[ClaimDevice, ...] = ()


class PodDevices(Struct, frozen=True):
    """One pod of podresources v1 List: its main containers and sidecars with their devices, one entry per device.
    ``claims``: the claims of those containers that have any."""

    name: str
    namespace: str
    containers: tuple[tuple[str, tuple[ContainerDevices, ...]], ...]
    claims: tuple[tuple[str, tuple[DynamicResource, ...]], ...] = ()


class PodResources(Protocol):
    """podresources v1 of one node's kubelet. Every method may raise PluginError."""

    async def list(self) -> tuple[PodDevices, ...]:
        """List: active pods only, with or without devices."""
        ...

    async def get(self, name: str, namespace: str) -> PodDevices:
        """Get: any pod the kubelet knows."""
        ...

    async def allocatable(self) -> tuple[ContainerDevices, ...]:
        """GetAllocatableResources: all healthy devices, one entry each."""
        ...
