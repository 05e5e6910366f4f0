"""Drivers on unix sockets: ``plugins_registry``, pluginregistration v1, dra v1 and v1beta1. Wall clock only.

Source: pkg/kubelet/pluginmanager and pkg/kubelet/cm/dra/plugin of Kubernetes 1.34.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import yaml

from mews.kube.clock import rest
from mews.kube.deviceplugin.errors import SocketPathTooLongError
from mews.kube.deviceplugin.grpc_client import channel_to, unary_call
from mews.kube.deviceplugin.grpc_errors import from_rpc, started
from mews.kube.deviceplugin.pb import dra_health_v1_pb2 as health_pb
from mews.kube.deviceplugin.pb import dra_v1_pb2 as pb
from mews.kube.deviceplugin.port import PluginError
from mews.kube.deviceplugin.sockets import LIMIT_BYTES, identify
from mews.kube.dra.messages import (
    HEALTH_SERVICES,
    PLUGIN_TYPE,
    SERVICES,
    claim_message,
    health_value,
    prepared_value,
    unprepared_value,
)
from mews.kube.dra.port import CdiSpec, ClaimReference, DeviceHealth, DraSocket, PreparedClaim
from mews.kube.emulated.kubelet.node_folders import placed
from mews.kube.emulated.kubelet.oci.cdi import CdiError, parse_spec
from mews.yaml_text import check_extent

_SCAN_S = 0.5
_DIAL_S, _INFO_S, _NOTIFY_S = 10.0, 1.0, 5.0
_FIRST_BACKOFF_S, _LAST_BACKOFF_S = 0.5, 122.0


class _RefusedError(Exception):
    """The kubelet does not take a plugin; the text is what it is told."""


class GrpcDraSocket:
    """A DraSocket over a channel of its own."""

    def __init__(self, driver: str, service: str, channel: grpc.aio.Channel, health: str = "") -> None:
        self.driver = driver
        self.channel = channel
        self._service = service
        self._health = health

    @property
    def connected(self) -> bool:
        """Whether the connection stands."""
        return self.channel.get_state() is grpc.ChannelConnectivity.READY

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PreparedClaim]:
        """NodePrepareResources."""
        request = pb.NodePrepareResourcesRequest(claims=list(map(claim_message, claims)))
        return prepared_value(await self._call("NodePrepareResources", request, pb.NodePrepareResourcesResponse))

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        """NodeUnprepareResources."""
        request = pb.NodeUnprepareResourcesRequest(claims=list(map(claim_message, claims)))
        return unprepared_value(await self._call("NodeUnprepareResources", request, pb.NodeUnprepareResourcesResponse))

    @property
    def reports_health(self) -> bool:
        """Whether the driver said so when it registered."""
        return bool(self._health)

    async def watch_health(self) -> AsyncIterator[tuple[DeviceHealth, ...]]:
        """NodeWatchResources."""
        method = self.channel.unary_stream(
            f"/{self._health}/NodeWatchResources",
            request_serializer=health_pb.NodeWatchResourcesRequest.SerializeToString,
            response_deserializer=health_pb.NodeWatchResourcesResponse.FromString,
        )
        call = started(method, health_pb.NodeWatchResourcesRequest())
        try:
            async for message in call:
                yield health_value(message)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from error
        finally:
            call.cancel()

    async def _call(self, method: str, request: Any, response: Any) -> Any:
        return await unary_call(self.channel, f"/{self._service}/{method}", request, response)


class GrpcDraRegistry:
    """A DraRegistry: a folder of sockets, and those of CDI files. Sockets are looked for while a kubelet listens; the
    next kubelet registers all anew."""

    def __init__(self, registry: Path, cdi: Sequence[Path]) -> None:
        self.registry = registry
        self.cdi = cdi
        self._sockets: dict[str, GrpcDraSocket] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._listeners: list[Callable[[], None]] = []
        self._scan: asyncio.Task[None] | None = None

    def sockets(self) -> Mapping[str, DraSocket]:
        """Path -> who serves there, of those that said who they are."""
        return dict(self._sockets)

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have it called whenever a socket or a connection comes or goes."""
        for folder in (self.registry, *self.cdi):
            folder.mkdir(parents=True, exist_ok=True)
        self._listeners.append(changed)
        if self._scan is None:
            self._scan = asyncio.get_running_loop().create_task(self._scan_on())

        def unlisten() -> None:
            self._listeners.remove(changed)
            if not self._listeners and self._scan is not None:
                self._scan.cancel()
                self._scan = None
                for path in list(self._seen):
                    self._drop(path)

        return unlisten

    def specs(self) -> Sequence[CdiSpec]:
        """Return all specifications that can be read, in order of folders and names."""
        return list(self._specs())

    def _specs(self) -> Iterator[CdiSpec]:
        for folder in self.cdi:
            for path in sorted(folder.glob("*")):
                if path.suffix in (".json", ".yaml"):
                    with contextlib.suppress(OSError, ValueError, yaml.YAMLError, CdiError):
                        text = path.read_text(encoding="utf-8")
                        check_extent(text)
                        parse_spec(text, str(path))
                        found = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
                        if isinstance(found, dict) and "kind" in found:
                            yield found

    # ------------------------------------------------------------------------------------------------------- the folder

    async def _scan_on(self) -> None:
        while True:
            there = dict(self._there())
            for path in [path for path, identity in self._seen.items() if there.get(path) != identity]:
                self._drop(path)
            for path, identity in there.items():
                if path not in self._seen:
                    self._seen[path] = identity
                    self._tasks[path] = asyncio.get_running_loop().create_task(self._register(path))
            await rest(_SCAN_S)

    def _there(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for path in sorted(self.registry.rglob("*")):
            identity = identify(path) if not path.name.startswith(".") else None
            if identity is not None:
                yield str(path), identity

    def _drop(self, path: str) -> None:
        del self._seen[path]
        task = self._tasks.pop(path, None)
        if task is not None:
            task.cancel()
        if self._sockets.pop(path, None) is not None:
            self._notify()

    def _notify(self) -> None:
        for listener in list(self._listeners):
            listener()

    async def _register(self, path: str) -> None:
        """Until the socket is gone: ask who serves, tell it the outcome, and follow the connection."""
        backoff_s = _FIRST_BACKOFF_S
        while True:
            try:
                await self._registered(path)
            except (PluginError, SocketPathTooLongError, TimeoutError, _RefusedError, OSError):
                await rest(backoff_s)
                backoff_s = min(2 * backoff_s, _LAST_BACKOFF_S)

    async def _registered(self, path: str) -> None:
        registration = _channel(Path(path))
        try:
            async with asyncio.timeout(_DIAL_S):
                await registration.channel_ready()
            info = await unary_call(
                registration, "/pluginregistration.Registration/GetInfo", pb.InfoRequest(), pb.PluginInfo,
                timeout_s=_INFO_S,
            )  # fmt: skip
            try:
                service = self._judged(path, info)
            except _RefusedError as refused:
                await _notify_plugin(registration, f"RegisterPlugin error -- {refused}")
                raise
            health = next((each for each in HEALTH_SERVICES if each in info.supported_versions), "")
            channel = _channel(self._placed(str(info.endpoint or path)))
            socket = GrpcDraSocket(str(info.name), service, channel, health)
            try:
                await _notify_plugin(registration, "")
                await self._follow(path, socket)
            finally:
                await socket.channel.close(None)
        finally:
            await registration.close(None)

    def _placed(self, endpoint: str) -> Path:
        """A driver in a pod names its socket as its pod finds it: below the kubelet's root."""
        return placed(self.registry.parent, endpoint) or Path(endpoint)

    def _judged(self, path: str, info: Any) -> str:
        """Return the service that is to be called: the first of the plugin's order that is known.

        Raises _RefusedError.
        """
        if info.type != PLUGIN_TYPE:
            raise _RefusedError(f"no handler registered for plugin type: {info.type} at socket {path}")
        supported = list(info.supported_versions)
        known = next((SERVICES[each] for each in supported if each in SERVICES), None)
        if known is not None:
            return known
        why = "empty list of supported gRPC services (aka supported versions)"
        if supported:
            listed, ours = " ".join(supported), " ".join(SERVICES)
            why = f"none of services supported by the plugin ([{listed}]) are supported by the kubelet ([{ours}])"
        raise _RefusedError(
            f"plugin validation failed with err: invalid supported gRPC versions of DRA driver plugin {info.name} "
            f"at endpoint {info.endpoint}: {why}"
        )

    async def _follow(self, path: str, socket: GrpcDraSocket) -> None:
        """Keep the connection up, and notify when it comes or goes; never returns."""
        self._sockets[path] = socket
        while True:
            state = socket.channel.get_state(try_to_connect=True)
            self._notify()
            await socket.channel.wait_for_state_change(state)


def _channel(path: Path) -> grpc.aio.Channel:
    """To that socket; by its folder's descriptor where its path is longer than sockets' may be: a driver that is
    updated while it runs has names of 60 bytes (d/kubeletplugin, RollingUpdate).

    Raises SocketPathTooLongError, OSError.
    """
    if len(os.fsencode(path)) <= LIMIT_BYTES:
        return channel_to(path)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        channel = channel_to(Path(f"/proc/self/fd/{folder}/{path.name}"))
    except SocketPathTooLongError:
        os.close(folder)
        raise
    weakref.finalize(channel, os.close, folder)
    return channel


async def _notify_plugin(registration: grpc.aio.Channel, error: str) -> None:
    status = pb.RegistrationStatus(plugin_registered=not error, error=error)
    method = "/pluginregistration.Registration/NotifyRegistrationStatus"
    await unary_call(registration, method, status, pb.RegistrationStatusResponse, timeout_s=_NOTIFY_S)
