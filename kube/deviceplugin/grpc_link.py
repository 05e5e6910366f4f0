"""DevicePluginLink over gRPC: the kubelet's folder as an unprivileged plugin process sees it. Wall clock only."""

from __future__ import annotations

from pathlib import Path

from mews.kube.clock import rest
from mews.kube.deviceplugin.grpc_client import register
from mews.kube.deviceplugin.grpc_server import SocketServer, serve_plugin
from mews.kube.deviceplugin.port import DevicePlugin, PluginOptions
from mews.kube.deviceplugin.sockets import identify


class GrpcLink:
    """``folder``: where ``kubelet.sock`` is, /var/lib/kubelet/device-plugins on a real node."""

    def __init__(self, folder: Path, *, poll_s: float = 0.5) -> None:
        self._folder = folder
        self._poll_s = poll_s
        self._seen = identify(self._kubelet)
        self._served: SocketServer | None = None

    async def serve(self, endpoint: str, plugin: DevicePlugin) -> SocketServer:
        """Serve the plugin on that socket name, replacing a leftover.

        Raises SocketPathTooLongError, OSError.
        """
        self._seen = identify(self._kubelet)
        self._served = await serve_plugin(self._folder / endpoint, plugin)
        return self._served

    async def close(self) -> None:
        """Stop what was served last, and take its socket away: a kubelet forgets a plugin that says good-bye."""
        if self._served is not None:
            await self._served.close()
            self._served = None

    async def register(self, endpoint: str, resource: str, options: PluginOptions) -> None:
        """Register a plugin with the kubelet (Registration/Register).

        Raises PluginError.
        """
        await register(self._folder, endpoint, resource, options)

    async def kubelet_restarted(self) -> None:
        """Return once ``kubelet.sock`` is another one than when this link last served or this last returned."""
        while (found := identify(self._kubelet)) is None or found == self._seen:
            await rest(self._poll_s)
        self._seen = found

    @property
    def _kubelet(self) -> Path:
        return self._folder / "kubelet.sock"
