"""Answers what the pods' processes ask of the network: takes over their filters' listeners, does their binds and
connects."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import random
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mews.kube.emulated.kubelet.podnet.addresses import (
    NoEndpointError,
    PodAddress,
    PodSubnet,
    bound,
    connected,
    mapped,
    plain,
)
from mews.kube.emulated.kubelet.podnet.calls import SocketCall, next_call
from mews.kube.emulated.kubelet.podnet.datagrams import send
from mews.kube.emulated.kubelet.podnet.names import REPORTS
from mews.kube.emulated.kubelet.podnet.service_table import ServiceTable

_BIND_NO_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT: the port is chosen when the socket is connected, as without a bind."""
_LISTENS, _TABLES = "0A", ("tcp", "tcp6")
_LONGEST_IP = 64
NO_ADDRESS = "-"
"""In the place of a pod's address, of what is in none."""


class PodNetwork:
    """The network of one cluster's process pods. Each process that enters a pod sends the listener of its filter
    through ``descriptor``, which it inherits, with its pod's address.
    ``subnet``: what pods are known by; None: by where they are."""

    def __init__(self, services: ServiceTable, rng: random.Random, subnet: PodSubnet | None = None) -> None:
        self._services = services
        self._rng = rng
        self.subnet = subnet or PodSubnet("127", "127")
        self._ours: socket.socket | None = None
        self._theirs: socket.socket | None = None
        self._pods: dict[int, PodAddress] = {}
        self._connecting: set[asyncio.Task[None]] = set()

    @property
    def descriptor(self) -> int:
        """What processes inherit.

        Raises OSError where no more files may be open.
        """
        if self._theirs is None:
            self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._ours.setblocking(False)
            asyncio.get_running_loop().add_reader(self._ours, self._take_over, self._ours)
        return self._theirs.fileno()

    def _take_over(self, ours: socket.socket) -> None:
        """A listener. Whose it is goes on without waiting: what it asks meanwhile is kept by the kernel."""
        data, descriptors, _, _ = socket.recv_fds(ours, _LONGEST_IP, 1)
        for listener in descriptors:
            os.set_inheritable(listener, False)
            ip = self.subnet.place(data.decode("ascii"))
            self._pods[listener] = PodAddress(ip)
            asyncio.get_running_loop().add_reader(listener, self._look, listener)

    def _look(self, listener: int) -> None:
        try:
            call = next_call(listener)
        except EOFError:
            self._forget(listener)
            return
        if call is None:
            return
        try:
            self._do(call, self._pods[listener])
        except Exception:
            call.proceed()  # else the process would wait for ever
            raise

    def _do(self, call: SocketCall, pod: PodAddress) -> None:
        try:
            if call.name in REPORTS:
                REPORTS[call.name](call, self.subnet, pod)
            elif call.name == "sendto":
                self._send(call, pod)
            else:
                self._place(call, pod)
        except NoEndpointError:
            call.end(errno.ECONNREFUSED)
        except OSError as error:
            call.end(error.errno or errno.EINVAL)

    def _place(self, call: SocketCall, pod: PodAddress) -> None:
        if call.target is None:
            call.proceed()
            return
        asked, port = plain(call.target[0]), call.target[1]
        ip = self.subnet.place(asked)
        place: tuple[str | None, int] | None
        if call.name == "bind":
            if ip not in (asked, pod.ip):
                raise OSError(errno.EADDRNOTAVAIL, "another pod's address")
            place = (bound(pod, ip) or (None if ip == asked else ip), port)
        else:
            place = self._destination(call, pod, ip, port)
        if place is None or place[0] is None:
            call.proceed()
            return
        self._act(call, pod, (place[0], place[1]))

    def place_of(self, ip: str, port: int) -> tuple[str, int] | None:
        """Return where on this machine whoever is in no pod is connected to a pod, or to a Service's; None: right
        there.

        Raises NoEndpointError.
        """
        endpoints = self._services.services().get((ip, port, "TCP"))
        if endpoints is None:
            return None if self.subnet.place(ip) == ip else (self.subnet.place(ip), port)
        if not endpoints:
            raise NoEndpointError(f"no endpoint of {ip}:{port} is ready")
        address, number = self._rng.choice(endpoints)
        return self.subnet.place(address), number

    def _destination(self, call: SocketCall, pod: PodAddress, ip: str, port: int) -> tuple[str, int] | None:
        services = self._services.services()
        kind = "UDP" if call.name == "sendto" else "TCP"
        if kind == "TCP" and any(address == ip and number == port for address, number, _ in services):
            with call.socket() as own:
                kind = "UDP" if own.type == socket.SOCK_DGRAM else "TCP"
        found = connected(pod, ip, port, kind, listens=listens, services=services, pick=self._rng.choice)
        if found is None and ip.startswith("127.") and ip != "127.0.0.1":
            return ip, port  # another pod, which is to see whom it is called by
        return None if found is None else (self.subnet.place(found[0]), found[1])

    def _send(self, call: SocketCall, pod: PodAddress) -> None:
        """A datagram to whoever is named with it; the pod's address is its source, though the socket has none."""
        with call.socket() as own:
            place = None
            if own.type == socket.SOCK_DGRAM and call.target is not None:
                place = self._destination(call, pod, self.subnet.place(plain(call.target[0])), call.target[1])
            if place is None:
                call.proceed()
                return
            call.end_with(send(own, call, place, source=pod))

    def _act(self, call: SocketCall, pod: PodAddress, place: tuple[str, int]) -> None:
        own = call.socket()
        if own.family == socket.AF_INET6:
            with contextlib.suppress(OSError):  # it is bound already, and then it has its choice behind it
                own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            place = (mapped(place[0]), place[1])
        if call.name == "bind":
            with own:
                own.bind(place)
            call.end()
            return
        if place[0].removeprefix("::ffff:").startswith("127."):
            _call_as(own, pod.ip)
        if fcntl.fcntl(own, fcntl.F_GETFL) & os.O_NONBLOCK:
            with own:
                call.end(own.connect_ex(place))
            return
        task = asyncio.get_running_loop().create_task(_connect(call, own, place))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    def _forget(self, listener: int) -> None:
        asyncio.get_running_loop().remove_reader(listener)
        del self._pods[listener]
        os.close(listener)

    async def close(self) -> None:
        """Answer no more; the processes must have ended."""
        for listener in list(self._pods):
            self._forget(listener)
        await asyncio.gather(*self._connecting, return_exceptions=True)
        if self._ours is not None and self._theirs is not None:
            asyncio.get_running_loop().remove_reader(self._ours)
            self._ours.close()
            self._theirs.close()
            self._ours = self._theirs = None


