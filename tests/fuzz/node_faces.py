"""What nodes and components serve: the emulated kubelets, the hosts' back door, /metrics, the agent of a real node."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hostd.serve import HostServer
from mews.emulator.inventory_file import load_hardware
from mews.emulator.ready_file import write_ready
from mews.emulator.serve import ChassisServer
from mews.harness.clusters.control_plane.identity import ControlPlaneIdentity, make_identity
from mews.harness.clusters.embedded.kubelet_server import KubeletServers
from mews.harness.clusters.real.agent import TOKEN_HEADER, AgentEvents, AgentServer
from mews.harness.package import room
from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource
from mews.kube.client.port import ExecResult
from mews.kube.deviceplugin.port import PluginError
from mews.kube.emulated.streaming.port_forward import Dial
from mews.kube.emulated.streaming.standard_streams import STDOUT, StandardStreams, StreamSession
from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage
from mews.kube.metrics_options import MetricsOptions
from mews.kube.metrics_server import MetricsServer
from mews.listening.http import HttpListener
from tests.fuzz.faces import TOKEN, address_of, as_json, on_a_loop
from tests.fuzz.judge import Face
from tests.fuzz.requests import Sent
from tests.fuzz.secure_faces import certificates

HOST = "host-1"


class OnePod:
    """A kubelet with the pod ``default/p``, and nothing to wait for."""

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
        """Two lines."""
        _check(namespace, pod)
        for line in (b"one\n", b"two\n"):
            yield line

    async def exec(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> ExecResult:
        """What was asked for."""
        _check(namespace, pod)
        return ExecResult(0, " ".join(command).encode())

    def command(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> StreamSession:
        """Sends the command's words."""
        _check(namespace, pod)

        async def run(streams: StandardStreams) -> int:
            await streams.write(STDOUT, " ".join(command).encode())
            return 0

        return run

    def attachment(self, namespace: str, pod: str, container: str) -> StreamSession:
        """Sends a word and ends."""
        return self.command(namespace, pod, container, ["attached"])

    def ports(self, namespace: str, pod: str) -> Dial:
        """Nobody listens."""
        _check(namespace, pod)

        async def dial(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            raise ConnectionRefusedError("nobody listens")

        return dial

    def pods(self) -> Sequence[dict[str, Any]]:
        """Its pod."""
        return [{"metadata": {"namespace": "default", "name": "p"}}]

    def addresses(self) -> Sequence[str]:
        """None."""
        return ()

    def usage(self) -> Sequence[PodUsage]:
        """Nothing."""
        return []

    def node_usage(self) -> ContainerUsage:
        """Nothing."""
        return ContainerUsage(0, 0)

    async def summary(self, *, now: float, files: bool) -> dict[str, Any]:
        """Nothing."""
        return {"node": {"nodeName": "n1", **({"fs": {}} if files else {})}, "pods": []}

    def probe_counts(self) -> Mapping[tuple[str, str, str, str, str, str], int]:
        """None."""
        return {}

    def kubelet_of(self, node: str) -> OnePod | None:
        """Itself, on its node."""
        return self if node == HOST else None


class Reviews:
    """An API that knows one token, whose user may ask for everything."""

    async def create(self, resource: Resource, obj: Object, /) -> Object:
        """The answer to a review."""
        if resource.kind == "TokenReview":
            known = obj["spec"]["token"] == TOKEN
            return {"status": {"authenticated": known, "user": {"username": "somebody"}}}
        return {"status": {"allowed": True}}


def _check(namespace: str, pod: str) -> None:
    if (namespace, pod) != ("default", "p"):
        raise NotFoundError(f"pod {namespace}/{pod} not found")


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
}


def kubelet(token: str = "") -> list[Sent]:
    """Requests of the API server to a kubelet, or of who has a token."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return [
        Sent("GET", "/healthz", headers),
        *(
            Sent("GET", f"/stats/{rest}", headers)
            for rest in ("summary?only_cpu_and_memory=true", "summary", "", "x/y")
        ),
        *(Sent("GET", f"/metrics{rest}", headers) for rest in ("", "/resource", "/cadvisor", "/probes", "/none")),
        *(Sent("GET", f"/containerLogs/default/p/c{query}") for query in ("", "?tailLines=1", "?follow=true")),
        Sent("GET", "/containerLogs/default/another/c"),
        Sent("GET", "/exec/default/p/c?command=id&output=1", UPGRADE),
        as_json("POST", "/exec/default/p/c?command=id&output=1", {"a": "b"}),
    ]


def hosts_control(token: str) -> list[Sent]:
    """Requests of the hosts' back door."""
    headers = {"Authorization": f"Bearer {token}"}
    bdf = "0000:00:00.0"
    actions: tuple[dict[str, Any], ...] = (
        {"do": "rescan"},
        {"do": "discover", "below": "0000:00:01.0"},
        {"do": "power", "device": "000100", "on": False},
        {"do": "power", "device": "000100", "on": True},
        {"do": "bind", "device": "000100", "driver": "nvidia"},
        {"do": "unbind", "bdf": bdf},
        {"do": "write", "path": "/sys/bus/pci/rescan", "text": "1"},
        {"do": "write", "path": "/sys/bus/pci/devices/{bdf}/remove", "device": "000100"},
        {"do": "hold", "device": "000100", "key": "k", "pid": 1, "name": "n", "load": {"utilization": 50}},
        {"do": "hold", "uuids": ["GPU-1"], "computing": True},
        {"do": "release", "key": "k"},
        {"do": "drain", "device": "000100", "on": True},
        {"do": "persistence", "device": "000100", "on": True},
        {"do": "persistence-daemon", "on": False},
        {"do": "unlink-node", "device": "000100"},
        {"do": "remove-gpu", "device": "000100"},
    )
    return [
        *(Sent("GET", f"/v1/{path}", headers) for path in ("hosts", "faults", "speed", "events", "events?since=3")),
        *(
            as_json("POST", "/v1/operate", {"host": HOST, "action": action, "wait_s": 0.5}, headers)
            for action in actions
        ),
        *(
            as_json("POST", "/v1/faults", {"host": HOST, "spec": spec}, headers)
            for spec in ({"kind": "driver-probe-fails", "count": 1}, {"kind": "xid", "device": "000100", "xid": 79})
        ),
        as_json("PUT", "/v1/speed", {"speed": 1000}, headers),
        Sent("DELETE", f"/v1/faults?host={HOST}", headers),
    ]


