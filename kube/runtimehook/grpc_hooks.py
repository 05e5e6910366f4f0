"""``runtime.v1alpha1.RuntimeHookService`` on a unix socket, both sides. Wall clock only.

The hooks of sandboxes, and those after a start or a stop, are answered with nothing, as by an agent that has no plugin
for them: they concern no devices.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import grpc

from mews.kube.deviceplugin.grpc_client import channel_to
from mews.kube.deviceplugin.grpc_errors import from_rpc, outcome, started
from mews.kube.deviceplugin.grpc_server import Service, SocketServer, serve_on, unary
from mews.kube.deviceplugin.pb import runtimehook_v1alpha1_pb2 as pb
from mews.kube.deviceplugin.port import DeviceNode, Mount, PluginError
from mews.kube.runtimehook.port import HookedContainer, HookError, HookRequest, RunningEnvironment, RuntimeHooks
from mews.kube.runtimehook.runtime import ContainerRuntime

SERVICE = "runtime.v1alpha1.RuntimeHookService"
DEADLINE_S = 30.0
_SILENT_OF_PODS = ("PreRunPodSandboxHook", "PostStopPodSandboxHook")
_SILENT_OF_CONTAINERS = ("PreStartContainerHook", "PostStartContainerHook", "PostStopContainerHook")


def request_message(request: HookRequest) -> Any:
    """Build a ContainerResourceHookRequest."""
    return pb.ContainerResourceHookRequest(
        pod_meta=pb.PodSandboxMetadata(name=request.pod, uid=request.pod_uid, namespace=request.namespace),
        container_meta=pb.ContainerMetadata(name=request.container, attempt=request.attempt),
        pod_annotations=dict(request.pod_annotations),
        pod_labels=dict(request.pod_labels),
        **_fields(request.asked),
    )


def request_value(message: Any) -> HookRequest:
    """Read a ContainerResourceHookRequest."""
    return HookRequest(
        namespace=message.pod_meta.namespace,
        pod=message.pod_meta.name,
        pod_uid=message.pod_meta.uid,
        container=message.container_meta.name,
        attempt=message.container_meta.attempt,
        pod_annotations=dict(message.pod_annotations),
        pod_labels=dict(message.pod_labels),
        asked=_container(message),
    )


def response_message(answer: HookedContainer) -> Any:
    """Build a ContainerResourceHookResponse."""
    return pb.ContainerResourceHookResponse(covers_all=True, **_fields(answer))


def response_value(message: Any, asked: HookedContainer) -> HookedContainer:
    """Return what a container becomes by a ContainerResourceHookResponse: what the published fields leave unsaid stays,
    and so does the rest of an agent that does not know our fields."""
    answer = _container(message)
    env, annotations = answer.env or asked.env, answer.annotations or asked.annotations
    if not message.covers_all:
        return HookedContainer(env, asked.args, asked.mounts, asked.devices, annotations, asked.cdi_devices)
    return HookedContainer(env, answer.args, answer.mounts, answer.devices, annotations, answer.cdi_devices)


def _fields(container: HookedContainer) -> dict[str, Any]:
    return {
        "container_envs": dict(container.env),
        "container_annotations": dict(container.annotations),
        "container_args": container.args,
        "container_mounts": [
            pb.HookMount(container_path=m.container_path, host_path=m.host_path, readonly=m.read_only)
            for m in container.mounts
        ],
        "container_devices": [
            pb.HookDevice(container_path=d.container_path, host_path=d.host_path, permissions=d.permissions)
            for d in container.devices
        ],
        "container_cdi_devices": container.cdi_devices,
    }


def _container(message: Any) -> HookedContainer:
    return HookedContainer(
        env=dict(message.container_envs),
        args=tuple(message.container_args),
        mounts=tuple(Mount(m.container_path, m.host_path, m.readonly) for m in message.container_mounts),
        devices=tuple(DeviceNode(d.container_path, d.host_path, d.permissions) for d in message.container_devices),
        annotations=dict(message.container_annotations),
        cdi_devices=tuple(message.container_cdi_devices),
    )


def hook_service(hooks: RuntimeHooks) -> Service:
    """Return the service over our port."""

    def answered(method: Callable[[HookRequest], Awaitable[HookedContainer]]) -> Any:
        async def answer(message: Any) -> Any:
            try:
                return response_message(await method(request_value(message)))
            except HookError as error:
                raise PluginError("Unknown", str(error)) from error

        return unary(answer, pb.ContainerResourceHookRequest)

    async def silent_of_pod(_: Any) -> Any:
        return pb.PodSandboxHookResponse()

    async def silent(_: Any) -> Any:
        return pb.ContainerResourceHookResponse()

    return SERVICE, {
        "PreCreateContainerHook": answered(hooks.pre_create),
        "PreUpdateContainerResourcesHook": answered(hooks.pre_update),
        **{name: unary(silent_of_pod, pb.PodSandboxHookRequest) for name in _SILENT_OF_PODS},
        **{name: unary(silent, pb.ContainerResourceHookRequest) for name in _SILENT_OF_CONTAINERS},
    }


async def serve_hooks(path: Path, hooks: RuntimeHooks) -> SocketServer:
    """Serve them on that socket, replacing a leftover. Raises SocketPathTooLongError, OSError."""
    return await serve_on(path, hook_service(hooks))


class GrpcHooks:
    """RuntimeHooks of whoever serves that socket; the connection is made when it is asked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._channel: grpc.aio.Channel | None = None

    async def pre_create(self, request: HookRequest) -> HookedContainer:
        """Call PreCreateContainerHook. Raises HookError."""
        return await self._call("PreCreateContainerHook", request)

    async def pre_update(self, request: HookRequest) -> HookedContainer:
        """Call PreUpdateContainerResourcesHook. Raises HookError."""
        return await self._call("PreUpdateContainerResourcesHook", request)

    async def _call(self, name: str, request: HookRequest) -> HookedContainer:
        if self._channel is None:
            self._channel = channel_to(self._path)
        method = self._channel.unary_unary(
            f"/{SERVICE}/{name}",
            request_serializer=pb.ContainerResourceHookRequest.SerializeToString,
            response_deserializer=pb.ContainerResourceHookResponse.FromString,
        )
        try:
            message = await outcome(started(method, request_message(request), DEADLINE_S))
        except grpc.aio.AioRpcError as error:
            raise HookError(str(from_rpc(error))) from error
        except PluginError as error:
            raise HookError(str(error)) from error
        return response_value(message, request.asked)

    async def close(self) -> None:
        """Close the connection."""
        if self._channel is not None:
            channel, self._channel = self._channel, None
            await channel.close()


class GrpcHookSocket:
    """A HookSocket at a path. Without ``runtime``, the socket of its container runtime, it lists no containers, and the
    agent knows of those alone that it was asked about."""

    def __init__(self, path: Path, runtime: Path | None = None) -> None:
        self._path = path
        self._runtime = None if runtime is None else ContainerRuntime(runtime)

    async def serve(self, hooks: RuntimeHooks) -> SocketServer:
        """Serve them. Raises SocketPathTooLongError, OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return await serve_hooks(self._path, hooks)

    async def running(self) -> Sequence[RunningEnvironment]:
        """Return those of the container runtime. Raises HookError."""
        return () if self._runtime is None else await self._runtime.running()
