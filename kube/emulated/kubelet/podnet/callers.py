"""Programs outside of pods that reach pods and Services by their addresses, as an API server on a node does: their
connects are answered in a thread of their own, since whoever starts them may wait for them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import socket
import sys
import threading
from collections.abc import Callable

from mews.kube.emulated.kubelet.mount_namespace import entry_of, filters_lacking
from mews.kube.emulated.kubelet.podnet.addresses import NoEndpointError, mapped, plain
from mews.kube.emulated.kubelet.podnet.calls import SocketCall, next_call
from mews.kube.emulated.kubelet.podnet.network import NO_ADDRESS

PlaceOf = Callable[[str, int], tuple[str, int] | None]
"""Where on this machine an address and port is; None: right there. Raises NoEndpointError."""
_AT_ONCE = 16


class Callers:
    """``prefix`` goes before such a program, which inherits descriptors that are ``passed``; both are empty where this
    machine allows no filters. ``find`` what they call, once there are pods. ``close`` when the programs have ended."""

    def __init__(self) -> None:
        self.prefix: tuple[str, ...] = ()
        self.passed: tuple[int, ...] = ()
        self._place_of: PlaceOf | None = None
        self._listeners: set[int] = set()
        if filters_lacking():
            return
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        door = self._theirs.fileno()
        self.prefix = (*entry_of("self")[:-1], "", str(door), NO_ADDRESS, "--")
        self.passed = (door,)
        self._thread = threading.Thread(target=self._answer, name="callers", daemon=True)
        self._thread.start()

    def find(self, place_of: PlaceOf | None) -> None:
        """From now on that function says where what they call is; None: right there."""
        self._place_of = place_of

    def close(self) -> None:
        """Answer no more."""
        if self.passed:
            self._theirs.send(b"")
            self._thread.join()
            self._ours.close()
            self._theirs.close()
            self.passed = ()

    def _answer(self) -> None:
        poll = select.poll()
        poll.register(self._ours, select.POLLIN)
        while True:
            for ready, _ in poll.poll():
                if ready != self._ours.fileno():
                    self._look(poll, ready)
                    continue
                _, found, _, _ = socket.recv_fds(self._ours, _AT_ONCE, 1, socket.MSG_CMSG_CLOEXEC)
                if not found:
                    self._end()
                    return
                self._listeners.update(found)
                for listener in found:
                    poll.register(listener, select.POLLIN)

    def _look(self, poll: select.poll, listener: int) -> None:
        try:
            call = next_call(listener)
        except EOFError:
            poll.unregister(listener)
            self._listeners.discard(listener)
            os.close(listener)
            return
        if call is None:
            return
        try:
            self._connect(call)
        except (LookupError, ValueError):
            call.proceed()  # else the program would wait for ever, and with it all others
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def _connect(self, call: SocketCall) -> None:
        try:
            place = self._place(call)
            if place is None:
                call.proceed()
                return
            own = call.socket()
        except NoEndpointError:
            call.end(errno.ECONNREFUSED)
            return
        except OSError as error:
            call.end(error.errno or errno.EINVAL)
            return
        if own.family == socket.AF_INET6:
            place = mapped(place[0]), place[1]
        if fcntl.fcntl(own, fcntl.F_GETFL) & os.O_NONBLOCK:
            _do(call, own, place)
        else:  # it may take long, and others are not to wait for it
            threading.Thread(target=_do, args=(call, own, place), daemon=True).start()

    def _place(self, call: SocketCall) -> tuple[str, int] | None:
        place_of = self._place_of
        if place_of is None or call.target is None:
            return None
        return place_of(plain(call.target[0]), call.target[1])

    def _end(self) -> None:
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                os.close(listener)
        self._listeners.clear()


def _do(call: SocketCall, own: socket.socket, place: tuple[str, int]) -> None:
    with own:
        call.end(own.connect_ex(place))