def metrics(headers: dict[str, str]) -> list[Sent]:
    """Requests of Prometheus."""
    open_metrics = {"Accept": "application/openmetrics-text; version=1.0.0; charset=utf-8"}
    return [
        Sent("GET", "/metrics", headers),
        Sent("GET", "/metrics?name[]=moves_total", headers),
        Sent("GET", "/metrics", {**headers, **open_metrics, "Accept-Encoding": "gzip"}),
        Sent("HEAD", "/", headers),
        as_json("POST", "/metrics", {"a": "b"}, headers),
    ]


def agent(token: str) -> list[Sent]:
    """Requests of a harness to the agent of a node."""
    headers = {TOKEN_HEADER: token}
    return [
        *(Sent("GET", f"/v1/{path}", headers) for path in ("seq", "pod-resources")),
        as_json("POST", "/v1/seq", {"a": "b"}, headers),
    ]


@contextmanager
def kubelets() -> Iterator[list[Face]]:
    """A kubelet's HTTPS server, asked by who has the certificate and by who has none."""
    with tempfile.TemporaryDirectory(prefix="mews-fuzz-") as name:
        identity = make_identity(Path(name), shutil.which("openssl") or "openssl")
        with on_a_loop(lambda: _kubelet_servers(identity), KubeletServers.close) as servers:
            address = servers.address(HOST)
            assert address is not None
            yield [
                Face("kubelet with the certificate", address, kubelet(), identity.holder_context()),
                Face("kubelet without it", address, kubelet(), identity.client_context()),
                Face("kubelet under TLS with a token", address, kubelet(TOKEN), identity.client_context()),
            ]


async def _kubelet_servers(identity: ControlPlaneIdentity) -> KubeletServers:
    servers = KubeletServers(OnePod(), identity.node_context(["127.0.0.1"]), Reviews())
    await servers.open([HOST])
    return servers


@contextmanager
def hosts() -> Iterator[list[Face]]:
    """The hosts of a hardware file, beside their chassis."""
    hardware = load_hardware(room("fixtures") / "hardware" / "demo.yaml")
    with tempfile.TemporaryDirectory(prefix="mews-fuzz-") as name:
        folder = Path(name)
        chassis = ChassisServer(hardware, context=EmulationContext(speed=1000.0), insecure=True)
        chassis.start()
        try:
            write_ready(folder / "chassis.json", chassis.ready())
            server = HostServer(
                hardware,
                chassis=folder / "chassis.json",
                root=folder / "h",
                fuse="no",
                context=EmulationContext(speed=1000.0),
                token=TOKEN,
            )
            server.start()
            try:
                address = address_of(server.ready()["control"]["url"])
                yield [
                    Face("hosts' control with the token", address, hosts_control(TOKEN)),
                    Face("hosts' control without it", address, hosts_control("another")),
                ]
            finally:
                server.stop()
        finally:
            chassis.stop()


@contextmanager
def components() -> Iterator[list[Face]]:
    """``/metrics`` as it is by default, and with all that can be asked of its readers."""
    registry = CollectorRegistry()
    Counter("moves", "GPUs that moved.", registry=registry).inc()
    with certificates() as made:
        plain = MetricsServer(registry, MetricsOptions(0))
        guarded = MetricsServer(registry, MetricsOptions(0, certificate=made.certificate, key=made.key, token=TOKEN))
        try:
            trust = made.client_context()
            yield [
                Face("metrics", ("127.0.0.1", plain.port), metrics({})),
                Face(
                    "metrics under TLS with the token",
                    ("127.0.0.1", guarded.port),
                    metrics({"Authorization": f"Bearer {TOKEN}"}),
                    trust,
                ),
                Face("metrics under TLS without it", ("127.0.0.1", guarded.port), metrics({}), trust),
            ]
        finally:
            plain.stop()
            guarded.stop()


class NoPodResources:
    """A node whose kubelet does not answer."""

    async def list(self) -> Any:
        """It does not."""
        raise PluginError("Unavailable", "nobody listens")


@contextmanager
def agents() -> Iterator[list[Face]]:
    """The agent of a real node."""
    with on_a_loop(_agent, HttpListener.close) as listener:
        host, port = listener.address
        yield [
            Face("agent with the token", (host, port), agent(TOKEN)),
            Face("agent without it", (host, port), agent("another")),
        ]


async def _agent() -> HttpListener:
    story = AgentEvents()
    story.notify("record", record={"event": "a"})
    listener = AgentServer(story, NoPodResources(), TOKEN).listener()
    await listener.open()
    return listener
