"""Probes of real processes: commands, pages and ports on this machine."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest

from mews.kube.emulated.kubelet.handlers import Exec, GrpcCheck, HandlerResult, HttpGet, Question, TcpSocket
from mews.kube.emulated.kubelet.process import ProcessRuntime, RealProcess
from tests.kube.emulated.kubelet.test_process_runtime import launch

pytestmark = pytest.mark.wall

SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        agent = self.headers.get("User-Agent", "") + self.headers.get("X-Test", "")
        self.send_response(200 if self.path == "/well" and agent == "kube-probe/1.34yes" else 503)
        self.end_headers()
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


async def ask(process: RealProcess, action: Any, timeout_s: float = 30.0) -> HandlerResult:
    return await process.ask(Question("readiness", action, timeout_s))


def test_a_process_is_asked_by_command_by_page_and_by_port(tmp_path: Path) -> None:
    async def main() -> None:
        runtime = ProcessRuntime(tmp_path)
        process = await runtime.start(launch("server", [sys.executable, "-c", SERVER]))
        await process.log.grown(0)
        port = int(process.log.read().split()[0])
        well = HttpGet("127.0.0.1", port, "/well", headers=(("X-Test", "yes"),))
        assert await ask(process, well) == HandlerResult(True)
        assert await ask(process, HttpGet("127.0.0.1", port)) == HandlerResult(
            False, "HTTP probe failed with statuscode: 503"
        )
        assert await ask(process, TcpSocket("127.0.0.1", port)) == HandlerResult(True)
        assert await ask(process, Exec(("sh", "-c", "echo out; echo err >&2; exit 7"))) == HandlerResult(
            False, "out\nerr\n", 7
        )
        assert await ask(process, Exec(("true",))) == HandlerResult(True)
        assert await ask(process, Exec(("sleep", "600")), 0.2) == HandlerResult(False, 'command "sleep 600" timed out')
        await process.stop(0)
        assert (await ask(process, HttpGet("127.0.0.1", port))).text == (
            f'Get "http://127.0.0.1:{port}/": dial tcp 127.0.0.1:{port}: connect: connection refused'
        )
        assert (await ask(process, TcpSocket("127.0.0.1", port))).text == (
            f"dial tcp 127.0.0.1:{port}: connect: connection refused"
        )
        await runtime.close()

    asyncio.run(main())


def health(states: dict[str, int]) -> Any:
    """A server of gRPC's health protocol with these services; 0 where a service is not known."""

    async def check(request: bytes, context: Any) -> bytes:
        return bytes((8, states.get(request[2:].decode(), 0)))

    return grpc.method_handlers_generic_handler(
        "grpc.health.v1.Health", {"Check": grpc.unary_unary_rpc_method_handler(check)}
    )


def test_a_service_is_asked_for_its_health(tmp_path: Path) -> None:
    async def main() -> None:
        runtime = ProcessRuntime(tmp_path)
        process = await runtime.start(launch("sleeper", ["sleep", "600"]))
        server, bare = grpc.aio.server(), grpc.aio.server()
        server.add_generic_rpc_handlers((health({"": 1, "db": 2}),))
        port, other = server.add_insecure_port("127.0.0.1:0"), bare.add_insecure_port("127.0.0.1:0")
        await server.start()
        await bare.start()
        assert await ask(process, GrpcCheck("127.0.0.1", port)) == HandlerResult(True, "service healthy")
        assert (await ask(process, GrpcCheck("127.0.0.1", port, "db"))).text == (
            'service unhealthy (responded with "NOT_SERVING")'
        )
        assert (await ask(process, GrpcCheck("127.0.0.1", other))).text.startswith(
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
        )
        await server.stop(None)
        await bare.stop(None)
        assert (await ask(process, GrpcCheck("127.0.0.1", port), 1.0)).text == (
            f'timeout: failed to connect service "127.0.0.1:{port}" within 1s: context deadline exceeded'
        )
        await runtime.close()

    asyncio.run(main())


def test_a_page_that_does_not_come_is_a_timeout(tmp_path: Path) -> None:
    async def main() -> None:
        runtime = ProcessRuntime(tmp_path)
        process = await runtime.start(launch("sleeper", ["sleep", "600"]))
        silent = socket.create_server(("127.0.0.1", 0))  # takes connections and never says a word
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        answer = await ask(process, HttpGet("127.0.0.1", silent.getsockname()[1]), 0.2)
        assert answer == HandlerResult(False, f'Get "{url}": {late}')
        silent.close()
        await runtime.close()

    asyncio.run(main())
