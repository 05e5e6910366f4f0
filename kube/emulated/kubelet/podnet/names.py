"""What a pod's sockets are called by themselves and by their peers, where pods are known by other addresses than this
machine's: accept(2), getsockname(2), getpeername(2) and recvfrom(2) report those."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Callable, Mapping

from mews.kube.emulated.kubelet.podnet.addresses import PodAddress, PodSubnet, mapped, plain
from mews.kube.emulated.kubelet.podnet.calls import SocketCall

_LARGEST = 0x10000
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def report_name(call: SocketCall, subnet: PodSubnet, pod: PodAddress) -> None:
    """Answer a getsockname or getpeername.

    Raises OSError.
    """
    with call.socket() as own:
        if own.family not in _FAMILIES:
            call.proceed()
            return
        if call.name == "getsockname":
            name, seen_by = own.getsockname(), None
        else:
            name, seen_by = own.getpeername(), pod if plain(own.getsockname()[0]) == pod.ip else None
        call.write_address(own.family, _known(name, own.family, subnet, seen_by))
    call.end()


def accept(call: SocketCall, subnet: PodSubnet, pod: PodAddress) -> None:
    """Accept what has come.

    Where nothing has come to a socket that waits for it, the kernel waits, since it knows of signals. The process then
    sees this machine's address of its peer, until it calls getpeername.

    Raises OSError.
    """
    with call.socket() as own:
        if own.family not in _FAMILIES or not all(call.pointers):
            call.proceed()
            return
        found = _accepted(own)
        if found is None:
            _leave_empty(call, own)
            return
        made, name = found
        with made:
            made.setblocking(not call.flags & socket.SOCK_NONBLOCK)
            seen_by = pod if plain(made.getsockname()[0]) == pod.ip else None
            call.write_address(own.family, _known(name, own.family, subnet, seen_by))
            call.give(made.fileno())


def _accepted(own: socket.socket) -> tuple[socket.socket, tuple[str, int, int, int]] | None:
    """Accept without waiting; None where nothing has come, or a process that waits in the kernel has been quicker.
    Nobody sees that the socket does not wait for a moment: whoever accepts on it is answered here, one after the other.
    """
    flags = fcntl.fcntl(own, fcntl.F_GETFL)
    try:
        fcntl.fcntl(own, fcntl.F_SETFL, flags | os.O_NONBLOCK)
        return own.accept()
    except BlockingIOError:
        return None
    finally:
        fcntl.fcntl(own, fcntl.F_SETFL, flags)


def _leave_empty(call: SocketCall, own: socket.socket, *, waits: bool = True) -> None:
    if waits and not fcntl.fcntl(own, fcntl.F_GETFL) & os.O_NONBLOCK:
        call.proceed()
    else:
        call.end(errno.EAGAIN)


def receive(call: SocketCall, subnet: PodSubnet, pod: PodAddress) -> None:
    """Receive a datagram, and report its sender; where none has come, as ``accept``.

    Raises OSError.
    """
    with call.socket() as own:
        if own.family not in _FAMILIES or own.type != socket.SOCK_DGRAM or not all(call.pointers):
            call.proceed()
            return
        try:
            data, name = own.recvfrom(min(call.size, _LARGEST), call.flags | socket.MSG_DONTWAIT)
        except BlockingIOError:
            _leave_empty(call, own, waits=not call.flags & socket.MSG_DONTWAIT)
            return
        call.put(data)
        call.write_address(own.family, _known(name, own.family, subnet, pod))
        call.end_with(len(data))


REPORTS: Mapping[str, Callable[[SocketCall, PodSubnet, PodAddress], None]] = {
    "accept": accept,
    "accept4": accept,
    "getsockname": report_name,
    "getpeername": report_name,
    "recvfrom": receive,
}
"""By the name of the call; each raises OSError."""


def _known(
    name: tuple[str, int, int, int], family: int, subnet: PodSubnet, seen_by: PodAddress | None
) -> tuple[str, int, int, int]:
    host, port, flow, scope = (*name, 0, 0)[:4]
    known = subnet.known(plain(host), seen_by)
    if known == plain(host):
        return host, port, flow, scope
    return mapped(known) if family == socket.AF_INET6 else known, port, flow, scope
