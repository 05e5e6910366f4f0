"""Where the tasks of a job are: the cluster's names, or a file in the form of /etc/hosts that stands in for them."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from mews.kube.clock import rest

HOSTS_FILE = "MEWS_HOSTS"
"""Environment variable: the file that an emulated cluster keeps current, since it has no DNS."""

_POLL_S = 0.1


def split(address: str) -> tuple[str, int]:
    """Name and port of ``name:port``."""
    name, _, port = address.rpartition(":")
    return name, int(port)


def look_up(name: str, file: Path) -> str | None:
    """Return the address of a name in a hosts file, None where there is none yet."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    for line in lines:
        words = line.split("#", 1)[0].split()
        if name in words[1:]:
            return words[0]
    return None


async def resolve(name: str) -> str:
    """Return the address of a name, waiting until it has one."""
    while True:
        file = os.environ.get(HOSTS_FILE)
        found = look_up(name, Path(file)) if file else await _by_dns(name)
        if found is not None:
            return found
        await rest(_POLL_S)


async def _by_dns(name: str) -> str | None:
    try:
        answers = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror:
        return None
    return str(answers[0][4][0])


async def own_address(name: str) -> str:
    """Return what a server binds to: its own name's address where a hosts file says it (all pods share one machine
    then), else every address."""
    return await resolve(name) if os.environ.get(HOSTS_FILE) else "0.0.0.0"
