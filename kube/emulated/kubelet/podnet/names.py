"""What a pod's sockets are called by themselves and by their peers, where pods are known by other addresses than this
machine's: accept(2), getsockname(2) and getpeername(2) tell those."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket

from mews.kube.emulated.kubelet.podnet.addresses import PodSubnet, mapped, plain
from mews.kube.emulated.kubelet.podnet.calls import SocketCall

_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def tell_name(call: SocketCall, subnet: PodSubnet) -> None:
    """Answer a getsockname or getpeername.

    Raises OSError.
    """
    with call.socket() as own:
        if own.family not in _FAMILIES:
            call.proceed()
            return
        name = own.getsockname() if call.name == "getsockname" else own.getpeername()
        call.tell(own.family, _known(name, own.family, subnet))
    call.end()


def accept(call: SocketCall, subnet: PodSubnet) -> None:
    """Accept what has come. Nobody else accepts on that socket, so what is there stays there.

    Where nothing has come to a socket that waits for it, the kernel waits, since it knows of signals: then the process
    is told this machine's address of its peer, until it asks for its name.

    Raises OSError.
    """
    with call.socket() as own:
        if own.family not in _FAMILIES or not all(call.pointers):
            call.proceed()
            return
        if not _has_come(own):
            if fcntl.fcntl(own, fcntl.F_GETFL) & os.O_NONBLOCK:
                call.end(errno.EAGAIN)
            else:
                call.proceed()
            return
        made, name = own.accept()
        with made:
            made.setblocking(not call.flags & socket.SOCK_NONBLOCK)
            call.tell(own.family, _known(name, own.family, subnet))
            call.give(made.fileno())


def _has_come(own: socket.socket) -> bool:
    poll = select.poll()
    poll.register(own, select.POLLIN)
    return bool(poll.poll(0))


def _known(name: tuple[str, int, int, int], family: int, subnet: PodSubnet) -> tuple[str, int, int, int]:
    host, port, flow, scope = (*name, 0, 0)[:4]
    known = subnet.known(plain(host))
    if known == plain(host):
        return host, port, flow, scope
    return mapped(known) if family == socket.AF_INET6 else known, port, flow, scope
