"""System calls that the kernel hands over (seccomp_unotify(2)), and their sockets (pidfd_getfd(2))."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_CONTINUE = 1
_PIDFD_GETFD = 438
_NAMES = ("bind", "connect", "accept", "accept4", "getsockname", "getpeername", "sendto", "recvfrom")
_ADDRESSED, _WITH_CONTENT = ("bind", "connect", "sendto"), ("sendto", "recvfrom")
_GENERIC = (200, 203, 202, 242, 204, 205, 206, 207)
_MACHINES = {"x86_64": (49, 42, 43, 288, 51, 52, 44, 45), "aarch64": _GENERIC, "riscv64": _GENERIC}
"""Their numbers."""
_ADD_DESCRIPTOR = 0x40182103
_ADDED = struct.Struct("=QIIII")
_LENGTH = struct.Struct("=I")
_LONGEST, _LARGEST = 128, 0x10000
_FAMILIES = (socket.AF_INET, socket.AF_INET6)


class SocketCall(Struct, frozen=True):
    """A call that waits for its answer: ``name`` is that of its manual page. ``address`` is the bytes of the sockaddr
    that it is given; ``pointers`` are where it wants another one, and its length. ``buffer`` is where the content of
    ``size`` bytes is, or is to be."""

    listener: int
    id: int
    pid: int
    name: str
    descriptor: int
    address: bytes
    pointers: tuple[int, int] = (0, 0)
    flags: int = 0
    buffer: int = 0
    size: int = 0

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
        process = _opened(self.pid)
        try:
            number = _libc().syscall(
                ctypes.c_long(_PIDFD_GETFD), ctypes.c_long(process), ctypes.c_long(self.descriptor), ctypes.c_long(0)
            )
            if number < 0:
                raise OSError(ctypes.get_errno(), "pidfd_getfd")
        finally:
            os.close(process)
        try:
            return socket.socket(fileno=number)
        except OSError:  # it is none
            os.close(number)
            raise

    def write_address(self, family: int, name: tuple[str, int, int, int]) -> None:
        """Write an address where the process wants it: host, port, and of IPv6 flow and scope.

        Raises OSError.
        """
        host, port, flow, scope = name
        packed = struct.pack("=H", family) + port.to_bytes(2, "big")
        if family == socket.AF_INET6:
            packed += struct.pack("=I", flow) + socket.inet_pton(family, host) + struct.pack("=I", scope)
        else:
            packed += socket.inet_pton(family, host) + bytes(8)
        at, length_at = self.pointers
        with _opened_memory(self.pid, os.O_RDWR) as memory:
            room = _LENGTH.unpack(os.pread(memory, _LENGTH.size, length_at))[0]
            os.pwrite(memory, packed[: min(room, len(packed))], at)
            os.pwrite(memory, _LENGTH.pack(len(packed)), length_at)

    def content(self) -> bytes:
        """Return what is to be sent.

        Raises OSError, as where it is larger than any datagram.
        """
        if self.size > _LARGEST:
            raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
        return _memory(self.pid, self.buffer, self.size)

    def put(self, content: bytes) -> None:
        """Write it where the process wants it. Raises OSError."""
        with _opened_memory(self.pid, os.O_WRONLY) as memory:
            os.pwrite(memory, content, self.buffer)

    def give(self, descriptor: int) -> None:
        """Let the process have a copy of a descriptor, and be the call's result.

        Raises OSError.
        """
        is_closed = os.O_CLOEXEC if self.flags & socket.SOCK_CLOEXEC else 0
        asked = bytearray(_ADDED.pack(self.id, 0, descriptor, 0, is_closed))
        self.end_with(fcntl.ioctl(self.listener, _ADD_DESCRIPTOR, asked))

    def proceed(self) -> None:
        """Let the kernel do it as the process asked for it."""
        self._answer(_RESPONSE.pack(self.id, 0, 0, _CONTINUE))

    def end(self, error: int = 0) -> None:
        """It is done, or has failed with that number."""
        self._answer(_RESPONSE.pack(self.id, 0, -error, 0))

    def end_with(self, result: int) -> None:
        """It is done, and returns that number."""
        self._answer(_RESPONSE.pack(self.id, result, 0, 0))

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
    number, pid, _, call, _, _, descriptor, *words = _NOTIFICATION.unpack(buffer)
    name = _names()[call]
    content, flags = words[:2] if name in _WITH_CONTENT else (0, 0), words[2]
    address, length = words[3:5] if name in _WITH_CONTENT else words[:2]
    try:
        read = _memory(pid, address, min(_signed(length), _LONGEST)) if name in _ADDRESSED else b""
        fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", number))  # else the number may be another process' by now
    except OSError:
        read = b""
    pointers = (0, 0) if name in _ADDRESSED else (address, length)
    flags = _signed(flags) if name == "accept4" or name in _WITH_CONTENT else 0
    return SocketCall(listener, number, pid, name, _signed(descriptor), read, pointers, flags, *content)


def _memory(pid: int, address: int, length: int) -> bytes:
    with _opened_memory(pid, os.O_RDONLY) as memory:
        return os.pread(memory, length, address)


@contextlib.contextmanager
def _opened_memory(pid: int, mode: int) -> Iterator[int]:
    descriptor = os.open(f"/proc/{pid}/mem", mode | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@cache
def _names() -> dict[int, str]:
    return dict(zip(_MACHINES[os.uname().machine], _NAMES, strict=True))


def _signed(number: int) -> int:
    """Arguments are registers: of a descriptor only the lower half counts."""
    return ctypes.c_int(number & 0xFFFFFFFF).value


def _opened(thread: int) -> int:
    """Return a descriptor of the process of a thread; most that call are the first of theirs."""
    try:
        return os.pidfd_open(thread)
    except OSError:
        return os.pidfd_open(_leader(thread))


def _leader(thread: int) -> int:
    """Return the process of a thread."""
    text = Path(f"/proc/{thread}/status").read_text("ascii", "replace")
    return int(next(line for line in text.splitlines() if line.startswith("Tgid:")).split()[1])
