"""The kubelet's gRPC: Registration, podresources, and dialing plugins (contract kubelet.md sections 1, 6, 7).

Wall clock only; ``mews.harness.ports.deviceplugin.LocalKubeletFolder`` is the same in process.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from mews.kube.deviceplugin import messages
from mews.kube.deviceplugin.errors import SocketPathTooLongError
from mews.kube.deviceplugin.grpc_client import GrpcPlugin, channel_to
from mews.kube.deviceplugin.grpc_server import Service, SocketServer, pod_resources_service, serve_on, unary
from mews.kube.deviceplugin.pb import deviceplugin_v1beta1_pb2 as pb
from mews.kube.deviceplugin.port import PluginError, PodResources
from mews.kube.deviceplugin.sockets import KUBELET_SOCKET, beside, remove_all, url
from mews.kube.emulated.kubelet.devices.folder import Registrar

DIAL_DEADLINE_S = 10.0


class GrpcKubeletFolder:
    """A KubeletFolder: the device-plugins folder and the pod-resources folder of one node.

    ``plugins``: /var/lib/kubelet/device-plugins on a real node, made with mode 0755; ``pod_resources``: 0750.

    Raises SocketPathTooLongError.
    """

    def __init__(self, plugins: Path, pod_resources: Path, *, dial_deadline_s: float = DIAL_DEADLINE_S) -> None:
        for folder in (plugins, pod_resources):
            url(folder / KUBELET_SOCKET)
            url(beside(folder / KUBELET_SOCKET))
        self.plugins = plugins
        self.pod_resources = pod_resources
        self._dial_deadline_s = dial_deadline_s
        self._servers: list[SocketServer] = []

    async def start(self, registrar: Registrar, pod_resources: PodResources) -> None:
        """The kubelet starts: all sockets of the plugins' folder go, ``kubelet.sock`` is new in both folders.

        Raises OSError.
        """
        _make(self.plugins, 0o755)
        _make(self.pod_resources, 0o750)
        remove_all(self.plugins)
        served = pod_resources_service(pod_resources)
        self._servers.append(await serve_on(self.pod_resources / KUBELET_SOCKET, served))
        self._servers.append(await serve_on(self.plugins / KUBELET_SOCKET, _registration(registrar)))

    async def stop(self) -> None:
        """The kubelet has ended, in whatever way: nobody answers on its sockets, which stay where they are."""
        servers, self._servers = self._servers, []
        for server in servers:
            await server.close(leave_socket=True)

    async def dial(self, endpoint: str) -> GrpcPlugin:
        """Return a connection to the plugin behind that socket name.

        Raises PluginError("DeadlineExceeded", …) after ten seconds (``dial_deadline_s``) without one.
        """
        try:
            url(self.plugins / endpoint)
        except SocketPathTooLongError as error:
            raise PluginError("InvalidArgument", str(error)) from error
        # A connection is to one process: through an alias that is gone afterwards, gRPC cannot connect anew to whoever
        # serves that name next.
        alias = beside(self.pod_resources / KUBELET_SOCKET)
        alias.symlink_to(self.plugins.absolute() / endpoint)
        channel = channel_to(alias)
        try:
            async with asyncio.timeout(self._dial_deadline_s):
                await channel.channel_ready()
        except TimeoutError as error:
            await channel.close(None)
            raise PluginError("DeadlineExceeded", "context deadline exceeded") from error
        except asyncio.CancelledError:
            await channel.close(None)
            raise
        finally:
            alias.unlink()
        return GrpcPlugin(channel)


def _registration(registrar: Registrar) -> Service:
    async def register(request: Any) -> Any:
        options = messages.options_value(request.options)
        await registrar.register(request.endpoint, request.resource_name, options, version=request.version)
        return pb.Empty()

    return "v1beta1.Registration", {"Register": unary(register, pb.RegisterRequest)}


def _make(folder: Path, mode: int) -> None:
    if not folder.exists():
        folder.mkdir(parents=True)
        folder.chmod(mode)
