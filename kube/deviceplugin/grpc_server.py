"""gRPC servers on unix sockets, and the services a plugin and a kubelet offer there. Wall clock only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import grpc

from mews.kube.deviceplugin import messages
from mews.kube.deviceplugin.grpc_errors import abort, answering
from mews.kube.deviceplugin.pb import deviceplugin_v1beta1_pb2 as pb
from mews.kube.deviceplugin.pb import podresources_v1_pb2 as resources
from mews.kube.deviceplugin.port import DevicePlugin, PluginError, PodResources
from mews.kube.deviceplugin.sockets import beside, identify, publish, remove_own, url
from mews.listening.rpc import rpc_server, serving

T = TypeVar("T")

_LAST_WORDS_S = 0.05
"""Enough for streams to end in good order when their server stops."""

MOST_CONTAINERS = 16
"""Container requests of one call; kubelets send one."""

Service = tuple[str, Mapping[str, Any]]
"""A service's full name and its method handlers."""


class SocketServer:
    """One gRPC server on one unix socket; made by ``serve_on``. Where the server ends by itself, another takes its
    place on the socket."""

    def __init__(
        self,
        path: Path,
        handlers: Sequence[grpc.GenericRpcHandler],
        options: Sequence[tuple[str, int]],
        closing: asyncio.Event,
    ) -> None:
        self._path = path
        self._handlers = handlers
        self._options = options
        self._closing = closing
        self._server: Any = None
        self._identity = (0, 0)
        self._opening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Serve. Raises OSError."""
        bound = beside(self._path)
        self._server = rpc_server(url(bound), self._handlers, self._options)
        await serving(self._server, self._on_end)
        self._identity = publish(bound, self._path)

    def _on_end(self) -> None:
        if not self._closing.is_set() and identify(self._path) == self._identity:
            self._opening = asyncio.ensure_future(self.open())

    async def close(self, *, leave_socket: bool = False) -> None:
        """Stop; open streams end, other calls are cut off. The socket goes, unless it is to be left as a dead process
        leaves it."""
        self._closing.set()
        if self._opening is not None:
            await self._opening
        if not leave_socket:
            remove_own(self._path, self._identity)
        await self._server.stop(_LAST_WORDS_S)


async def serve_on(path: Path, *services: Service, closing: asyncio.Event | None = None) -> SocketServer:
    """Serve those services on a socket of mode 0755, replacing a leftover; ``closing`` is set when that ends.

    Raises SocketPathTooLongError, or OSError when the folder does not take it.
    """
    handlers = tuple(grpc.method_handlers_generic_handler(name, dict(handlers)) for name, handlers in services)
    return await serve_handlers(path, handlers, closing=closing)


async def serve_handlers(
    path: Path,
    handlers: Sequence[grpc.GenericRpcHandler],
    *,
    options: Sequence[tuple[str, int]] = (),
    closing: asyncio.Event | None = None,
) -> SocketServer:
    """Return the same for whatever answers calls. Raises SocketPathTooLongError, OSError."""
    url(path)
    served = SocketServer(path, handlers, options, closing or asyncio.Event())
    await served.open()
    return served


async def serve_plugin(path: Path, plugin: DevicePlugin) -> SocketServer:
    """Serve ``v1beta1.DevicePlugin``; see ``serve_on``."""
    closing = asyncio.Event()
    return await serve_on(path, plugin_service(plugin, closing), closing=closing)


def plugin_service(plugin: DevicePlugin, closing: asyncio.Event) -> Service:
    """``v1beta1.DevicePlugin`` over our port; its streams end once ``closing`` is set."""

    async def options(_: Any) -> Any:
        return messages.options_message(await plugin.options())

    async def preferred(request: Any) -> Any:
        check_count(request.container_requests)
        answers = [
            await plugin.preferred_allocation(
                tuple(r.available_deviceIDs), tuple(r.must_include_deviceIDs), r.allocation_size
            )
            for r in request.container_requests
        ]
        return pb.PreferredAllocationResponse(
            container_responses=[pb.ContainerPreferredAllocationResponse(deviceIDs=ids) for ids in answers]
        )

    async def allocate(request: Any) -> Any:
        check_count(request.container_requests)
        asked = [tuple(r.devices_ids) for r in request.container_requests]
        return messages.allocate_message(await plugin.allocate(asked))

    async def pre_start(request: Any) -> Any:
        await plugin.pre_start(tuple(request.devices_ids))
        return pb.PreStartContainerResponse()

    async def lists() -> AsyncIterator[Any]:
        async for devices in plugin.list_and_watch():
            yield messages.list_message(devices)

    return "v1beta1.DevicePlugin", {
        "GetDevicePluginOptions": unary(options, pb.Empty),
        "ListAndWatch": streaming(lists, pb.Empty, closing),
        "GetPreferredAllocation": unary(preferred, pb.PreferredAllocationRequest),
        "Allocate": unary(allocate, pb.AllocateRequest),
        "PreStartContainer": unary(pre_start, pb.PreStartContainerRequest),
    }


def check_count(requests: Sequence[Any]) -> None:
    """Raise PluginError for more containers than one call may ask for: each is work for the plugin."""
    if len(requests) > MOST_CONTAINERS:
        raise PluginError(
            "InvalidArgument", f"{len(requests)} container requests: at most {MOST_CONTAINERS} are allowed"
        )


def pod_resources_service(source: PodResources) -> Service:
    """``v1.PodResourcesLister`` over our port."""

    async def list_(_: Any) -> Any:
        pods: Sequence[Any] = [messages.pod_message(pod) for pod in await source.list()]
        return resources.ListPodResourcesResponse(pod_resources=pods)

    async def get(request: Any) -> Any:
        pod = await source.get(request.pod_name, request.pod_namespace)
        return resources.GetPodResourcesResponse(pod_resources=messages.pod_message(pod))

    async def allocatable(_: Any) -> Any:
        devices = [messages.devices_message(d) for d in await source.allocatable()]
        return resources.AllocatableResourcesResponse(devices=devices)

    return "v1.PodResourcesLister", {
        "List": unary(list_, resources.ListPodResourcesRequest),
        "Get": unary(get, resources.GetPodResourcesRequest),
        "GetAllocatableResources": unary(allocatable, resources.AllocatableResourcesRequest),
    }


def unary(method: Any, request: Any) -> Any:
    """Return a method handler: request message -> response message, PluginErrors as the call's status."""
    return grpc.unary_unary_rpc_method_handler(answering(method), request.FromString, _serialize)


def streaming(method: Callable[[], AsyncIterator[Any]], request: Any, closing: asyncio.Event) -> Any:
    """Return a method handler whose answer is the stream of messages, until ``closing`` is set; a PluginError is the
    call's status."""

    async def stream(_: Any, context: Any) -> AsyncIterator[Any]:
        try:
            async for message in _until(closing, method()):
                yield message
        except PluginError as error:
            await abort(context, error)

    return grpc.unary_stream_rpc_method_handler(stream, request.FromString, _serialize)


async def _until(closing: asyncio.Event, stream: AsyncIterator[T]) -> AsyncIterator[T]:
    """Yield the stream's items until it ends, or until ``closing`` is set."""

    async def step() -> T | None:
        return await anext(stream, None)

    while True:
        tasks = asyncio.ensure_future(step()), asyncio.ensure_future(closing.wait())
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            item = tasks[0].result() if tasks[0].done() else None
        finally:
            for task in tasks:
                task.cancel()
        if item is None:
            return
        yield item


def _serialize(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data
