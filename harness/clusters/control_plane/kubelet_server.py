"""The emulated kubelets' own HTTPS servers, which the real API server asks for logs and commands."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from mews.callers import callers
from mews.kube.api.errors import ApiError
from mews.kube.clock import Clock
from mews.kube.emulated.apiserver.wire.boundary import guarded_server
from mews.kube.emulated.apiserver.wire.kubelet_face import answer_as_kubelet
from mews.kube.emulated.apiserver.wire.kubelets import KubeletDirectory

_CALLERS = callers("127.0.0.1")
_CLOCK = Clock.wall()


class KubeletServers:
    """One server for each host, on a port of its own; it answers while that host's kubelet runs, and only the API
    server, which shows its certificate."""

    def __init__(self, directory: KubeletDirectory, context: ssl.SSLContext) -> None:
        self._directory = directory
        self._context = context
        self._runners: dict[str, web.ServerRunner] = {}

    async def open(self, hosts: Sequence[str]) -> None:
        """Listen for each host."""
        for host in hosts:
            runner = web.ServerRunner(guarded_server(self._handler(host)), shutdown_timeout=1.0)
            self._runners[host] = runner  # before it has anything open: what is begun is closed
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._context).start()

    def address(self, host: str) -> tuple[str, int] | None:
        """Where that host's kubelet is asked."""
        if host not in self._runners:
            return None
        address, port = self._runners[host].addresses[0][:2]
        return str(address), int(port)

    async def close(self) -> None:
        """Stop listening."""
        for runner in self._runners.values():
            await runner.cleanup()
        self._runners.clear()

    def _handler(self, host: str) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            refusal = _CALLERS.refusal({name.lower(): value for name, value in request.headers.items()}, secure=True)
            if refusal is not None:
                return web.Response(status=403, text=f"{refusal}\n")
            kubelet = self._directory.kubelet_of(host)
            if kubelet is None:
                # A dead kubelet refuses connections; to hang up is what comes nearest while others share the process.
                assert request.transport is not None
                request.transport.abort()
                raise ConnectionResetError(f"the kubelet of {host} is dead")
            try:
                return await answer_as_kubelet(kubelet, request, request.path, now=_CLOCK.now())
            except ApiError as error:
                return web.Response(status=error.code, text=f"{error}\n")

        return handle
