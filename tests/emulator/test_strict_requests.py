"""How a chassis reads the head of a request: RFC 9112 sections 3.2 and 5.1."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from flask import Flask

from mews.emulator.http_server import HttpServer

pytestmark = pytest.mark.wall


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    app = Flask("strict")
    app.add_url_rule("/", view_func=lambda: "answered", methods=["GET", "POST"])
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    yield server.port
    server.stop()


def answer(port: int, *lines: bytes) -> bytes:
    """What the server answers to these lines, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(b"\r\n".join((*lines, b"", b"")))
        client.shutdown(socket.SHUT_WR)
        found = b""
        while more := client.recv(4096):
            found += more
    return found


@pytest.mark.parametrize("method", [b"GET", b"POST"])
def test_a_request_of_http_1_1_names_its_host_once(port, method):
    first = method + b" / HTTP/1.1"
    assert answer(port, first, b"Host: localhost", b"Content-Length: 0").startswith(b"HTTP/1.1 200")
    assert answer(port, first, b"Content-Length: 0").startswith(b"HTTP/1.1 400")
    assert answer(port, first, b"Host: localhost", b"host: localhost").startswith(b"HTTP/1.1 400")


def test_a_request_of_http_1_0_needs_no_host(port):
    assert answer(port, b"GET / HTTP/1.0").split(b" ", 2)[1] == b"200"


def test_no_white_space_stands_between_a_header_and_its_colon(port):
    refused = answer(port, b"GET / HTTP/1.1", b"Host: localhost", b"X-A : b")
    assert refused.startswith(b"HTTP/1.1 400")
    assert b"white space" in refused


def test_a_refused_head_ends_the_connection(port):
    """What follows on it might be read as something that it is not."""
    both = (b"GET / HTTP/1.1", b"", b"GET / HTTP/1.1", b"Host: localhost")
    assert answer(port, *both).count(b"HTTP/1.1 ") == 1
