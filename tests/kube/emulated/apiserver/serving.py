"""A served store with nodes n1 and n2, whose kubelets have made-up logs, for tests with foreign clients."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from mews.kube.api.objects import Object
from mews.kube.client.http import HttpKube
from mews.kube.client.port import ExecResult
from mews.kube.clock import Clock
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.ports.kubelets import KubeletApi
from mews.kube.emulated.streaming.port_forward import Dial
from mews.kube.emulated.streaming.standard_streams import (
    STDERR,
    STDOUT,
    StandardStreams,
    StartRefusedError,
    StreamSession,
)
from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: mews, cluster: {{server: "{url}"}}}}]
users: [{{name: me, user: {{token: "{token}"}}}}]
contexts: [{{name: mews, context: {{cluster: mews, user: me}}}}]
current-context: mews
"""


class FakeKubelet:
    """Two lines of log, a third for those who follow; ``exec`` echoes, and fails when it is told to."""

    async def log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        follow: bool = False,
        previous: bool = False,
        tail_lines: int | None = None,
        since: float | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
    ) -> AsyncIterator[bytes]:
        lines = [f"{pod}/{container} one\n".encode(), b"two\n"]
        for line in lines[-tail_lines:] if tail_lines else lines:
            yield line
        if follow:
            await asyncio.sleep(0.05)
            yield b"three\n"

    async def exec(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> ExecResult:
        if command[0] == "fail":
            return ExecResult(3, b"", b"no\n")
        return ExecResult(0, " ".join(command[1:]).encode() + b"\n")

    def command(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> StreamSession:
        async def run(streams: StandardStreams) -> int:
            if command[0] == "nosuch":
                raise StartRefusedError("no such program")
            if command[0] == "cat":
                while data := await streams.read():
                    await streams.write(STDOUT, data)
                return 0
            done = await self.exec(namespace, pod, container, command)
            await streams.write(STDOUT, done.stdout)
            await streams.write(STDERR, done.stderr)
            return done.exit_code

        return run

    def attachment(self, namespace: str, pod: str, container: str) -> StreamSession:
        return self.command(namespace, pod, container, ["cat"])

    def ports(self, namespace: str, pod: str) -> Dial:
        async def dial(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            return await asyncio.open_connection("127.0.0.1", port)

        return dial

    def pods(self) -> Sequence[Object]:
        return []

    def addresses(self) -> Sequence[str]:
        return ()

    def usage(self) -> Sequence[PodUsage]:
        return []

    def node_usage(self) -> ContainerUsage:
        return ContainerUsage(10_000_000, 64 << 20, 3.5, 100.0)

    async def summary(self, *, now: float, files: bool) -> Mapping[str, object]:
        return {"node": {"nodeName": "n1", **({"fs": {}} if files else {})}, "pods": []}

    def probe_counts(self) -> Mapping[tuple[str, str, str, str, str, str], int]:
        return {("default", "p", "c", "u1", "Liveness", "successful"): 7}


class FakeKubelets:
    def kubelet_of(self, node: str) -> KubeletApi | None:
        return FakeKubelet() if node in ("n1", "n2") else None


class Served:
    """What a check gets: the server, a client of ours, and kubectl."""

    def __init__(self, server: ApiServer, kube: HttpKube, folder: Path) -> None:
        self.server = server
        self.kube = kube
        self.folder = folder

    async def kubectl(self, *arguments: str, stdin: str = "", ok: bool = True) -> str:
        """Its standard output; with ``ok=False`` it must fail, and this is its standard error."""
        process = await self.kubectl_process(*arguments)
        out, err = await asyncio.wait_for(process.communicate(stdin.encode()), 90)
        assert (process.returncode == 0) == ok, f"kubectl {' '.join(arguments)}: {out.decode()}{err.decode()}"
        return out.decode() if ok else err.decode()

    async def kubectl_process(self, *arguments: str) -> asyncio.subprocess.Process:
        environment = {"HOME": str(self.folder), "KUBECONFIG": str(self.folder / "kubeconfig"), "PATH": os.defpath}
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            find_kubectl(), *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )


def find_kubectl() -> str:
    """kubectl of ``KUBEBUILDER_ASSETS`` or of the PATH; the test is skipped without one."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (Path(assets) / "kubectl").exists():
        return str(Path(assets) / "kubectl")
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("no kubectl in KUBEBUILDER_ASSETS or on the PATH")
    return found


def serve(folder: Path, check: Callable[[Served], Awaitable[None]], *, tokens: dict[str, str] | None = None) -> None:
    """Run a check against a server of its own."""

    async def main() -> None:
        server = ApiServer(fresh_store(Clock.wall().now, random.Random(1)), kubelets=FakeKubelets(), tokens=tokens)
        await server.start()
        token = next(iter(tokens or {}), "")
        (folder / "kubeconfig").write_text(KUBECONFIG.format(url=server.url, token=token))
        kube = HttpKube(server.url, token=token or None)
        try:
            await check(Served(server, kube, folder))
        finally:
            await kube.close()
            await server.stop()

    asyncio.run(main())
