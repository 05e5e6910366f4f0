"""Device plugins and podresources in process: a kubelet's folder without sockets.

One ``LocalKubeletFolder`` a node outlives kubelets and plugins, as the folder does. Streams end, and calls under way
fail as over a socket, when an endpoint is closed, or its plugin or the kubelet dies (contract kubelet.md sections
1, 4, 8).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from mews.harness.ports.fence import Fenced
from mews.kube.deviceplugin.port import (
    Allocation,
    ContainerDevices,
    DevicePlugin,
    DialedPlugin,
    PluginDevice,
    PluginError,
    PluginOptions,
    PodDevices,
    PodResources,
)
from mews.kube.emulated.kubelet.devices.folder import Registrar

DIAL_DEADLINE_S = 10.0

T = TypeVar("T")

_log = logging.getLogger(__name__)


class LocalKubeletFolder:
    """The device-plugins folder of one node: a KubeletFolder for its kubelet, links for its plugins."""

    def __init__(self) -> None:
        self._sockets: dict[str, LocalEndpoint] = {}
        self._open: dict[LocalConnection, None] = {}
        self._registrar: Registrar | None = None
        self._pod_resources: PodResources | None = None
        self._starts = 0
        self._waiters: list[asyncio.Future[None]] = []

    # The kubelet's side.

    async def start(self, registrar: Registrar, pod_resources: PodResources) -> None:
        """The kubelet has started: all sockets of the folder are forgotten, ``kubelet.sock`` is new."""
        self._sockets.clear()
        self._registrar, self._pod_resources = registrar, pod_resources
        self._starts += 1
        self._changed()

    async def stop(self) -> None:
        """The kubelet has ended, in whatever way: nobody answers on its sockets, its connections are closed."""
        self._registrar = self._pod_resources = None
        for connection in list(self._open):
            connection.cut()

    async def dial(self, endpoint: str) -> DialedPlugin:
        """Return a connection to the plugin behind that name.

        Raises PluginError("DeadlineExceeded", …) after ten seconds without one.
        """
        try:
            async with asyncio.timeout(DIAL_DEADLINE_S):
                while endpoint not in self._sockets:
                    await self._change()
        except TimeoutError as error:
            raise PluginError("DeadlineExceeded", "context deadline exceeded") from error
        connection = LocalConnection(self, self._sockets[endpoint])
        self._open[connection] = None
        return connection

    # The plugins' side.

    def link(self) -> LocalLink:
        """Return a link for one incarnation of a plugin process."""
        return LocalLink(self)

    def pod_resources(self) -> LocalPodResources:
        """podresources of whichever kubelet runs at the time of a call."""
        return LocalPodResources(self)

    def drop(self, endpoint: str) -> None:
        """Whoever serves that name dies."""
        served = self._sockets.get(endpoint)
        if served is not None:
            served.drop()

    # For the classes below.

    @property
    def starts(self) -> int:
        """How often a kubelet has started here."""
        return self._starts

    def registrar(self) -> Registrar:
        """Return the kubelet that runs. Raises PluginError while there is none."""
        if self._registrar is None:
            raise _unavailable("connection error: kubelet.sock: connect: connection refused")
        return self._registrar

    def pod_resources_now(self) -> PodResources:
        """podresources of the kubelet that runs. Raises PluginError while there is none."""
        if self._pod_resources is None:
            raise _unavailable("connection error: kubelet.sock: connect: connection refused")
        return self._pod_resources

    def put(self, name: str, endpoint: LocalEndpoint) -> None:
        """A plugin serves on that name, replacing a leftover."""
        self._sockets[name] = endpoint
        self._changed()

    def remove(self, name: str, endpoint: LocalEndpoint) -> None:
        """That endpoint is not served any more."""
        if self._sockets.get(name) is endpoint:
            del self._sockets[name]

    def closed(self, connection: LocalConnection) -> None:
        """The kubelet has closed its connection."""
        self._open.pop(connection, None)

    async def started_after(self, starts: int) -> None:
        """Wait for a start of the kubelet after that many."""
        while self._starts <= starts:
            await self._change()

    async def _change(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            with contextlib.suppress(ValueError):
                self._waiters.remove(waiter)

    def _changed(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class LocalLink:
    """DevicePluginLink of one incarnation of a plugin; ``kill`` ends all that it serves."""

    def __init__(self, folder: LocalKubeletFolder) -> None:
        self._folder = folder
        self._seen = folder.starts
        self._served: list[LocalEndpoint] = []

    async def serve(self, endpoint: str, plugin: DevicePlugin) -> LocalEndpoint:
        """Serve the plugin on that name, replacing a leftover."""
        self._seen = self._folder.starts
        served = LocalEndpoint(self._folder, endpoint, plugin)
        self._served.append(served)
        self._folder.put(endpoint, served)
        return served

    async def register(self, endpoint: str, resource: str, options: PluginOptions) -> None:
        """Registration/Register. Raises PluginError."""
        await self._folder.registrar().register(endpoint, resource, options)

    async def kubelet_restarted(self) -> None:
        """Return once the kubelet has started since this link last served or this last returned."""
        await self._folder.started_after(self._seen)
        self._seen = self._folder.starts

    def kill(self) -> None:
        """The plugin's process dies: its streams end, calls under way fail."""
        for endpoint in self._served:
            endpoint.drop()
        self._served.clear()


