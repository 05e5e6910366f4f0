"""What a probe or a hook does in a container, as values (core/v1 ProbeHandler and LifecycleHandler). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

UNREACHABLE = 0
"""The port of an action whose named port the container does not declare."""


class Exec(Struct, frozen=True):
    """Run a command; it must end with 0."""

    command: tuple[str, ...]


class HttpGet(Struct, frozen=True):
    """Ask for a page; it must answer with 200 to 399."""

    host: str
    port: int
    path: str = "/"
    scheme: str = "http"
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def url(self) -> str:
        """As Go prints it."""
        return f"{self.scheme}://{self.host}:{self.port}{self.path}"


class TcpSocket(Struct, frozen=True):
    """A check that connects to a port."""

    host: str
    port: int


class GrpcCheck(Struct, frozen=True):
    """Ask a service for its health (grpc.health.v1); probes only."""

    host: str
    port: int
    service: str = ""


class Sleep(Struct, frozen=True):
    """Let time pass; hooks only."""

    seconds: float


Action = Exec | HttpGet | TcpSocket | GrpcCheck | Sleep


class Question(Struct, frozen=True):
    """One asking: ``purpose`` is ``liveness``, ``readiness``, ``startup``, ``postStart`` or ``preStop``."""

    purpose: str
    action: Action
    timeout_s: float


class HandlerResult(Struct, frozen=True):
    """The result of a probe or hook: whether it succeeded, and the text that goes with it."""

    well: bool
    text: str = ""
    code: int = 0
    """A command's exit code."""


def action_of(handler: Mapping[str, Any], container: Mapping[str, Any], pod_ip: str) -> Action | None:
    """Return the action of a handler, for a pod with that address; None for a kind that is not known here."""
    if "exec" in handler:
        return Exec(tuple(map(str, (handler["exec"] or {}).get("command") or ())))
    if "httpGet" in handler:
        asked = handler["httpGet"] or {}
        path = str(asked.get("path") or "/")
        return HttpGet(
            host=str(asked.get("host") or pod_ip),
            port=_port(asked.get("port"), container.get("ports") or ()),
            path=path if path.startswith("/") else f"/{path}",
            scheme=str(asked.get("scheme") or "HTTP").lower(),
            headers=tuple((str(h["name"]), str(h["value"])) for h in asked.get("httpHeaders") or ()),
        )
    if "tcpSocket" in handler:
        asked = handler["tcpSocket"] or {}
        return TcpSocket(str(asked.get("host") or pod_ip), _port(asked.get("port"), container.get("ports") or ()))
    if "grpc" in handler:
        asked = handler["grpc"] or {}
        return GrpcCheck(pod_ip, int(asked.get("port") or UNREACHABLE), str(asked.get("service") or ""))
    if "sleep" in handler:
        return Sleep(float((handler["sleep"] or {}).get("seconds") or 0))
    return None


def timed_out(action: Action) -> str:
    """Return what the kubelet says when an action takes too long."""
    match action:
        case Exec(command):
            return f'command "{" ".join(command)}" timed out'
        case HttpGet():
            return f'Get "{action.url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
        case TcpSocket(host, port):
            return f"dial tcp {host}:{port}: i/o timeout"
        case GrpcCheck():
            return "timeout: health rpc did not complete within its time"
        case Sleep():
            return "context deadline exceeded"


def refused(action: Action) -> str:
    """Return the text of an attempt that nobody answers, as where a simulated container is to be unhealthy."""
    match action:
        case HttpGet():
            return f'Get "{action.url}": dial tcp {action.host}:{action.port}: connect: connection refused'
        case TcpSocket(host, port):
            return f"dial tcp {host}:{port}: connect: connection refused"
        case GrpcCheck():
            return 'service unhealthy (responded with "NOT_SERVING")'
        case Exec() | Sleep():
            return ""


def not_listening(port: int) -> str:
    """Return what containerd says of a forwarded port on which nobody listens."""
    there = f"dial tcp4 127.0.0.1:{port}: connect: connection refused"
    return f"failed to connect to localhost:{port} inside namespace, IPv4: {there}"


def _port(port: Any, declared: Sequence[Mapping[str, Any]]) -> int:
    if isinstance(port, int):
        return port
    named = next((entry["containerPort"] for entry in declared if entry.get("name") == port), None)
    if named is not None:
        return int(named)
    return int(port) if str(port).isdigit() else UNREACHABLE
