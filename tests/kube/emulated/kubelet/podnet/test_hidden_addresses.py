"""Pods that are known by other addresses than this machine's: what they and their peers see."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from mews.kube.emulated.kubelet.handlers import GrpcCheck, HttpGet, Question, TcpSocket
from mews.kube.emulated.kubelet.mount_namespace import filters_lacking
from mews.kube.emulated.kubelet.podnet.addresses import PodSubnet
from mews.kube.emulated.kubelet.process import RealProcess
from tests.kube.emulated.kubelet.podnet.test_network import PORT, called, pods_in

pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(bool(filters_lacking()), reason=f"no network of pods: {filters_lacking()}"),
]
SUBNET = PodSubnet("10.244", "127.77")
PROGRAM = """
import json, select, socket, sys
family = socket.AF_INET6 if sys.argv[1] == "::" else socket.AF_INET
with socket.create_server((sys.argv[1], PORT), family=family, dualstack_ipv6=family == socket.AF_INET6) as server:
    print("listening", flush=True)
    while True:
        select.select([server], [], [])
        peer, address = server.accept()
        named = [each[0].replace("::ffff:", "") for each in (address, peer.getsockname(), peer.getpeername())]
        peer.sendall(json.dumps(named).encode())
        peer.close()
""".replace("PORT", str(PORT))
ASK = """
import json, socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as s:
    own, peer = s.getsockname()[0], s.getpeername()[0]
    print(json.dumps([own, peer, json.loads(s.recv(99))]))
"""
ECHO = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.bind(("0.0.0.0", PORT))
print("listening", flush=True)
while True:
    data, peer = s.recvfrom(99)
    s.sendto(b" ".join([data, peer[0].encode()]), peer)
""".replace("PORT", str(PORT))
SAY = """
import select, socket, sys
s = socket.socket({"4": socket.AF_INET, "6": socket.AF_INET6}[sys.argv[2]], socket.SOCK_DGRAM)
s.settimeout(9)
if sys.argv[2] == "6":
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.sendto(b"hello", (("::ffff:" if sys.argv[2] == "6" else "") + sys.argv[1], int(sys.argv[3])))
data, peer = s.recvfrom(99)
print(data.decode(), peer[0].replace("::ffff:", ""))
"""


HEALTHY = """
import grpc
from concurrent.futures import ThreadPoolExecutor
server = grpc.server(ThreadPoolExecutor(1))
check = grpc.unary_unary_rpc_method_handler(lambda request, context: bytes((8, 1)))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": check}),))
server.add_insecure_port("0.0.0.0:PORT")
server.start()
print("listening", flush=True)
server.wait_for_termination()
""".replace("PORT", str(PORT))
WEB = """
from http.server import HTTPServer, SimpleHTTPRequestHandler
server = HTTPServer(("", PORT), SimpleHTTPRequestHandler)
print("listening", flush=True)
server.serve_forever()
""".replace("PORT", str(PORT))


async def ready(process: RealProcess) -> RealProcess:
    async with asyncio.timeout(20):
        await process.log.grown(0)
    assert process.log.read() == b"listening\n"
    return process


async def said(process: RealProcess, program: str, *words: str) -> str:
    done = await process.exec(["python3", "-c", program, *words])
    assert done.exit_code == 0, done.stderr.decode()
    return done.stdout.decode().strip()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_both_ends_know_each_other_by_the_pods_addresses(tmp_path: Path, host: str) -> None:
    async def main() -> None:
        async with pods_in(tmp_path, SUBNET) as pods:
            one = await ready(await pods.run("10.244.210.2", "python3", "-c", PROGRAM, host))
            two = await ready(await pods.run("10.244.210.3", "python3", "-c", PROGRAM, host))
            for asking, asked in ((one, "10.244.210.3"), (two, "10.244.210.2")):
                own = "10.244.210.2" if asking is one else "10.244.210.3"
                found = json.loads(await said(asking, ASK, asked, str(PORT)))
                assert found == [own, asked, [own, asked, own]]
            found = json.loads(await said(one, ASK, "127.0.0.1", str(PORT)))
            assert found[2][1] == "10.244.210.2"
            # This machine is the bridge of the node's pods.
            assert json.loads(await called("127.77.210.2")) == ["10.244.210.1", "10.244.210.2", "10.244.210.1"]

    asyncio.run(main())


