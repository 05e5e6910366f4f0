"""DRA drivers in process: ``plugins_registry`` and the CDI folders of a node without files.

One ``LocalDraNode`` a node outlives kubelets and drivers. A driver that dies leaves its socket, as kill -9 does; one
that ends in good order takes it away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing

from mews.harness.ports.fence import Fenced
from mews.kube.deviceplugin.port import PluginError
from mews.kube.dra.port import CdiSpec, ClaimReference, DeviceHealth, PreparedClaim, ServedPlugin


class LocalDraNode:
    """A DraRegistry for the node's kubelet; ``link`` for its drivers."""

    def __init__(self) -> None:
        self._sockets: dict[str, LocalDraSocket] = {}
        self._specs: dict[str, CdiSpec] = {}
        self._listeners: list[Callable[[], None]] = []

    def sockets(self) -> Mapping[str, LocalDraSocket]:
        """Path -> who serves there."""
        return dict(self._sockets)

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have it called whenever a socket or a connection comes or goes."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def specs(self) -> Sequence[CdiSpec]:
        """Return all specifications, in order of their files."""
        return [self._specs[name] for name in sorted(self._specs)]

    def files(self) -> Mapping[str, CdiSpec]:
        """Return all specifications, by name."""
        return dict(self._specs)

    def write(self, name: str, spec: CdiSpec) -> None:
        """Put a specification there."""
        self._specs[name] = spec

    def remove(self, name: str) -> None:
        """Take it away."""
        self._specs.pop(name, None)

    def link(self) -> LocalDraLink:
        """Return a link for one incarnation of a driver's process."""
        return LocalDraLink(self)

    def put(self, path: str, socket: LocalDraSocket) -> None:
        """A driver serves there, in place of a leftover."""
        self._sockets[path] = socket
        self.changed()

    def take(self, path: str, socket: LocalDraSocket) -> None:
        """That socket is gone."""
        if self._sockets.get(path) is socket:
            del self._sockets[path]
        self.changed()

    def changed(self) -> None:
        """Tell the kubelet."""
        for listener in list(self._listeners):
            listener()


class LocalDraSocket:
    """One endpoint: calls reach the driver for as long as it lives."""

    def __init__(self, driver: str, plugin: ServedPlugin) -> None:
        self.driver = driver
        self._plugin = plugin
        self._gone = asyncio.Event()

    @property
    def connected(self) -> bool:
        """Whether the driver lives."""
        return not self._gone.is_set()

    @property
    def reports_health(self) -> bool:
        """Whether the driver does."""
        return self._plugin.reports_health

    async def watch_health(self) -> AsyncIterator[tuple[DeviceHealth, ...]]:
        """NodeWatchResources, until the driver is gone."""
        async with aclosing(self._plugin.watch_health()) as stream:  # type: ignore[type-var]  # each is a generator
            while True:
                devices = await self._step(stream)
                if devices is None:
                    return
                yield devices

    async def _step(self, stream: AsyncIterator[tuple[DeviceHealth, ...]]) -> tuple[DeviceHealth, ...] | None:
        async def take() -> tuple[DeviceHealth, ...] | None:
            return await anext(stream, None)

        self._check()
        tasks = asyncio.ensure_future(take()), asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            self._check()
            return tasks[0].result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def drop(self) -> None:
        """Nobody answers any more."""
        self._gone.set()

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PreparedClaim]:
        """NodePrepareResources."""
        self._check()
        try:
            return await self._plugin.prepare(claims)
        except Fenced as dead:
            raise _unavailable() from dead

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        """NodeUnprepareResources."""
        self._check()
        try:
            return await self._plugin.unprepare(claims)
        except Fenced as dead:
            raise _unavailable() from dead

    def _check(self) -> None:
        if not self.connected:
            raise _unavailable()


def _unavailable() -> PluginError:
    return PluginError("Unavailable", 'connection error: desc = "transport: Error while dialing: connection refused"')


class _LocalEndpoint:
    def __init__(self, node: LocalDraNode, path: str, socket: LocalDraSocket) -> None:
        self._node = node
        self._path = path
        self.socket = socket

    async def registered(self) -> None:
        """At once: a kubelet that lives knows it by now."""

    async def close(self) -> None:
        """Stop serving in good order: the socket is taken away."""
        self.socket.drop()
        self._node.take(self._path, self.socket)


class LocalDraLink:
    """DraLink of one incarnation of a driver; ``kill`` ends all that it serves."""

    def __init__(self, node: LocalDraNode) -> None:
        self._node = node
        self._served: list[_LocalEndpoint] = []

    @property
    def cdi(self) -> LocalDraNode:
        """The node's CDI folder."""
        return self._node

    async def serve(self, driver: str, plugin: ServedPlugin) -> _LocalEndpoint:
        """Serve on the driver's socket."""
        path = f"{driver}-reg.sock"
        endpoint = _LocalEndpoint(self._node, path, LocalDraSocket(driver, plugin))
        self._served.append(endpoint)
        self._node.put(path, endpoint.socket)
        return endpoint

    def kill(self) -> None:
        """The process is gone: nobody answers, and the socket's file stays."""
        for endpoint in self._served:
            endpoint.socket.drop()
        self._node.changed()
