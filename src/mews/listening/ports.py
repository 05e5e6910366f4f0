"""Ports of loopback that are taken before it is known who will listen on them."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


def held_port(host: str = LOOPBACK, port: int = 0) -> socket.socket:
    """Return a socket with a port that nobody else gets while it is open, 0 for a free one; it listens once it is given
    to a server.

    Raises OSError where the port is taken.
    """
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(port != 0))
        held.bind((host, port))
    except OSError:
        held.close()
        raise
    return held


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens there.

    Raises OSError where the port is taken.
    """
    return socket.create_server((host, port))


def free_port(host: str = LOOPBACK) -> int:
    """Return a port that was free a moment ago, for a program of others that takes a number and no socket."""
    return free_ports(1, host)[0]


def free_ports(count: int, host: str = LOOPBACK) -> list[int]:
    """Return them as many ports, no two the same."""
    probes = [held_port(host) for _ in range(count)]
    try:
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()
