"""gRPC clients on unix sockets: a dialed plugin, Registration and podresources. Wall clock only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc

from mews.kube.deviceplugin import messages
from mews.kube.deviceplugin.grpc_errors import from_rpc, outcome, started
from mews.kube.deviceplugin.pb import deviceplugin_v1beta1_pb2 as pb
from mews.kube.deviceplugin.pb import podresources_v1_pb2 as resources
from mews.kube.deviceplugin.port import (
    Allocation,
    ContainerDevices,
    PluginDevice,
    PluginOptions,
    PodDevices,
)
from mews.kube.deviceplugin.sockets import url

PRE_START_DEADLINE_S = 30.0

_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),  # a new plugin on an old path is not held up by its predecessor's back-off
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
    ("grpc.enable_http_proxy", 0),
)


def channel_to(path: Path) -> grpc.aio.Channel:
    """Return a channel to the socket; connects when it is used.

    Raises SocketPathTooLongError.
    """
    return grpc.aio.insecure_channel(url(path), options=_OPTIONS)


class GrpcPlugin:
    """A DialedPlugin over a channel of its own."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    def is_connected(self) -> bool:
        """Return whether the connection stands; gRPC hears of its end before the calls over it do."""
        return self._channel.get_state() is grpc.ChannelConnectivity.READY

    async def options(self) -> PluginOptions:
        """Call GetDevicePluginOptions."""
        return messages.options_value(await self._call("GetDevicePluginOptions", pb.Empty(), pb.DevicePluginOptions))

    async def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        """ListAndWatch; ends when the plugin ends it."""
        method = self._channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch",
            request_serializer=pb.Empty.SerializeToString,
            response_deserializer=pb.ListAndWatchResponse.FromString,
        )
        call = started(method, pb.Empty())
        try:
            async for message in call:
                yield messages.list_value(message)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from error
        finally:
            call.cancel()

    async def preferred_allocation(
        self, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        """GetPreferredAllocation for one container; () when the plugin answers for none."""
        request = messages.preferred_request(available, must_include, size)
        answer = await self._call("GetPreferredAllocation", request, pb.PreferredAllocationResponse)
        return tuple(answer.container_responses[0].deviceIDs) if answer.container_responses else ()

    async def allocate(self, requests: Sequence[Sequence[str]]) -> tuple[Allocation, ...]:
        """Call Allocate for one container."""
        answer = await self._call("Allocate", messages.allocate_request(requests), pb.AllocateResponse)
        return messages.allocate_value(answer)

    async def pre_start(self, devices: Sequence[str]) -> None:
        """PreStartContainer: the one call with a deadline, which the plugin is told."""
        request = pb.PreStartContainerRequest(devices_ids=devices)
        await self._call("PreStartContainer", request, pb.PreStartContainerResponse, timeout_s=PRE_START_DEADLINE_S)

    async def close(self) -> None:
        """Close the connection; open streams end on both sides."""
        await self._channel.close(None)

    async def _call(self, method: str, request: Any, response: Any, *, timeout_s: float | None = None) -> Any:
        path = f"/v1beta1.DevicePlugin/{method}"
        return await unary_call(self._channel, path, request, response, timeout_s=timeout_s)


class GrpcPodResources:
    """PodResources of the kubelet behind a socket (``<pod-resources folder>/kubelet.sock``).

    Connects when it is used; make and close it inside one running loop.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: grpc.aio.Channel | None = None

    async def list(self) -> tuple[PodDevices, ...]:
        """Call List of the pod-resources service. Raises PluginError."""
        answer = await self._call("List", resources.ListPodResourcesRequest(), resources.ListPodResourcesResponse)
        return tuple(messages.pod_value(pod) for pod in answer.pod_resources)

    async def get(self, name: str, namespace: str) -> PodDevices:
        """Call Get of the pod-resources service. Raises PluginError."""
        request = resources.GetPodResourcesRequest(pod_name=name, pod_namespace=namespace)
        answer = await self._call("Get", request, resources.GetPodResourcesResponse)
        return messages.pod_value(answer.pod_resources)

    async def allocatable(self) -> tuple[ContainerDevices, ...]:
        """Call GetAllocatableResources. Raises PluginError."""
        request = resources.AllocatableResourcesRequest()
        answer = await self._call("GetAllocatableResources", request, resources.AllocatableResourcesResponse)
        return tuple(messages.devices_value(devices) for devices in answer.devices)

    async def close(self) -> None:
        """Close the connection."""
        if self._open is not None:
            await self._open.close(None)
            self._open = None

    async def _call(self, method: str, request: Any, response: Any) -> Any:
        if self._open is None:
            self._open = channel_to(self._path)
        return await unary_call(self._open, f"/v1.PodResourcesLister/{method}", request, response)


async def register(folder: Path, endpoint: str, resource: str, options: PluginOptions) -> None:
    """Registration/Register on the folder's ``kubelet.sock``.

    Raises PluginError.
    """
    channel = channel_to(folder / "kubelet.sock")
    try:
        request = messages.register_request(endpoint, resource, options)
        await unary_call(channel, "/v1beta1.Registration/Register", request, pb.Empty)
    finally:
        await channel.close(None)


async def unary_call(
    channel: grpc.aio.Channel, method: str, request: Any, response: Any, *, timeout_s: float | None = None
) -> Any:
    """Return one call, without a deadline unless one is given.

    Raises PluginError.
    """
    call = channel.unary_unary(
        method, request_serializer=type(request).SerializeToString, response_deserializer=response.FromString
    )
    return await outcome(started(call, request, timeout_s))
