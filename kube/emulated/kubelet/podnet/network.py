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

from mews.kube.emulated.kubelet.podnet.addresses import NoEndpoint, PodAddress, bound, connected, mapped, plain
from mews.kube.emulated.kubelet.podnet.calls import SocketCall, next_call
from mews.kube.emulated.kubelet.podnet.service_table import ServiceTable

_BIND_NO_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT: the port is chosen when the socket is connected, as without a bind."""
_LISTENS, _TABLES = "0A", ("tcp", "tcp6")
_AT_ONCE = 64


class PodNetwork:
    """The network of one cluster's process pods. Each process that enters a pod hands over the listener of its filter
    by the socket at ``path``, with its pod's address, and goes on when that is taken."""

    def __init__(self, path: Path, services: ServiceTable, rng: random.Random) -> None:
        self.path = path
        self._services = services
        self._rng = rng
        self._door: socket.socket | None = None
        self._arriving: set[socket.socket] = set()
        self._pods: dict[int, PodAddress] = {}
        self._connecting: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Be there for processes from now on; does nothing the second time.

        Raises OSError.
        """
        if self._door is not None:
            return
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._door.setblocking(False)
        self._door.bind(str(self.path))
        self._door.listen(_AT_ONCE)
        asyncio.get_running_loop().add_reader(self._door, self._arrive)

    def _arrive(self) -> None:
        assert self._door is not None, "open until closed"
        with contextlib.suppress(BlockingIOError):
            guest, _ = self._door.accept()
            guest.setblocking(False)
            self._arriving.add(guest)
            asyncio.get_running_loop().add_reader(guest, self._take_over, guest)

    def _take_over(self, guest: socket.socket) -> None:
        """The address of a pod and a listener; or nothing, where the process has ended before."""
        data, descriptors, _, _ = socket.recv_fds(guest, 64, 1)
        asyncio.get_running_loop().remove_reader(guest)
        for listener in descriptors:
            os.set_inheritable(listener, False)
            self._pods[listener] = PodAddress(data.decode("ascii"))
            asyncio.get_running_loop().add_reader(listener, self._look, listener)
            with contextlib.suppress(OSError):
                guest.send(b"1")
        self._arriving.discard(guest)
        guest.close()

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
        if call.target is None:
            call.proceed()
            return
        ip, port = plain(call.target[0]), call.target[1]
        try:
            place = (bound(pod, ip), port) if call.is_bind else self._destination(call, pod, ip, port)
            if place is None or place[0] is None:
                call.proceed()
                return
            self._act(call, pod, (place[0], place[1]))
        except NoEndpoint:
            call.end(errno.ECONNREFUSED)
        except OSError as error:
            call.end(error.errno or errno.EINVAL)

    def _destination(self, call: SocketCall, pod: PodAddress, ip: str, port: int) -> tuple[str, int] | None:
        services = self._services.services()
        kind = "TCP"
        if any(address == ip and number == port for address, number, _ in services):
            with call.socket() as own:
                kind = "UDP" if own.type == socket.SOCK_DGRAM else "TCP"
        found = connected(pod, ip, port, kind, listens=listens, services=services, pick=self._rng.choice)
        if found is None and ip.startswith("127.") and ip != "127.0.0.1":
            return ip, port  # another pod, which is to see whom it is called by
        return found

    def _act(self, call: SocketCall, pod: PodAddress, place: tuple[str, int]) -> None:
        own = call.socket()
        if own.family == socket.AF_INET6:
            with contextlib.suppress(OSError):  # it is bound already, and then it has its choice behind it
                own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            place = (mapped(place[0]), place[1])
        if call.is_bind:
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
        loop = asyncio.get_running_loop()
        for listener in list(self._pods):
            self._forget(listener)
        for guest in self._arriving:
            loop.remove_reader(guest)
            guest.close()
        self._arriving.clear()
        await asyncio.gather(*self._connecting, return_exceptions=True)
        if self._door is not None:
            loop.remove_reader(self._door)
            self._door.close()
            self._door = None
            self.path.unlink(missing_ok=True)


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
    """Whether a socket of TCP listens there. Blocking, for as long as /proc takes."""
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
    """An address as /proc has it: words of the machine's byte order, which is little-endian where filters are known."""
    packed = b"".join(bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
    return plain(socket.inet_ntop(socket.AF_INET6 if len(packed) == 16 else socket.AF_INET, packed))
