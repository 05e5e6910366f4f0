"""Which addresses a pod's sockets get. Pure.

A pod has two of this machine's loopback addresses: its own, status.podIP, by which all others know it, and one that
replaces its 127.0.0.1. So pods with the same ports do not meet, and what listens on 127.0.0.1 alone is not found at
the pod's address, as in a network namespace.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

_ANY, _LOOPBACK = ("0.0.0.0", "::"), ("127.0.0.1", "::1")
_MAPPED = "::ffff:"

Listens = Callable[[str, int], bool]
"""Whether something listens at an address and port of this machine."""
Pick = Callable[[Sequence[tuple[str, int]]], tuple[str, int]]
"""One of some endpoints."""
Services = Mapping[tuple[str, int, str], Sequence[tuple[str, int]]]
"""(address of a Service, port, ``TCP`` or ``UDP``) -> its endpoints that are ready."""


class NoEndpointError(Exception):
    """A Service has no endpoint that is ready: its connections are refused, as kube-proxy does."""


class PodAddress(Struct, frozen=True):
    """A pod's two addresses."""

    ip: str

    @property
    def local(self) -> str:
        """Its 127.0.0.1: 127.78.2.3 for 127.77.2.3."""
        first, second, rest = self.ip.split(".", 2)
        return f"{first}.{int(second) + 1}.{rest}"


class PodSubnet(Struct, frozen=True):
    """The addresses by which the pods of a cluster are known, ``10.244`` as kubeadm and kind have it, and where on this
    machine they are, ``127.77``. A real API server connects to no loopback address
    (k8s.io/kubernetes/pkg/proxy/util, IsProxyableIP); the same one for both: pods are known by where they are."""

    shown: str
    inner: str

    @property
    def is_hidden(self) -> bool:
        """Whether pods are known by other addresses than this machine's."""
        return self.shown != self.inner

    def place(self, ip: str) -> str:
        """Return where on this machine an address is: 127.77.2.3 for 10.244.2.3; others are where they say."""
        return f"{self.inner}{ip[len(self.shown) :]}" if ip.startswith(f"{self.shown}.") else ip

    def known(self, ip: str, pod: PodAddress | None = None) -> str:
        """Return what a pod calls an address of this machine: 10.244.2.3 for 127.77.2.3, 127.0.0.1 for 127.78.2.3.

        ``pod`` is whose own address has this as its peer: there is no 127.0.0.1, and what comes from this machine has
        the first address of the node's pods, 10.244.2.1, as where CNI makes a bridge.
        """
        if not self.is_hidden:
            return ip
        if pod is not None and ip == _LOOPBACK[0]:
            return f"{self.known(pod.ip).rpartition('.')[0]}.1"
        if ip.startswith(f"{PodAddress(f'{self.inner}.0.0').local.removesuffix('.0.0')}."):
            return _LOOPBACK[0]
        return f"{self.shown}{ip[len(self.inner) :]}" if ip.startswith(f"{self.inner}.") else ip


def bound(pod: PodAddress, ip: str) -> str | None:
    """Return where a socket is bound that is to be bound at ``ip``; None: right there."""
    if ip in _ANY:
        return pod.ip
    return pod.local if ip in _LOOPBACK else None


def connected(
    pod: PodAddress, ip: str, port: int, kind: str, *, listens: Listens, services: Services, pick: Pick
) -> tuple[str, int] | None:
    """Return where a socket is connected that is to be connected to ``ip``; None: right there. ``kind``: TCP or UDP.

    What a pod does not have at its 127.0.0.1 is this machine's, which has the API there.

    Raises NoEndpointError.
    """
    if ip in _ANY or ip in _LOOPBACK:
        return next(((own, port) for own in (pod.local, pod.ip) if listens(own, port)), None)
    endpoints = services.get((ip, port, kind))
    if endpoints is None:
        return None
    if not endpoints:
        raise NoEndpointError(f"no endpoint of {ip}:{port} is ready")
    return pick(endpoints)


def plain(ip: str) -> str:
    """Return an address of IPv4 in the form of IPv6 as one of IPv4; others as they are."""
    address = ipaddress.ip_address(ip)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(address if mapped is None else mapped)


def mapped(ip: str) -> str:
    """Return an address of IPv4 for a socket of IPv6."""
    return ip if ":" in ip else f"{_MAPPED}{ip}"
