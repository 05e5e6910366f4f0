"""A lean keep-alive client of the Kubernetes API for loads: raw requests, answers hardly looked at."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Target:
    """An API server: ``url``, bearer token ("" for none), file of its authority (None over http)."""

    name: str
    url: str
    token: str = ""
    authority: str | None = None

    def connect(self) -> Connection:
        """Return a connection of its own."""
        return Connection(self)


class Connection:
    """One keep-alive connection."""

    def __init__(self, target: Target) -> None:
        url = urlsplit(target.url)
        self._socket = socket.create_connection((str(url.hostname), int(url.port or 443)), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.authority is not None:
            context = ssl.create_default_context(cafile=target.authority)
            self._socket = context.wrap_socket(self._socket, server_hostname=str(url.hostname))
        self._answers = self._socket.makefile("rb", buffering=1 << 16)
        self._head = f"Host: {url.netloc}\r\nAccept: application/json\r\nContent-Type: application/json\r\n"
        if target.token:
            self._head += f"Authorization: Bearer {target.token}\r\n"

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and body."""
        self.send(method, path, body)
        status, length, chunked = self.answer_head()
        return status, b"".join(iter(self.chunk, b"")) if chunked else self._answers.read(length)

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        """The request alone."""
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        self._socket.sendall(f"{method} {path} HTTP/1.1\r\n{self._head}{length}\r\n".encode() + body)

    def answer_head(self) -> tuple[int, int, bool]:
        """Status, length, whether chunked."""
        status, length, chunked = int(self._answers.readline().split()[1]), 0, False
        while (line := self._answers.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            elif name.lower() == b"transfer-encoding":
                chunked = True
        return status, length, chunked

    def chunk(self) -> bytes:
        """Return the next chunk of a chunked body, empty at the end."""
        data = self._answers.read(int(self._answers.readline(), 16))
        self._answers.readline()
        return data

    def close(self) -> None:
        """Hang up."""
        self._answers.close()
        self._socket.close()


def creates_per_s(target: Target, path: str, body: Callable[[str], dict[str, Any]], *, clients: int, n: int) -> float:
    """Objects created per second by that many clients, ``n`` in all; any other answer than 201 is an error."""
    tag = f"c{clients}-{time.monotonic_ns() % 10**9}"
    texts = [json.dumps(body(f"{tag}-{number}")).encode() for number in range(n)]
    connections = [target.connect() for _ in range(clients)]
    gate, errors = threading.Barrier(clients + 1), []

    def drive(slot: int) -> None:
        connection = connections[slot]
        gate.wait()
        for text in texts[slot::clients]:
            status, answer = connection.ask("POST", path, text)
            if status != 201:
                errors.append(answer[:200])
                return

    threads = [threading.Thread(target=drive, args=(slot,)) for slot in range(clients)]
    for thread in threads:
        thread.start()
    gate.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begin
    for connection in connections:
        connection.close()
    if errors:
        raise RuntimeError(f"{target.name}: POST {path}: {errors[0].decode(errors='replace')}")
    return n / took
