"""What stands between a kubelet and its container runtime: each call of the Container Runtime Interface goes through as
the bytes that it is, but for containers that are created or changed, about which the node's agent is asked first.

As koord-runtime-proxy: the agent may be away, and what becomes of a container then is the policy's. The kubelet is told
of this socket as its runtime's (kubeadm's ``criSocket``, ``containerRuntimeEndpoint``). Wall clock only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from mews.kube.component import record
from mews.kube.deviceplugin.grpc_client import channel_to
from mews.kube.deviceplugin.grpc_server import serve_handlers
from mews.kube.deviceplugin.pb import cri_v1_pb2 as cri
from mews.kube.deviceplugin.port import DeviceNode, Mount
from mews.kube.runtimehook.grpc_hooks import GrpcHooks
from mews.kube.runtimehook.port import HookedContainer, HookError, HookPolicy, HookRequest
from mews.kube.runtimehook.runtime import SERVICE, ContainerRuntime
from mews.listening.rpc import unreadable

CREATE, UPDATE = f"/{SERVICE}/CreateContainer", f"/{SERVICE}/UpdateContainerResources"
_MOST_BYTES = 16 * 1024 * 1024
"""Of a message: as kubelets and containerd have it."""
_OPTIONS = (("grpc.max_receive_message_length", _MOST_BYTES), ("grpc.max_send_message_length", _MOST_BYTES))

Rewrite = Callable[[bytes], Awaitable[bytes]]
"""What a call's request becomes. Raises HookError where the call is not to be made."""


class RuntimeProxy:
    """Serves ``listen``, calls ``runtime``, asks the agent at ``hooks``: not about pods of the namespaces ``without``,
    among them its own, which could else not be created before it answers."""

    def __init__(
        self,
        listen: Path,
        runtime: Path,
        hooks: Path,
        policy: HookPolicy,
        log: logging.Logger,
        *,
        without: Collection[str] = (),
    ) -> None:
        self._without = frozenset(without)
        self._listen = listen
        self._runtime = runtime
        self._hooks = GrpcHooks(hooks)
        self._policy = policy
        self._log = log
        self._containers = ContainerRuntime(runtime)

    async def run(self) -> None:
        """Until cancelled.

        Raises SocketPathTooLongError, OSError where the socket cannot be served.
        """
        self._listen.parent.mkdir(parents=True, exist_ok=True)
        channel = channel_to(self._runtime)
        calls = _Calls(channel, {CREATE: self._create, UPDATE: self._update})
        server = await serve_handlers(self._listen, (calls,), options=_OPTIONS)
        record(self._log, "proxy-serves", socket=str(self._listen), runtime=str(self._runtime))
        try:
            await asyncio.Event().wait()
        finally:
            await server.close()
            for closing in (channel, self._hooks, self._containers):
                await closing.close()

    async def _create(self, data: bytes) -> bytes:
        request = cri.CreateContainerRequest.FromString(data)
        config, sandbox = request.config, request.sandbox_config
        if sandbox.metadata.namespace in self._without:
            return data
        asked = container_of(config)
        question = _request(sandbox, config.metadata, asked)
        try:
            given = await self._hooks.pre_create(question)
        except HookError as error:
            return self._failed("PreCreateContainerHook", question, error, data)
        if given == asked:
            return data
        put_container(config, asked, given)
        record(self._log, "container-hooked", pod=f"{question.namespace}/{question.pod}", container=question.container)
        return bytes(request.SerializeToString())

    async def _update(self, data: bytes) -> bytes:
        request = cri.UpdateContainerResourcesRequest.FromString(data)
        container = await self._containers.container(request.container_id)
        if container is None:
            return data  # the runtime says so itself
        sandbox = await self._containers.sandbox(container.pod_sandbox_id)
        if sandbox.metadata.namespace in self._without:
            return data
        env = await self._containers.environment(request.container_id) or {}
        asked = HookedContainer(env=env, annotations=dict(request.annotations))
        question = _request(sandbox, container.metadata, asked)
        try:
            given = await self._hooks.pre_update(question)
        except HookError as error:
            return self._failed("PreUpdateContainerResourcesHook", question, error, data)
        if dict(given.annotations) == dict(request.annotations):
            return data  # nothing else of a running container can be changed
        request.annotations.clear()
        request.annotations.update(given.annotations)
        return bytes(request.SerializeToString())

    def _failed(self, hook: str, request: HookRequest, error: HookError, data: bytes) -> bytes:
        pod = f"{request.namespace}/{request.pod}"
        fields = {"hook": hook, "pod": pod, "uid": request.pod_uid, "container": request.container}
        record(self._log, "hook-failed", **fields, error=str(error))
        if self._policy is HookPolicy.FAIL:
            raise HookError(f"{hook}: {error}") from error
        return data


