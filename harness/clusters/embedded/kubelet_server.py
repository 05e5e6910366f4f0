"""The emulated kubelets' own HTTPS servers, which the real API server asks for logs and commands."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from aiohttp import web

from mews.harness.clusters.embedded.kubelet_access import KubeletAccess, ReviewApi
from mews.harness.clusters.embedded.node_addresses import node_address
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.clock import Clock
from mews.kube.emulated.packs.kubelets.kubelet_face import answer_as_kubelet
from mews.kube.emulated.ports.kubelets import KubeletDirectory
from mews.listening.http import Answer, HttpListener

_CLOCK = Clock.wall()


class KubeletServers:
    """One server for each host, on a port of its own; it answers while that host's kubelet runs. The real API server
    shows its certificate, and may ask for everything; of all others the API says by ``kube`` what they may ask for."""

    def __init__(self, directory: KubeletDirectory, context: ssl.SSLContext, kube: ReviewApi) -> None:
        self._directory = directory
        self._context = context
        self._access = KubeletAccess(kube)
        self._listeners: dict[str, HttpListener] = {}

    async def open(self, hosts: Sequence[str]) -> None:
        """Listen for each host, by its name and its node's address, too."""
        for number, host in enumerate(hosts):
            listener = HttpListener(self._handler(host), names=(host, node_address(number)))
            self._listeners[host] = listener  # before it has anything open: what is begun is closed
            await listener.open(tls=self._context)

    def address(self, host: str) -> tuple[str, int] | None:
        """Return where that host's kubelet is asked."""
        return self._listeners[host].address if host in self._listeners else None

    async def close(self) -> None:
        """Stop listening."""
        for listener in self._listeners.values():
            await listener.close()
        self._listeners.clear()

    def _handler(self, host: str) -> Answer:
        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            kubelet = self._directory.kubelet_of(host)
            if kubelet is None:
                # A dead kubelet refuses connections; to hang up is what comes nearest while others share the process.
                assert request.transport is not None
                request.transport.abort()
                raise ConnectionResetError(f"the kubelet of {host} is dead")
            try:
                assert request.transport is not None
                if not request.transport.get_extra_info("peercert"):
                    refusal = await self._access.refusal(request, host)
                    if refusal is not None:
                        return refusal
                return await answer_as_kubelet(kubelet, request, request.path, now=_CLOCK.now())
            except UnavailableError as error:
                return web.Response(status=500, text=f"Authorization error: {error}\n")
            except ApiError as error:
                return web.Response(status=error.code, text=f"{error}\n")

        return handle