def test_a_service_leads_there_and_localhost_stays_the_pods_own(tmp_path: Path) -> None:
    async def main() -> None:
        async with pods_in(tmp_path, SUBNET) as pods:
            one = await ready(await pods.run("10.244.211.2", "python3", "-c", PROGRAM, "0.0.0.0"))
            two = await ready(await pods.run("10.244.211.3", "python3", "-c", PROGRAM, "127.0.0.1"))
            pods.table.write_text(f"10.96.7.7 80 TCP\n10.96.7.7 80 TCP 10.244.211.2 {PORT}\n")
            assert json.loads(await said(two, ASK, "10.96.7.7", "80"))[2][0] == "10.244.211.3"
            assert json.loads(await said(two, ASK, "127.0.0.1", str(PORT)))[:2] == ["10.244.211.3", "127.0.0.1"]
            refused = await one.exec(["python3", "-c", ASK, "10.244.211.3", str(PORT)])
            assert b"ConnectionRefusedError" in refused.stderr
            bind = 'import socket; socket.create_server(("10.244.211.3", 1999))'
            assert b"Cannot assign requested address" in (await one.exec(["python3", "-c", bind])).stderr

    asyncio.run(main())


@pytest.mark.parametrize("family", ["4", "6"])
def test_datagrams_go_to_pods_and_services_and_back(tmp_path: Path, family: str) -> None:
    async def main() -> None:
        async with pods_in(tmp_path, SUBNET) as pods:
            await ready(await pods.run("10.244.212.2", "python3", "-c", ECHO))
            two = await pods.run("10.244.212.3", "sleep", "60")
            pods.table.write_text(f"10.96.7.7 53 UDP\n10.96.7.7 53 UDP 10.244.212.2 {PORT}\n")
            for asked, port in (("10.244.212.2", PORT), ("10.96.7.7", 53)):
                assert await said(two, SAY, asked, family, str(port)) == "hello 10.244.212.3 10.244.212.2"

    asyncio.run(main())


def test_probes_and_forwarded_ports_find_the_pod(tmp_path: Path) -> None:
    async def main() -> None:
        async with pods_in(tmp_path, SUBNET) as pods:
            healthy = await ready(await pods.run("10.244.213.2", sys.executable, "-c", HEALTHY))
            for action in (TcpSocket("10.244.213.2", PORT), GrpcCheck("10.244.213.2", PORT)):
                assert (await healthy.ask(Question("liveness", action, 9.0))).well, action
            web = await ready(await pods.run("10.244.213.3", sys.executable, "-c", WEB))
            assert (await web.ask(Question("liveness", HttpGet("10.244.213.3", PORT), 9.0))).well
            one = await ready(await pods.run("10.244.213.4", "python3", "-c", PROGRAM, "0.0.0.0"))
            reader, writer = await one.dial("10.244.213.4", PORT)
            assert json.loads(await reader.read())[1] == "10.244.213.4"
            writer.close()

    asyncio.run(main())


def test_a_pod_in_the_hosts_network_finds_the_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with pods_in(tmp_path, SUBNET) as pods:
            await ready(await pods.run("10.244.214.2", "python3", "-c", PROGRAM, "0.0.0.0"))
            host = await pods.run("10.244.214.3", "sleep", "60", hostNetwork=True)
            assert json.loads(await said(host, ASK, "10.244.214.2", str(PORT)))[2][1] == "10.244.214.2"

    asyncio.run(main())
