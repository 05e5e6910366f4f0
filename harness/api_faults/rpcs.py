"""RPCs that a node's kubelet makes and serves, and requests that components answer, paused as a fault."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

from mews.harness.api_faults.bounds import RECOVERY_S
from mews.harness.api_faults.plans import ApiRequest, RequestPlan
from mews.kube.deviceplugin.port import (
    Allocation,
    ContainerDevices,
    DialedPlugin,
    PluginDevice,
    PluginOptions,
    PodDevices,
    PodResources,
)
from mews.kube.dra.port import CdiSpec, ClaimReference, DeviceHealth, DraRegistry, DraSocket, PreparedClaim
from mews.kube.emulated.kubelet.devices.folder import KubeletFolder, Registrar
from mews.kube.system.services import HttpHandler, ServicePort, ServiceReply

T = TypeVar("T")

OF_PLUGINS = ("GetDevicePluginOptions", "ListAndWatch", "GetPreferredAllocation", "Allocate", "PreStartContainer")
OF_DRIVERS = ("NodePrepareResources", "NodeUnprepareResources", "NodeWatchResources")
OF_POD_RESOURCES = ("List", "Get", "GetAllocatableResources")
OF_SERVICES = ("HTTP",)
OF_KUBELETS = (*OF_PLUGINS, *OF_DRIVERS, *OF_POD_RESOURCES)
RPCS = (*OF_KUBELETS, *OF_SERVICES)
"""By their names in k8s.io/kubelet's APIs; ``HTTP`` is a request to a scheduler extender or a webhook."""


@dataclass(frozen=True, slots=True)
class PausedRpc:
    """RPCs are not answered until the fault ends; then they go on. Of a kubelet: its calls to device plugins and DRA
    drivers, and calls to its podresources. Of an extender or a webhook: the requests to it."""

    kind: ClassVar[str] = "paused-rpc"
    on: ClassVar[tuple[str, ...]] = RPCS
    count: ClassVar[int | None] = None
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = RECOVERY_S

    def strike(self, request: ApiRequest) -> RequestPlan:
        """Hold it as long as the fault is there."""
        return RequestPlan(hold_s=float("inf"))


class RpcHolder(Protocol):
    """Decides whether RPCs and requests are held back: ``mews.harness.api_faults.control.ApiFaults``."""

    def strikes(self, component: str) -> bool:
        """Return whether any fault is in place there."""
        ...

    def on_request(self, component: str, request: ApiRequest) -> RequestPlan:
        """Return what becomes of a request."""
        ...

    async def hold(self, component: str, request: ApiRequest, hold_s: float) -> None:
        """Hold a request so long."""
        ...


class RpcGate:
    """Where the RPCs of one component pass."""

    def __init__(self, faults: RpcHolder, component: str) -> None:
        self._faults = faults
        self._component = component

    async def wait(self, rpc: str, peer: str) -> None:
        """Return once that RPC with that peer (an endpoint, a driver, a service) may go on."""
        if not self._faults.strikes(self._component):
            return
        request = ApiRequest(rpc, peer)
        plan = self._faults.on_request(self._component, request)
        if plan.hold_s:
            await self._faults.hold(self._component, request, plan.hold_s)

    async def call(self, rpc: str, peer: str, method: Callable[[], Awaitable[T]]) -> T:
        """Make a call: its request waits, and so does its answer where the pause began meanwhile."""
        await self.wait(rpc, peer)
        answer = await method()
        await self.wait(rpc, peer)
        return answer


