"""A container runtime as its CRI shows it: which containers run, whose they are, and with what environment.

Any runtime that speaks ``runtime.v1``. The environment is what containerd and CRI-O tell in the verbose status, which
the interface leaves to them (``info``, JSON): the runtime's own specification of the container. Wall clock only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc

from mews.kube.deviceplugin.grpc_client import channel_to
from mews.kube.deviceplugin.grpc_errors import outcome, started
from mews.kube.deviceplugin.pb import cri_v1_pb2 as cri
from mews.kube.deviceplugin.port import PluginError
from mews.kube.runtimehook.port import HookError, RunningEnvironment

SERVICE = "runtime.v1.RuntimeService"
POD_UID = "io.kubernetes.pod.uid"
"""Label by which kubelets mark their containers."""
_RUNNING = 1
_DEADLINE_S = 10.0


class ContainerRuntime:
    """The client of one socket; the connection is made when it is used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._channel: grpc.aio.Channel | None = None

    async def running(self) -> list[RunningEnvironment]:
        """Return the containers of pods that run now; one that ends meanwhile is left out.

        Raises HookError.
        """
        wanted = cri.ContainerFilter(state=cri.ContainerStateValue(state=_RUNNING))
        listed = await self._call(
            "ListContainers", cri.ListContainersRequest(filter=wanted), cri.ListContainersResponse
        )
        found = []
        for each in listed.containers:
            uid = each.labels.get(POD_UID, "")
            env = await self.environment(each.id) if uid else None
            if env is not None:
                found.append(RunningEnvironment(uid, each.metadata.name, env))
        return found

    async def environment(self, container: str) -> Mapping[str, str] | None:
        """Return what a container was created with; None for one that is not there, or whose runtime does not tell.

        Raises HookError where the runtime does not answer.
        """
        request = cri.ContainerStatusRequest(container_id=container, verbose=True)
        try:
            status = await self._ask("ContainerStatus", request, cri.ContainerStatusResponse)
        except PluginError as error:
            if error.code == "NotFound":
                return None
            raise HookError(f"ContainerStatus: {error}") from error
        return environment_in(status.info)

    async def container(self, identity: str) -> Any | None:
        """Return a container by its id, running or not; None for one that is not there. Raises HookError."""
        wanted = cri.ContainerFilter(id=identity)
        request = cri.ListContainersRequest(filter=wanted)
        listed = await self._call("ListContainers", request, cri.ListContainersResponse)
        return listed.containers[0] if listed.containers else None

    async def sandbox(self, identity: str) -> Any:
        """Return the status of a pod's sandbox: its metadata, labels and annotations. Raises HookError."""
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=identity)
        return (await self._call("PodSandboxStatus", request, cri.PodSandboxStatusResponse)).status

    async def _call(self, name: str, request: Any, response: Any) -> Any:
        try:
            return await self._ask(name, request, response)
        except PluginError as error:
            raise HookError(f"{name}: {error}") from error

    async def _ask(self, name: str, request: Any, response: Any) -> Any:
        if self._channel is None:
            self._channel = channel_to(self._path)
        method = self._channel.unary_unary(
            f"/{SERVICE}/{name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        return await outcome(started(method, request, _DEADLINE_S))

    async def close(self) -> None:
        """Close the connection."""
        if self._channel is not None:
            channel, self._channel = self._channel, None
            await channel.close()


def environment_in(info: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the environment in a verbose status: of the OCI specification (``runtimeSpec``); None where it is not
    told."""
    for text in info.values():
        try:
            entries: Sequence[str] = json.loads(text)["runtimeSpec"]["process"]["env"]
        except (ValueError, KeyError, TypeError):
            continue
        return dict(entry.split("=", 1) for entry in entries if "=" in entry)
    return None
