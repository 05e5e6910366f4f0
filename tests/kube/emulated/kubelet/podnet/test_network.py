"""Pods that are processes have ports of their own, find each other, and reach Services."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mews.kube.emulated.kubelet.images import Image
from mews.kube.emulated.kubelet.mount_namespace import filters_lacking
from mews.kube.emulated.kubelet.pod_roots import PodRoots
from mews.kube.emulated.kubelet.podnet.addresses import PodSubnet
from mews.kube.emulated.kubelet.podnet.network import PodNetwork
from mews.kube.emulated.kubelet.podnet.service_table import ServiceTable
from mews.kube.emulated.kubelet.process import ProcessRuntime, RealProcess
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.emulated.kubelet.volumes.host_paths import NodeHostPaths
from mews.kube.emulated.kubelet.volumes.pod_volumes import PodVolumes

pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(bool(filters_lacking()), reason=f"no network of pods: {filters_lacking()}"),
]

PORT = 18443
SERVER = """
import socket, sys, threading
def serve(host, port, word):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, dualstack_ipv6=host == "::") as server:
        print("listening", flush=True)
        while True:
            peer, address = server.accept()
            peer.sendall(f"{word} {address[0]}".encode())
            peer.close()
serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
"""
ASK = """
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
s.settimeout(float(sys.argv[3]) or None)
try:
    s.connect((sys.argv[1], int(sys.argv[2])))
    print(s.recv(99).decode())
except OSError as error:
    print(type(error).__name__)
