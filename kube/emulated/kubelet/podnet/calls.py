"""System calls that the kernel hands over (seccomp_unotify(2)), and their sockets (pidfd_getfd(2))."""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import socket
import struct
from pathlib import Path

from msgspec import Struct

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_CONTINUE = 1
_PIDFD_GETFD = 438
_MACHINES = {"x86_64": (49, 42), "aarch64": (200, 203)}
"""Numbers of bind(2) and connect(2)."""
_LONGEST = 128
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class SocketCall(Struct, frozen=True):
    """A bind or connect that waits for its answer; ``address`` is the bytes of its sockaddr."""

    listener: int
    id: int
    pid: int
    is_bind: bool
    descriptor: int
    address: bytes

    @property
    def target(self) -> tuple[str, int] | None:
        """Address and port; None for other families than IP."""
        if len(self.address) < 8:
            return None
        family, port = struct.unpack("=H", self.address[:2])[0], int.from_bytes(self.address[2:4], "big")
        if family == socket.AF_INET:
            return socket.inet_ntop(socket.AF_INET, self.address[4:8]), port
        if family == socket.AF_INET6 and len(self.address) >= 24:
            return socket.inet_ntop(socket.AF_INET6, self.address[8:24]), port
        return None

    def socket(self) -> socket.socket:
        """Return the very socket of the process, under a number of our own.

        Raises OSError where the process or its descriptor is gone.
        """
        libc = ctypes.CDLL(None, use_errno=True)
        process = os.pidfd_open(_leader(self.pid))
        try:
            number = libc.syscall(
                ctypes.c_long(_PIDFD_GETFD), ctypes.c_long(process), ctypes.c_long(self.descriptor), ctypes.c_long(0)
            )
            if number < 0:
                raise OSError(ctypes.get_errno(), "pidfd_getfd")
        finally:
            os.close(process)
        return socket.socket(fileno=number)

    def proceed(self) -> None:
        """Let the kernel do it as the process asked for it."""
        self._answer(_RESPONSE.pack(self.id, 0, 0, _CONTINUE))

    def end(self, error: int = 0) -> None:
        """It is done, or has failed with that number."""
        self._answer(_RESPONSE.pack(self.id, 0, -error, 0))

    def _answer(self, response: bytes) -> None:
        try:
            fcntl.ioctl(self.listener, _SEND, response)
        except OSError:
            return  # the process is gone, and nobody waits for it


def next_call(listener: int) -> SocketCall | None:
    """Return the call that waits there, None where none does.

    Raises EOFError once no process is left that could make one.
    """
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    events = poll.poll(0)
    if not events:
        return None
    if not events[0][1] & select.POLLIN:
        raise EOFError
    buffer = bytearray(_NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except OSError:  # whoever made it has been killed
        return None
    number, pid, _, call, _, _, descriptor, address, length, *_ = _NOTIFICATION.unpack(buffer)
    try:
        read = _memory(pid, address, min(length, _LONGEST))
        fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", number))  # else the number may be another process' by now
    except OSError:
        read = b""
    is_bind = call == _MACHINES[os.uname().machine][0]
    return SocketCall(listener, number, pid, is_bind, _signed(descriptor), read)


def _memory(pid: int, address: int, length: int) -> bytes:
    descriptor = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, length, address)
    finally:
        os.close(descriptor)


def _signed(number: int) -> int:
    """Arguments are registers: of a descriptor only the lower half counts."""
    return ctypes.c_int(number & 0xFFFFFFFF).value


def _leader(thread: int) -> int:
    """Return the process of a thread."""
    text = Path(f"/proc/{thread}/status").read_text("ascii", "replace")
    return int(next(line for line in text.splitlines() if line.startswith("Tgid:")).split()[1])
