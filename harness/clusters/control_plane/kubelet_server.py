"""The emulated kubelets' own HTTPS servers, which the real API server asks for logs and commands."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from aiohttp import web

from mews.callers import callers
from mews.kube.api.errors import ApiError
from mews.kube.emulated.apiserver.wire.boundary import guarded_server
from mews.kube.emulated.apiserver.wire.kubelets import KubeletApi, KubeletDirectory
from mews.kube.emulated.apiserver.wire.parameters import flag, number
from mews.kube.emulated.apiserver.wire.streams import send_exec

_CALLERS = callers("127.0.0.1")
_Answer = Callable[[KubeletApi, web.BaseRequest, Sequence[str]], Awaitable[web.StreamResponse]]


class KubeletServers:
    """One server for each host, on a port of its own; it answers while that host's kubelet runs, and only the API
    server, which shows its certificate. Logs: ``/containerLogs/{namespace}/{pod}/{container}``; commands:
    ``/exec/{namespace}/{pod}/{container}`` over a WebSocket (upstream pkg/kubelet/server/server.go)."""

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
            parts = request.path.strip("/").split("/")
            if parts == ["healthz"]:
                return web.Response(text="ok")
            answer = _ANSWERS.get(parts[0])
            if answer is None or len(parts) != 4:
                return web.Response(status=404, text="404 page not found\n")
            try:
                return await answer(kubelet, request, parts[1:])
            except ApiError as error:
                return web.Response(status=error.code, text=f"{error}\n")

        return handle


async def _log(kubelet: KubeletApi, request: web.BaseRequest, target: Sequence[str]) -> web.StreamResponse:
    namespace, pod, container = target
    query = request.query
    stream = kubelet.log(
        namespace,
        pod,
        container,
        follow=flag(query, "follow"),
        previous=flag(query, "previous"),
        tail_lines=number(query, "tailLines"),
    )
    return await _send(request, stream)


async def _send(request: web.BaseRequest, stream: AsyncIterator[bytes]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    prepared = False
    try:
        async for chunk in stream:
            if not prepared:  # only now, so that a refusal is still an answer
                await response.prepare(request)
                prepared = True
            await response.write(chunk)
        if not prepared:
            await response.prepare(request)
    except ConnectionError:
        pass  # the reader has gone away
    return response


async def _exec(kubelet: KubeletApi, request: web.BaseRequest, target: Sequence[str]) -> web.StreamResponse:
    namespace, pod, container = target
    if request.headers.get("Upgrade", "").lower() != "websocket":
        return web.Response(status=400, text="commands need a WebSocket: SPDY is not spoken here\n")
    result = await kubelet.exec(namespace, pod, container, request.query.getall("command", []))
    return await send_exec(request, result)


_ANSWERS: Mapping[str, _Answer] = {"containerLogs": _log, "exec": _exec}
