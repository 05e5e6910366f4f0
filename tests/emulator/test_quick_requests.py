"""The short way of plain GETs answers as the long one does, and leaves to it what is not plain."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from mews.emulator.http_quick import read_quickly
from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from tests.contract.wire import FIXTURES


def read(head: bytes) -> object:
    return read_quickly(head, secure=False, address="127.0.0.1")


PLAIN = b"GET /resources HTTP/1.1\r\nHost: localhost\r\nX-A: b c\r\n\r\n"


def test_a_plain_get_is_read_with_its_headers_and_its_length():
    found = read(PLAIN + b"GET /next")
    assert (found.request.path, found.length, found.close) == ("/resources", len(PLAIN), False)
    assert dict(found.request.headers) == {"host": "localhost", "x-a": "b c"}
    assert read(PLAIN.replace(b"X-A: b c", b"Connection: close")).close


@pytest.mark.parametrize(
    "head",
    [
        PLAIN[:-2],
        PLAIN.replace(b"GET", b"POST"),
        PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0"),
        PLAIN.replace(b"/resources", b"/resources?a=b"),
        PLAIN.replace(b"/resources", b"/%72esources"),
        PLAIN.replace(b"/resources", b"//resources"),
        PLAIN.replace(b"/resources", b"http://localhost/resources"),
        PLAIN.replace(b"X-A: b c", b"Content-Length: 3"),
        PLAIN.replace(b"X-A: b c", b"Transfer-Encoding: chunked"),
        PLAIN.replace(b"X-A: b c", b"Expect: 100-continue"),
        PLAIN.replace(b"X-A: b c", b"Connection: Upgrade"),
        PLAIN.replace(b"X-A: b c", b"Host: localhost"),
        PLAIN.replace(b"X-A: b c", b"X_A: b"),
        PLAIN.replace(b"X-A: b c", b"X-A : b"),
        PLAIN.replace(b"X-A: b c", b" folded"),
        PLAIN.replace(b"b c", "ü".encode()),
        PLAIN.replace(b"\r\n", b"\n"),
        b"",
    ],
)
def test_whatever_is_not_plain_is_left_to_the_long_way(head):
    assert read(head) is None


@pytest.fixture(scope="module")
def server() -> Iterator[ChassisServer]:
    made = ChassisServer(load_hardware(FIXTURES / "demo.yaml"), insecure=True)
    made.start()
    yield made
    made.stop()


def answers(server: ChassisServer, path: str, *, quick: bool) -> tuple[bytes, dict[bytes, bytes], bytes]:
    """Status line, headers and body; a header of two lines is none of the plain ones."""
    host, _, port = server.ready()["chassis"]["A"]["h3api"].removeprefix("http://").partition(":")
    more = b"" if quick else b"X-Twice: a\r\nX-Twice: b\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as wire:
        wire.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".encode() + more + b"\r\n")
        said = b""
        while bits := wire.recv(65536):
            said += bits
    head, _, body = said.partition(b"\r\n\r\n")
    status, *lines = head.split(b"\r\n")
    headers = dict(line.split(b": ", 1) for line in lines)
    headers.pop(b"Date")
    return status.lower(), headers, body


@pytest.mark.wall
@pytest.mark.parametrize(
    "path",
    ["/resources", "/h3api/v1/resources", "/redfish/v1/", "/redfish/v1/$metadata", "/redfish/v1/Systems", "/nope"],
)
def test_both_ways_answer_alike(path, server):
    assert answers(server, path, quick=True) == answers(server, path, quick=False)


@pytest.mark.wall
def test_requests_one_after_the_other_on_a_connection_are_each_answered(server):
    host, _, port = server.ready()["chassis"]["A"]["h3api"].removeprefix("http://").partition(":")
    post = b"POST /allocation HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
    with socket.create_connection((host, int(port)), timeout=60) as wire:
        wire.sendall(PLAIN + post + PLAIN + PLAIN.replace(b"X-A: b c", b"Connection: close"))
        said = b""
        while bits := wire.recv(65536):
            said += bits
    assert said.count(b"HTTP/1.1 200 OK") == 3
    assert said.lower().count(b"http/1.1 404 not found") == 1
