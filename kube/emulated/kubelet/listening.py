"""Which address a container listens on, as /proc says: for ports that are open on loopback alone."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from mews.kube.emulated.kubelet.handlers import not_listening

_LISTENS = "0A"
_TABLES = ("tcp", "tcp6")


async def connect_to_listener(group: int, ip: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to that address, else to another one on which a process of the container listens at the port.

    Raises OSError.
    """
    with contextlib.suppress(ConnectionRefusedError):
        return await asyncio.open_connection(ip, port)
    there = await asyncio.to_thread(listener_of, group, port)
    if there is None:
        raise ConnectionRefusedError(not_listening(port))
    return await asyncio.open_connection(there, port)


def listener_of(group: int, port: int) -> str | None:
    """Return the address on which a process of a container listens at the port, to connect to: one of that process
    group or session, or of the mount namespace that its first process has for itself (where commands join it)."""
    open_there = dict(_listeners(port))
    if not open_there:
        return None
    own = _namespace(str(group))
    own = "" if own == _namespace("self") else own
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (_belongs(entry, group) or (own and _namespace(entry.name) == own)):
            for inode in _sockets(entry):
                if inode in open_there:
                    return open_there[inode]
    return None


def _listeners(port: int) -> Iterator[tuple[str, str]]:
    """Inode and address of all that listen at a port."""
    for table in _TABLES:
        try:
            lines = Path(f"/proc/net/{table}").read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            address, _, number = words[1].partition(":")
            if words[3] == _LISTENS and int(number, 16) == port:
                yield words[9], _address(address)


def _address(shown: str) -> str:
    words = [int(shown[at : at + 8], 16) for at in range(0, len(shown), 8)]
    found = ipaddress.ip_address(struct.pack(f"={len(words)}I", *words))
    if found.is_unspecified:
        return "127.0.0.1" if found.version == 4 else "::1"
    return str(found)


def _namespace(process: str) -> str:
    try:
        return os.readlink(f"/proc/{process}/ns/mnt")
    except OSError:
        return ""


def _belongs(entry: Path, group: int) -> bool:
    try:
        fields = (entry / "stat").read_text("latin-1").rpartition(")")[2].split()
    except OSError:
        return False
    return str(group) in (fields[2], fields[3])


def _sockets(entry: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in os.listdir(entry / "fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(entry / "fd" / name)
                if target.startswith("socket:["):
                    yield target[8:-1]