"""


class Pods:
    """Processes in pods of a network whose Services are the lines of a file."""

    def __init__(self, folder: Path, subnet: PodSubnet | None = None) -> None:
        self.table = folder / "services"
        kube: Any = lambda: None  # noqa: E731
        self._pods = folder / "pods"
        volumes = PodVolumes(kube, self._pods, NodeHostPaths(lambda node: folder / node, lambda host: None))
        services = ServiceTable(self.table, lambda: ("127.0.0.1", 1))
        self.network = PodNetwork(services, random.Random(1), subnet)
        self.runtime = ProcessRuntime(
            self._pods, roots=PodRoots(self._pods, volumes, shared=[self._pods], network=self.network)
        )

    async def run(self, ip: str, *command: str, **spec: Any) -> RealProcess:
        body = {"nodeName": "n1", "containers": [{"name": "main", "image": "x"}], **spec}
        pod = {"metadata": {"name": "p", "namespace": "ns", "uid": f"uid-{ip}"}, "spec": body}
        return await self.runtime.start(Launch(pod, "main", 0, Image("x", ("sh",)), command, (), {}, ip=ip))

    async def serve(self, ip: str, host: str, word: str, port: int = PORT, **spec: Any) -> RealProcess:
        """One that has begun to listen."""
        process = await self.run(ip, "python3", "-c", SERVER, host, str(port), word, **spec)
        async with asyncio.timeout(20):
            await process.log.grown(0)
        assert process.log.read() == b"listening\n"
        return process


@asynccontextmanager
async def pods_in(folder: Path, subnet: PodSubnet | None = None) -> AsyncIterator[Pods]:
    pods = Pods(folder, subnet)
    try:
        yield pods
    finally:
        await pods.runtime.close()


async def answer(of: RealProcess, ip: str, port: int = PORT, timeout_s: float = 0.0) -> str:
    done = await of.exec(["python3", "-c", ASK, ip, str(port), str(timeout_s)])
    return done.stdout.decode().strip()


async def called(ip: str, port: int = PORT) -> str:
    """From this machine, as the API and probes do."""
    try:
        reader, writer = await asyncio.open_connection(ip, port)
    except OSError as error:
        return type(error).__name__
    text = (await reader.read()).decode()
    writer.close()
    return text


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_two_pods_listen_on_one_port_and_each_is_at_its_address(tmp_path: Path, host: str) -> None:
    async def main() -> None:
        async with pods_in(tmp_path) as pods:
            one = await pods.serve("127.77.200.2", host, "one")
            two = await pods.serve("127.77.200.3", host, "two")
            assert (await called("127.77.200.2")).startswith("one ")
            assert (await called("127.77.200.3")).startswith("two ")
            assert await called("127.0.0.1") == "ConnectionRefusedError"
            for timeout_s in (0.0, 9.0):  # a socket that waits, and one that does not
                found = await answer(one, "127.77.200.3", timeout_s=timeout_s)
                assert found.replace("::ffff:", "") == "two 127.77.200.2"  # and sees by whom it is called
                found = await answer(two, "127.0.0.1", timeout_s=timeout_s)
                assert found.replace("::ffff:", "") == "two 127.77.200.3"

    asyncio.run(main())


def test_what_listens_on_localhost_is_the_pods_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with pods_in(tmp_path) as pods:
            one = await pods.serve("127.77.201.2", "127.0.0.1", "one")
            two = await pods.serve("127.77.201.3", "127.0.0.1", "two")
            assert await answer(one, "127.0.0.1") == "one 127.77.201.2"
            assert await answer(two, "127.0.0.1") == "two 127.77.201.3"
            assert await answer(one, "127.77.201.3") == "ConnectionRefusedError"
            assert await called("127.77.201.2") == "ConnectionRefusedError"
            reader, writer = await one.dial("127.77.201.2", PORT)  # a forwarded port leads to localhost, too
            assert (await reader.read()).startswith(b"one ")
            writer.close()

    asyncio.run(main())


def test_this_machines_own_servers_are_at_localhost(tmp_path: Path) -> None:
    """The API is."""

    async def main() -> None:
        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"the machine")
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, pods_in(tmp_path) as pods:
            one = await pods.run("127.77.202.2", "sleep", "30")
            assert await answer(one, "127.0.0.1", port) == "the machine"

    asyncio.run(main())


def test_a_service_leads_to_its_pods_and_follows_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with pods_in(tmp_path) as pods:
            one = await pods.serve("127.77.203.2", "0.0.0.0", "one")
            pods.table.write_text(f"10.96.7.7 80 TCP\n10.96.7.7 80 TCP 127.77.203.2 {PORT}\n")
            for timeout_s in (0.0, 9.0):
                assert await answer(one, "10.96.7.7", 80, timeout_s) == "one 127.77.203.2"
            (tmp_path / "new").write_text("10.96.7.7 80 TCP\n")
            (tmp_path / "new").replace(pods.table)
            assert await answer(one, "10.96.7.7", 80) == "ConnectionRefusedError"

    asyncio.run(main())


def test_pods_in_the_networks_of_two_nodes_do_not_meet(tmp_path: Path) -> None:
    async def main() -> None:
        async with pods_in(tmp_path) as pods:
            one = await pods.serve("127.77.204.2", "0.0.0.0", "one", hostNetwork=True)
            await pods.serve("127.77.205.2", "0.0.0.0", "two", hostNetwork=True)
            pods.table.write_text(f"172.18.0.9 {PORT} TCP\n172.18.0.9 {PORT} TCP 127.77.205.2 {PORT}\n")
            assert await answer(one, "172.18.0.9") == "two 127.77.204.2"

    asyncio.run(main())


def test_killed_processes_leave_nothing_behind(tmp_path: Path) -> None:
    async def main() -> None:
        async with pods_in(tmp_path) as pods:
            process = await pods.serve("127.77.205.2", "0.0.0.0", "one")
            before = len(os.listdir("/proc/self/fd"))
            again = await pods.serve("127.77.205.3", "0.0.0.0", "two")
            os.kill(again.pid, signal.SIGKILL)
            await again.wait()
            async with asyncio.timeout(10):
                while len(os.listdir("/proc/self/fd")) > before:  # noqa: ASYNC110 - the kernel says when it likes
                    await asyncio.sleep(0.02)
            assert await answer(process, "127.77.205.3") == "ConnectionRefusedError"

    asyncio.run(main())


GO = """package main
import ("fmt"; "net"; "net/http"; "os"; "io")
func main() {
	l, err := net.Listen("tcp", ":18444")
	if err != nil { fmt.Println(err); os.Exit(1) }
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprint(w, os.Args[1], " ", host)
	}))
	for i := 0; i < 50; i++ {
		r, err := http.Get("http://" + os.Args[2] + ":18444/")
		if err != nil { continue }
		text, _ := io.ReadAll(r.Body)
		r.Body.Close()
		fmt.Println(string(text))
		break
	}
	select {}
}
"""


def test_a_static_go_program_is_served_as_well(tmp_path: Path) -> None:
    """Its runtime interrupts calls by signals, and none of its calls goes through the C library."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no go")
    (tmp_path / "main.go").write_text(GO)
    built = subprocess.run(
        [go, "build", "-o", str(tmp_path / "program"), str(tmp_path / "main.go")],
        env={**os.environ, "CGO_ENABLED": "0"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr

    async def main() -> None:
        async with pods_in(tmp_path) as pods:
            one = await pods.run("127.77.206.2", str(tmp_path / "program"), "one", "127.0.0.1")
            async with asyncio.timeout(20):
                await one.log.grown(0)
            two = await pods.run("127.77.206.3", str(tmp_path / "program"), "two", "127.77.206.2")
            async with asyncio.timeout(20):
                await two.log.grown(0)
            assert one.log.read() == b"one 127.77.206.2\n"
            assert two.log.read() == b"one 127.77.206.3\n"

    asyncio.run(main())
