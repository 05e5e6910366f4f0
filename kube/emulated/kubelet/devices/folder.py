"""What a kubelet needs of its node's plugin folder, by sockets or in process."""

from __future__ import annotations

from typing import Protocol

from mews.kube.deviceplugin.port import PluginDialer, PluginOptions, PodResources


class Registrar(Protocol):
    """The device manager, as far as a plugin reaches it."""

    async def register(
        self, endpoint: str, resource: str, options: PluginOptions | None = None, *, version: str = "v1beta1"
    ) -> None:
        """Registration/Register. Raises PluginError."""
        ...


class KubeletFolder(PluginDialer, Protocol):
    """Outlives the kubelets of its node: ``mews.harness.ports.deviceplugin.LocalKubeletFolder`` in process,
    ``mews.kube.emulated.kubelet.grpc_server.GrpcKubeletFolder`` with sockets."""

    async def start(self, registrar: Registrar, pod_resources: PodResources) -> None:
        """The kubelet starts: all sockets of the folder are gone, its own are new."""
        ...

    async def stop(self) -> None:
        """The kubelet has ended, in whatever way: nobody answers any more."""
        ...