class PausablePlugin:
    """A DialedPlugin whose RPCs pass a gate."""

    def __init__(self, plugin: DialedPlugin, gate: RpcGate, endpoint: str) -> None:
        self._plugin, self._gate, self._endpoint = plugin, gate, endpoint

    def is_connected(self) -> bool:
        """Return whether the other side is still there."""
        return self._plugin.is_connected()

    async def close(self) -> None:
        """Close the connection."""
        await self._plugin.close()

    async def options(self) -> PluginOptions:
        """GetDevicePluginOptions."""
        return await self._gate.call("GetDevicePluginOptions", self._endpoint, self._plugin.options)

    async def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        """ListAndWatch: each list waits."""
        async with aclosing(self._plugin.list_and_watch()) as lists:  # type: ignore[type-var]  # each is a generator
            async for devices in lists:
                await self._gate.wait("ListAndWatch", self._endpoint)
                yield devices

    async def preferred_allocation(
        self, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        """GetPreferredAllocation."""
        return await self._gate.call(
            "GetPreferredAllocation",
            self._endpoint,
            lambda: self._plugin.preferred_allocation(available, must_include, size),
        )

    async def allocate(self, requests: Sequence[Sequence[str]]) -> tuple[Allocation, ...]:
        """Allocate."""
        return await self._gate.call("Allocate", self._endpoint, lambda: self._plugin.allocate(requests))

    async def pre_start(self, devices: Sequence[str]) -> None:
        """PreStartContainer."""
        await self._gate.call("PreStartContainer", self._endpoint, lambda: self._plugin.pre_start(devices))


class PausableFolder:
    """A KubeletFolder of one node whose kubelet's RPCs pass a gate. ``unpaused``: podresources of the kubelet that
    runs, for who must not wait; None without one."""

    def __init__(self, folder: KubeletFolder, gate: RpcGate) -> None:
        self._folder, self._gate = folder, gate
        self.unpaused: PodResources | None = None

    async def start(self, registrar: Registrar, pod_resources: PodResources) -> None:
        """As the folder has it."""
        self.unpaused = pod_resources
        await self._folder.start(registrar, PausablePodResources(pod_resources, self._gate))

    async def stop(self) -> None:
        """As the folder has it."""
        self.unpaused = None
        await self._folder.stop()

    async def dial(self, endpoint: str) -> PausablePlugin:
        """Return the plugin behind the socket."""
        return PausablePlugin(await self._folder.dial(endpoint), self._gate, endpoint)


class PausablePodResources:
    """A PodResources whose RPCs pass a gate."""

    def __init__(self, resources: PodResources, gate: RpcGate) -> None:
        self._resources, self._gate = resources, gate

    async def list(self) -> tuple[PodDevices, ...]:
        """List."""
        return await self._gate.call("List", "podresources", self._resources.list)

    async def get(self, name: str, namespace: str) -> PodDevices:
        """Get."""
        return await self._gate.call("Get", "podresources", lambda: self._resources.get(name, namespace))

    async def allocatable(self) -> tuple[ContainerDevices, ...]:
        """GetAllocatableResources."""
        return await self._gate.call("GetAllocatableResources", "podresources", self._resources.allocatable)


class PausableSocket:
    """A DraSocket whose RPCs pass a gate."""

    def __init__(self, socket: DraSocket, gate: RpcGate) -> None:
        self._socket, self._gate = socket, gate

    @property
    def driver(self) -> str:
        """The driver's name."""
        return self._socket.driver

    @property
    def connected(self) -> bool:
        """Whether the other side is there."""
        return self._socket.connected

    @property
    def reports_health(self) -> bool:
        """Whether ``watch_health`` may be called."""
        return self._socket.reports_health

    async def watch_health(self) -> AsyncIterator[tuple[DeviceHealth, ...]]:
        """NodeWatchResources: each report waits."""
        async with aclosing(self._socket.watch_health()) as reports:  # type: ignore[type-var]  # each is a generator
            async for devices in reports:
                await self._gate.wait("NodeWatchResources", self.driver)
                yield devices

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PreparedClaim]:
        """NodePrepareResources."""
        return await self._gate.call("NodePrepareResources", self.driver, lambda: self._socket.prepare(claims))

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        """NodeUnprepareResources."""
        return await self._gate.call("NodeUnprepareResources", self.driver, lambda: self._socket.unprepare(claims))


class PausableRegistry:
    """A DraRegistry whose drivers' RPCs pass a gate. A driver keeps its socket as long as it is the same one."""

    def __init__(self, registry: DraRegistry, gate: RpcGate) -> None:
        self._registry, self._gate = registry, gate
        self._known: dict[str, tuple[DraSocket, PausableSocket]] = {}

    def sockets(self) -> Mapping[str, PausableSocket]:
        """Path -> who serves there."""
        there = self._registry.sockets()
        known = self._known
        self._known = {
            path: known[path]
            if path in known and known[path][0] is socket
            else (socket, PausableSocket(socket, self._gate))
            for path, socket in there.items()
        }
        return {path: paused for path, (_, paused) in self._known.items()}

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Return it as the registry has it."""
        return self._registry.listen(changed)

    def specs(self) -> Sequence[CdiSpec]:
        """Return them as the registry has them."""
        return self._registry.specs()


class PausableService:
    """A ServicePort of one component whose requests pass a gate."""

    def __init__(self, port: ServicePort, gate: RpcGate, service: str) -> None:
        self._port, self._gate, self._service = port, gate, service

    async def serve(self, handler: HttpHandler) -> None:
        """Answer requests with it until cancelled."""

        async def answer(method: str, path: str, body: bytes) -> ServiceReply:
            return await self._gate.call("HTTP", self._service, lambda: handler(method, path, body))

        await self._port.serve(answer)

    async def reached(self) -> None:
        """As the port has it."""
        await self._port.reached()

    async def superseded(self) -> None:
        """As the port has it."""
        await self._port.superseded()

    def renew(self) -> None:
        """As the port has it."""
        self._port.renew()

    def client_config(self, namespace: str, path: str) -> dict[str, object]:
        """Return them as the port has it."""
        return self._port.client_config(namespace, path)
