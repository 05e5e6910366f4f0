"""All faces, by who serves them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from tests.fuzz.cdim_faces import pool
from tests.fuzz.faces import api, chassis
from tests.fuzz.fm_faces import fabric
from tests.fuzz.judge import Face
from tests.fuzz.node_faces import agents, components, hosts, kubelets
from tests.fuzz.proxy_faces import proxies
from tests.fuzz.secure_faces import secure_api, secure_chassis
from tests.fuzz.service_faces import recordings, services
from tests.fuzz.session_faces import sessions
from tests.fuzz.socket_faces import runtimes, sockets
from tests.fuzz.socket_judge import SocketFace

Group = Callable[[], AbstractContextManager[list[Face]]]

FACES: dict[Group, tuple[str, ...]] = {
    sessions: ("session with the token", "session without it", "page of a session as nobody"),
    chassis: (
        "h3api and resource-pool",
        "redfish as administrator",
        "redfish as nobody",
        "control with the token",
        "control without it",
    ),
    fabric: ("fm with a token", "fm as nobody"),
    pool: ("cdim",),
    services: ("service gpushare-extender", "service koord-scheduler", "service koord-webhook"),
    api: ("kubernetes as everybody", "kubernetes with the token", "kubernetes without it"),
    hosts: ("hosts' control with the token", "hosts' control without it"),
    recordings: ("recording",),
    agents: ("agent with the token", "agent without it"),
    kubelets: ("kubelet with the certificate", "kubelet without it", "kubelet under TLS with a token"),
    components: ("metrics", "metrics under TLS with the token", "metrics under TLS without it"),
    secure_chassis: (
        "redfish under TLS as administrator",
        "redfish under TLS as nobody",
        "control under TLS with the token",
        "control under TLS without it",
    ),
    proxies: ("proxy under TLS with the token", "proxy under TLS without it"),
    secure_api: ("kubernetes under TLS with the token", "kubernetes under TLS without it"),
}
"""The names of the faces that each group serves: to serve no more than is asked for."""
GROUPS: tuple[Group, ...] = tuple(FACES)

SOCKETS: dict[Callable[[], AbstractContextManager[list[SocketFace]]], tuple[str, ...]] = {
    sockets: ("kubelet's registration", "device plugin", "pod resources", "runtime hooks", "NVML of a host"),
    runtimes: ("runtime proxy", "parameter server"),
}
"""The same of what listens beside HTTP."""
