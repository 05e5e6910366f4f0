"""client-go's own executors against real processes in pods: SPDY and WebSockets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mews.kube.api.resources import PODS
from mews.kube.client.http import HttpKube
from mews.kube.clock import Clock, Pace, stream
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.kubelet.api import EmulatedKubeletApi
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.kubelet.process import ProcessRuntime
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime
from mews.kube.emulated.ports.kubelets import KubeletApi
from tests.emulator.nvml.gobuild import built
from tests.kube.emulated.apiserver.serving import KUBECONFIG

pytestmark = pytest.mark.wall
LOUD = 300_000
ECHO = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    while True:
        peer, _ = server.accept()
        peer.sendall(peer.recv(65536) * 20)
        peer.close()
"""


class _OneKubelet:
    def __init__(self, containerd: Containerd) -> None:
        self.api = EmulatedKubeletApi(containerd, NodeSpec("n1"))

    def kubelet_of(self, node: str) -> KubeletApi | None:
        return self.api


Ask = Callable[..., Awaitable[tuple[int, bytes, bytes]]]


def with_a_pod(folder: Path, command: list[str], check: Callable[[Ask, Containerd], Awaitable[None]]) -> None:
    """Serve an API with one pod, a process with standard input, and check with the Go program."""
    program = built(Path(__file__).parent / "client")

    async def main() -> None:
        processes = ProcessRuntime(folder / "pods")
        containerd = Containerd(
            Clock.wall(), stream(1, "c"), simulated=SimulatedRuntime(Pace()), processes=processes, network="127.9.2"
        )
        server = ApiServer(fresh_store(Clock.wall().now, random.Random(1)), kubelets=_OneKubelet(containerd))
        await server.start()
        (folder / "kubeconfig").write_text(KUBECONFIG.format(url=server.url, token=""))
        kube = HttpKube(server.url)
        container = {"name": "main", "image": "busybox", "command": command, "stdin": True}
        body = {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [container]}}
        made = await kube.create(PODS, body, namespace="default")
        image = load_images().find("busybox")
        assert image is not None
        containerd.create(made)
        await containerd.start(Launch(made, "main", 0, image, tuple(command), (), {}))

        async def ask(verb: str, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
            pipe = asyncio.subprocess.PIPE
            env = {"KUBECONFIG": str(folder / "kubeconfig"), "HOME": str(folder)}
            process = await asyncio.create_subprocess_exec(
                str(program), verb, "default", "p", *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=env
            )
            out, err = await asyncio.wait_for(process.communicate(stdin), 60)
            return process.returncode or 0, out, err

        try:
            await check(ask, containerd)
        finally:
            await kube.close()
            await server.stop()
            await containerd.close()

    asyncio.run(main())


@pytest.mark.parametrize("verb", ["exec", "exec-ws"])
def test_a_command_has_its_three_streams_and_its_exit_code(tmp_path: Path, verb: str) -> None:
    async def check(ask: Ask, containerd: Containerd) -> None:
        code, out, err = await ask(verb, "sh", "-c", "cat; echo bad >&2; exit 7", stdin=b"x" * LOUD)
        assert (code, len(out), err) == (7, LOUD, b"bad\n")
        code, out, err = await ask(verb, "no-such-program")
        assert (code, out) == (99, b"") and b"executable file not found in $PATH" in err

    with_a_pod(tmp_path, ["sleep", "60"], check)


def test_who_attaches_talks_to_the_container_itself(tmp_path: Path) -> None:
    async def check(ask: Ask, containerd: Containerd) -> None:
        code, out, err = await ask("attach", stdin=b"one\ntwo\n")
        assert (code, out, err) == (0, b"got one\ngot two\n", b"end\n")

    script = "read a; echo got $a; read b; echo got $b; echo end >&2"
    with_a_pod(tmp_path, ["sh", "-c", script], check)


def test_a_port_open_on_loopback_alone_is_forwarded(tmp_path: Path) -> None:
    async def check(ask: Ask, containerd: Containerd) -> None:
        uid = containerd.sandboxes()[0].pod["metadata"]["uid"]
        async with asyncio.timeout(10):
            async for chunk in containerd.log(uid, "main", follows=True):
                port = chunk.decode().strip()
                break
        code, out, err = await ask("forward", port, stdin=b"y" * 1000)
        assert (code, out.split(), err) == (0, [b"20000"] * 3, b"")
        code, out, err = await ask("forward", "9", stdin=b"y")
        assert b"dial tcp4 127.0.0.1:9: connect: connection refused" in err

    with_a_pod(tmp_path, ["python3", "-c", ECHO], check)
