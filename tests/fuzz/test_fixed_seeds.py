"""Requests that once made a face fail, each as it was found."""

import socket
import time
from contextlib import ExitStack

import pytest

from tests.fuzz.faces import TOKEN, chassis
from tests.fuzz.judge import exchange, tracebacks
from tests.fuzz.requests import Sent
from tests.fuzz.session_faces import sessions

pytestmark = pytest.mark.wall

BIG = "1" + "0" * 400


@pytest.fixture(scope="module")
def faces():
    """The faces that failed, by name."""
    with ExitStack() as served:
        groups = [served.enter_context(group()) for group in (chassis, sessions)]
        yield {face.name: face for group in groups for face in group}


@pytest.fixture(autouse=True)
def nothing_logged():
    """No request leaves a traceback."""
    with tracebacks() as logged:
        yield
    assert logged == []


def as_session(faces, method, target, body=b"", **headers):
    face = faces["session with the token"]
    return exchange(face, Sent(method, target, {**face.seeds[0].headers, **headers}, body))


@pytest.mark.parametrize("password", [b'"\\ud800"', b'"\xed\xa0\x80"', b'"a\\udfffb"'])
def test_a_password_that_is_no_text_is_a_wrong_one(faces, password):
    body = b'{"UserName": "admin", "Password": %b}' % password
    login = Sent("POST", "/redfish/v1/SessionService/Sessions", {"Content-Type": "application/json"}, body)
    assert exchange(faces["redfish as nobody"], login) == "401"


@pytest.mark.parametrize("number", [BIG, "1e400", "NaN", "-Infinity"])
def test_a_fault_with_a_number_beyond_all_bounds_is_refused(faces, number):
    body = b'{"chassis": "A", "spec": {"kind": "slow", "factor": %b}}' % number.encode()
    sent = Sent("POST", "/v1/faults", {"Authorization": f"Bearer {TOKEN}"}, body)
    assert exchange(faces["control with the token"], sent) == "400"


@pytest.mark.parametrize(
    "step",
    [b'{"fault": null}', b'{"wait": null}', b'{"sleep": %b}' % BIG.encode(), b'{"apply": "\\ud800"}',
     b"[" * 3000 + b"]" * 3000, b'{"a":' * 500 + b"1" + b"}" * 500, b"\xff\xfe", b'"\xed\xa0\x80"', b""],
)  # fmt: skip
def test_a_step_that_is_none_is_refused_by_a_session(faces, step):
    assert as_session(faces, "POST", "/v1/steps", step) == "400"


def test_a_session_reads_json_whatever_charset_is_claimed(faces):
    kind = {"Content-Type": "application/json; charset=utf-99"}
    assert as_session(faces, "POST", "/v1/steps", b'{"sleep": 0.01}', **kind) == "200"


@pytest.mark.parametrize("target", ["/v1/steps", "/v1/snapshot"])
def test_a_session_takes_no_body_of_256_mb(faces, target):
    assert as_session(faces, "POST", target, b"{", **{"Content-Length": str(256 << 20)}) == "413"


@pytest.mark.parametrize("since", ["x", "-1", "\u00b2", "9" * 5000, "1" + "0" * 19])
def test_a_line_number_that_is_none_is_refused_by_a_session(faces, since):
    assert as_session(faces, "GET", "/v1/events", **{"Last-Event-ID": since}) == "400"


def test_two_hosts_are_none(faces):
    raw = b"GET /v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert exchange(faces["session with the token"], Sent("", "", raw=raw)) == "400"


def test_a_head_that_does_not_come_ends_its_connection(faces, monkeypatch):
    monkeypatch.setattr("mews.listening.connections.HEAD_S", 0.3)
    face = faces["session with the token"]
    for begun in (b"", b"GET /v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "):
        with socket.create_connection(face.address, timeout=30) as wire:
            wire.sendall(begun)
            assert wire.recv(100).startswith(b"HTTP/1.1 408")
            assert wire.recv(100) == b""


def test_a_body_that_takes_longer_than_a_head_may_is_waited_for(faces, monkeypatch):
    monkeypatch.setattr("mews.listening.connections.HEAD_S", 0.3)
    face = faces["session with the token"]
    body = b'{"sleep": 0.01}'
    sent = Sent("POST", "/v1/steps", {**face.seeds[0].headers, "Content-Length": str(len(body))}).wire()
    with socket.create_connection(face.address, timeout=30) as wire:
        for piece in (sent, body[:5], body[5:]):
            wire.sendall(piece)
            time.sleep(0.5)
        assert wire.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("first", [b" Host: 127.0.0.1", b"\tHost: 127.0.0.1", b" 9: x\r\nHost: 127.0.0.1"])
def test_a_first_header_that_continues_none_is_refused_by_a_chassis(faces, first):
    raw = b"GET /redfish/v1 HTTP/1.1\r\n%b\r\nConnection: close\r\n\r\n" % first
    assert exchange(faces["redfish as nobody"], Sent("", "", raw=raw)) == "400"
