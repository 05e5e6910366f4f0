"""The boundary of each server: who may ask, what is no HTTP, slow and half-closed connections."""

import socket

import pytest

from tests.fuzz.faces import TOKEN
from tests.fuzz.groups import GROUPS
from tests.fuzz.judge import exchange, tracebacks
from tests.fuzz.requests import Sent

pytestmark = pytest.mark.wall

CHUNKED = {"Transfer-Encoding": "chunked"}


@pytest.fixture(scope="module")
def faces():
    """Every face by its name."""
    found = {}
    with GROUPS[0]() as chassis, GROUPS[1]() as api:
        for face in (*chassis, *api):
            found[face.name] = face
        yield found


def names(faces):
    return sorted(faces)


def test_a_web_page_gets_nothing_from_any_face(faces):
    for face in faces.values():
        for headers in (
            {"Host": "evil.example"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
        ):
            seed = face.seeds[0]
            assert exchange(face, Sent(seed.method, seed.target, {**seed.headers, **headers}, seed.body)) == "403", (
                face.name
            )


def test_a_web_page_opens_no_websocket(faces):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Origin": "http://evil.example"}  # fmt: skip
    target = "/api/v1/namespaces/default/pods/p/exec?command=id&stdout=true"
    assert exchange(faces["kubernetes as everybody"], Sent("GET", target, upgrade)) == "403"


@pytest.mark.parametrize("body", [b"ffffffffffffffff\r\nx", b"zz\r\n", b"-1\r\nabc\r\n0\r\n\r\n", b"5\r\nab"])
def test_a_chunked_body_that_makes_no_sense_is_refused_by_every_face_that_reads_it(faces, body):
    posts = {
        "h3api and resource-pool": Sent("POST", "/allocation", CHUNKED, body),
        "control with the token": Sent("POST", "/v1/edit", {**CHUNKED, "Authorization": f"Bearer {TOKEN}"}, body),
        "kubernetes as everybody": Sent("POST", "/api/v1/namespaces", CHUNKED, body),
    }
    with tracebacks() as logged:
        for name, sent in posts.items():
            assert exchange(faces[name], sent) == "400", name
    assert logged == []


def test_control_looks_at_the_token_before_the_body(faces):
    assert exchange(faces["control with the token"], Sent("POST", "/v1/edit", CHUNKED, b"zz\r\n")) == "401"


def test_a_client_that_half_closes_after_its_request_gets_its_answer(faces):
    for name in ("h3api and resource-pool", "kubernetes as everybody"):
        face = faces[name]
        with socket.create_connection(face.address, timeout=10) as wire:
            wire.sendall(Sent("GET", "/resources" if "h3" in name else "/version").wire())
            wire.shutdown(socket.SHUT_WR)
            answer = b""
            while more := wire.recv(65536):
                answer += more
        assert answer.startswith(b"HTTP/1.1 200") and answer.endswith((b"]", b"}")), name


def test_eight_hundred_slow_senders_do_not_deafen_a_chassis(faces):
    face = faces["h3api and resource-pool"]
    slow = [socket.create_connection(face.address, timeout=10) for _ in range(800)]
    try:
        for each in slow:
            each.sendall(b"POST /allocation HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        assert exchange(face, Sent("GET", "/resources")) == "200"
    finally:
        for each in slow:
            each.close()