async def _connect(call: SocketCall, own: socket.socket, place: tuple[str, int]) -> None:
    """For a process that waits until it is connected; elsewhere, since it may take long."""
    with own:
        call.end(await asyncio.to_thread(partial(own.connect_ex, place)))


def _call_as(own: socket.socket, ip: str) -> None:
    """Let whoever is called see the pod's address; a socket that has one already keeps it."""
    with contextlib.suppress(OSError):
        if own.type == socket.SOCK_STREAM and own.getsockname()[1] == 0:
            own.setsockopt(socket.IPPROTO_IP, _BIND_NO_PORT, 1)
            own.bind((mapped(ip) if own.family == socket.AF_INET6 else ip, 0))


def listens(ip: str, port: int) -> bool:
    """Return whether a socket of TCP listens there. Blocking, for as long as /proc takes."""
    return any((address, number) == (ip, port) for address, number in _listening())


def _listening() -> Iterator[tuple[str, int]]:
    for table in _TABLES:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text("ascii").splitlines()[1:]:
                words = line.split()
                if words[3] == _LISTENS:
                    address, _, number = words[1].partition(":")
                    yield _shown(address), int(number, 16)


def _shown(address: str) -> str:
    """Return an address as /proc has it: words of the machine's byte order, which is little-endian where filters are
    known."""
    packed = b"".join(bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
    return plain(socket.inet_ntop(socket.AF_INET6 if len(packed) == 16 else socket.AF_INET, packed))