class LocalEndpoint:
    """A plugin being served in process."""

    def __init__(self, folder: LocalKubeletFolder, name: str, plugin: DevicePlugin) -> None:
        self._folder = folder
        self._name = name
        self.plugin = plugin
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        """Stop serving; open streams end."""
        self.drop()

    def drop(self) -> None:
        """End at once, without a word."""
        self._folder.remove(self._name, self)
        if not self.gone.done():
            self.gone.set_result(None)


class LocalConnection:
    """The kubelet's connection to one endpoint: a DialedPlugin."""

    def __init__(self, folder: LocalKubeletFolder, endpoint: LocalEndpoint) -> None:
        self._folder = folder
        self._endpoint = endpoint
        self._cut: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def is_connected(self) -> bool:
        """Return whether both sides are still there."""
        return not self._endpoint.gone.done() and not self._cut.done()

    def cut(self) -> None:
        """The kubelet is gone: whatever runs over this connection ends."""
        if not self._cut.done():
            self._cut.set_result(None)
        self._folder.closed(self)

    async def close(self) -> None:
        """Close the connection."""
        self.cut()

    async def options(self) -> PluginOptions:
        """GetDevicePluginOptions."""
        return await self._call(self._endpoint.plugin.options)

    async def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        """ListAndWatch."""
        stream = aiter(self._endpoint.plugin.list_and_watch())

        async def step() -> tuple[PluginDevice, ...] | None:
            return await anext(stream, None)

        while (devices := await self._call(step)) is not None:
            yield devices

    async def preferred_allocation(
        self, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        """GetPreferredAllocation."""
        return await self._call(lambda: self._endpoint.plugin.preferred_allocation(available, must_include, size))

    async def allocate(self, requests: Sequence[Sequence[str]]) -> tuple[Allocation, ...]:
        """Allocate."""
        return await self._call(lambda: self._endpoint.plugin.allocate(requests))

    async def pre_start(self, devices: Sequence[str]) -> None:
        """PreStartContainer."""
        return await self._call(lambda: self._endpoint.plugin.pre_start(devices))

    async def _call(self, method: Callable[[], Awaitable[T]]) -> T:
        """Return one step of the plugin, unless either side goes first."""
        if not self.is_connected():
            raise _unavailable("error reading from server: EOF")
        task = asyncio.get_running_loop().create_task(_answer(method))
        try:
            await asyncio.wait((task, self._endpoint.gone, self._cut), return_when=asyncio.FIRST_COMPLETED)
            if task.done() and not task.cancelled():
                return task.result()
            raise _unavailable("error reading from server: EOF")
        finally:
            task.cancel()


class LocalPodResources:
    """PodResources of the kubelet that runs at the time of each call."""

    def __init__(self, folder: LocalKubeletFolder) -> None:
        self._folder = folder

    async def list(self) -> tuple[PodDevices, ...]:
        """List. Raises PluginError."""
        return await self._folder.pod_resources_now().list()

    async def get(self, name: str, namespace: str) -> PodDevices:
        """Get. Raises PluginError."""
        return await self._folder.pod_resources_now().get(name, namespace)

    async def allocatable(self) -> tuple[ContainerDevices, ...]:
        """GetAllocatableResources. Raises PluginError."""
        return await self._folder.pod_resources_now().allocatable()


async def _answer(method: Callable[[], Awaitable[T]]) -> T:
    """Return the plugin's server: its own outermost loop. What a bug raises goes over the wire as an unknown error."""
    try:
        return await method()
    except PluginError:
        raise
    except Fenced as error:
        raise _unavailable("error reading from server: EOF") from error
    except Exception as error:
        _log.exception("device plugin")
        raise PluginError("Unknown", f"Unexpected {type(error)}: {error}") from error


def _unavailable(desc: str) -> PluginError:
    return PluginError("Unavailable", desc)