class _Calls(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Every method of every service, to the other side and back. A unary call is a stream of one message."""

    def __init__(self, channel: grpc.aio.Channel, rewrites: dict[str, Rewrite]) -> None:
        self._channel = channel
        self._rewrites = rewrites

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        """Return the handler of one call."""
        name = details.method
        rewrite = self._rewrites.get(name.replace("/runtime.v1alpha2.", "/runtime.v1."))

        async def forward(messages: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async def rewritten() -> AsyncIterator[bytes]:
                async for message in messages:
                    yield message if rewrite is None else await rewrite(message)

            method = self._channel.stream_stream(name)
            call = None
            try:
                # Asked before the other side hears of the call, which is then not made where it must not be.
                first = [message async for message in rewritten()] if rewrite is not None else None
                call = method(_each(first) if first is not None else messages, timeout=context.time_remaining())
                async for answer in call:
                    yield answer
            except HookError as error:
                await context.abort(grpc.StatusCode.UNKNOWN, str(error))
            except DecodeError as error:
                await context.abort(grpc.StatusCode.INTERNAL, unreadable(error))
            except grpc.aio.AioRpcError as error:
                context.set_trailing_metadata(_details(error))
                await context.abort(error.code(), error.details() or "")
            finally:
                if call is not None:
                    call.cancel()

        return grpc.stream_stream_rpc_method_handler(forward)


async def _each(messages: list[bytes]) -> AsyncIterator[bytes]:
    for message in messages:
        yield message


def _details(error: grpc.aio.AioRpcError) -> tuple[tuple[str, Any], ...]:
    """Return what an error says besides its text, but for what gRPC itself writes."""
    return tuple((key, value) for key, value in error.trailing_metadata() or () if not key.startswith("grpc-"))


def _request(sandbox: Any, container: Any, asked: HookedContainer) -> HookRequest:
    return HookRequest(
        namespace=sandbox.metadata.namespace,
        pod=sandbox.metadata.name,
        pod_uid=sandbox.metadata.uid,
        container=container.name,
        attempt=container.attempt,
        pod_annotations=dict(sandbox.annotations),
        pod_labels=dict(sandbox.labels),
        asked=asked,
    )


def container_of(config: Any) -> HookedContainer:
    """Return what a hook may change of a ContainerConfig."""
    return HookedContainer(
        env={each.key: each.value for each in config.envs},
        args=tuple(config.args),
        mounts=tuple(Mount(m.container_path, m.host_path, m.readonly) for m in config.mounts),
        devices=tuple(DeviceNode(d.container_path, d.host_path, d.permissions) for d in config.devices),
        annotations=dict(config.annotations),
        cdi_devices=tuple(each.name for each in config.CDI_devices),
    )


def put_container(config: Any, asked: HookedContainer, given: HookedContainer) -> None:
    """Write what a hook has changed into a ContainerConfig; what stays is not touched, nor what is not named here: a
    mount keeps its propagation and its maps."""
    if given.env != asked.env:
        # A map has no order on the wire; a container's environment has one.
        names = [*(name for name in asked.env if name in given.env), *sorted(given.env.keys() - asked.env.keys())]
        _replace(config.envs, [cri.KeyValue(key=name, value=given.env[name]) for name in names])
    if given.args != asked.args:
        _replace(config.args, given.args)
    if given.mounts != asked.mounts:
        there = dict(zip(asked.mounts, list(config.mounts), strict=True))
        _replace(config.mounts, [there.get(mount) or _mount(mount) for mount in given.mounts])
    if given.devices != asked.devices:
        _replace(config.devices, [_device(device) for device in given.devices])
    if given.annotations != asked.annotations:
        config.annotations.clear()
        config.annotations.update(given.annotations)
    if given.cdi_devices != asked.cdi_devices:
        _replace(config.CDI_devices, [cri.CDIDevice(name=name) for name in given.cdi_devices])


def _replace(field: Any, values: Any) -> None:
    kept = list(values)
    del field[:]
    field.extend(kept)


def _mount(mount: Mount) -> Any:
    return cri.ContainerMount(container_path=mount.container_path, host_path=mount.host_path, readonly=mount.read_only)


def _device(device: DeviceNode) -> Any:
    return cri.ContainerDevice(
        container_path=device.container_path, host_path=device.host_path, permissions=device.permissions
    )
