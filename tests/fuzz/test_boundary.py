"""The boundary of each server: who may ask, what is no HTTP, slow and half-closed connections."""

import socket
import ssl
import struct
import threading
import time
from contextlib import ExitStack, suppress

import pytest

from mews.harness.clusters.real.agent import TOKEN_HEADER
from tests.fuzz.faces import TOKEN
from tests.fuzz.groups import GROUPS
from tests.fuzz.judge import exchange, tracebacks
from tests.fuzz.node_faces import UPGRADE
from tests.fuzz.requests import Sent

pytestmark = pytest.mark.wall

CHUNKED = {"Transfer-Encoding": "chunked"}


@pytest.fixture(scope="module")
def faces():
    """Every face by its name."""
    with ExitStack() as served:
        yield {face.name: face for group in GROUPS for face in served.enter_context(group())}


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
            status = exchange(face, Sent(seed.method, seed.target, {**seed.headers, **headers}, seed.body))
            assert status == "403", face.name


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
        "hosts' control with the token": Sent(
            "POST", "/v1/operate", {**CHUNKED, "Authorization": f"Bearer {TOKEN}"}, body
        ),
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


@pytest.mark.parametrize("senders", [150, pytest.param(800, marks=pytest.mark.nightly)])
def test_slow_senders_do_not_deafen_a_chassis(senders, faces):
    face = faces["h3api and resource-pool"]
    slow = [socket.create_connection(face.address, timeout=10) for _ in range(senders)]
    try:
        for each in slow:
            each.sendall(b"POST /allocation HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        assert exchange(face, Sent("GET", "/resources")) == "200"
    finally:
        for each in slow:
            each.close()


SECURE = (
    "redfish under TLS as administrator",
    "control under TLS with the token",
    "kubernetes under TLS with the token",
    "kubelet with the certificate",
    "metrics under TLS with the token",
)
SLOW = 150
"""Connections to a port; 800 were tried by hand."""


@pytest.mark.parametrize("name", SECURE)
def test_slow_handshakes_and_slow_senders_do_not_deafen_a_port_under_tls(faces, name):
    face = faces[name]
    greeting = client_greeting(face)
    slow = []
    try:
        for number in range(SLOW):
            wire = socket.create_connection(face.address, timeout=30)
            slow.append(wire)
            if number % 3 == 1:
                wire.sendall(greeting[: len(greeting) // 2])
            elif number % 3 == 2:
                slow[-1] = wire = face.tls.wrap_socket(wire, server_hostname="localhost")
                wire.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        began = time.monotonic()
        assert exchange(face, face.seeds[0]) == "200"
        assert time.monotonic() - began < 8, "the slow are given up after 10 s"
    finally:
        for each in slow:
            each.close()


def client_greeting(face):
    """The first bytes of a handshake."""
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        face.tls.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("name", SECURE)
def test_what_is_no_tls_is_turned_away_and_leaves_no_traceback(faces, name):
    face = faces[name]
    greeting = client_greeting(face)
    garbled = bytearray(greeting)
    garbled[40:60] = b"\xff" * 20
    with tracebacks() as logged:
        for first in (
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            b"\x00" * 64,
            greeting[:20],
            bytes(garbled[:-5]),
            b"",
        ):
            with socket.create_connection(face.address, timeout=30) as wire:
                with suppress(OSError):  # the connection may have been closed already: turned away all the same
                    wire.sendall(first)
                    wire.shutdown(socket.SHUT_WR)
                answer = drained(wire)
            assert b"HTTP/1.1 2" not in answer and b"HTTP/1.0 2" not in answer
        assert exchange(face, face.seeds[0]) == "200"
    assert logged == []


def drained(wire):
    found = b""
    try:
        while more := wire.recv(65536):
            found += more
    except ConnectionError:
        pass
    return found


@pytest.mark.parametrize("name", SECURE)
def test_a_client_that_goes_away_under_tls_leaves_no_traceback(faces, name):
    face = faces[name]
    with tracebacks() as logged:
        for _ in range(20):
            plain = socket.create_connection(face.address, timeout=30)
            wire = face.tls.wrap_socket(plain, server_hostname="localhost")
            wire.sendall(face.seeds[0].wire())
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, at once
            wire.close()
        assert exchange(face, face.seeds[0]) == "200"
    assert logged == []


@pytest.mark.parametrize("seq", ["x", "-1", "\u00b2", "9" * 5000, "\udcff"])
def test_an_event_number_that_is_none_is_refused_by_the_agent(faces, seq):
    headers = {TOKEN_HEADER: TOKEN, "Last-Event-ID": seq}
    assert exchange(faces["agent with the token"], Sent("GET", "/v1/events", headers)) == "400"


def test_a_token_that_is_no_text_is_refused_by_the_agent(faces):
    assert exchange(faces["agent with the token"], Sent("GET", "/v1/seq", {TOKEN_HEADER: "\udcff"})) == "401"


@pytest.mark.parametrize("line", ["GET /metrics", "GET", "GET /metrics HTTP/0.9", "GET /metrics HTTP/x"])
def test_metrics_answer_in_http_whatever_the_request_line_is(faces, line):
    sent = Sent("", "", raw=f"{line}\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert exchange(faces["metrics"], sent) in ("200", "400", "505")


def test_metrics_are_shown_in_plain_text_to_who_accepts_what_is_no_version(faces):
    accept = {"Accept": "application/openmetrics-text; version=1.0.0\u00b2"}
    assert exchange(faces["metrics"], Sent("GET", "/metrics", accept)) == "200"


AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}
HOLD = '{"do": "hold", "device": "000100", %s}'


@pytest.mark.parametrize("wait_s", ["1" + "0" * 400, "1e400", "NaN", "-1e400"])
def test_hosts_control_refuses_a_wait_that_has_no_end(faces, wait_s):
    body = f'{{"host": "host-1", "action": {{"do": "rescan"}}, "wait_s": {wait_s}}}'.encode()
    assert exchange(faces["hosts' control with the token"], Sent("POST", "/v1/operate", AUTHORISED, body)) == "400"


@pytest.mark.parametrize("keys", ['"uuids": 5', '"uuids": true', '"pid": 1e400', '"pid": []', '"pid": 1' + "0" * 400])
def test_hosts_control_refuses_a_holder_that_is_none(faces, keys):
    body = f'{{"host": "host-1", "action": {HOLD % keys}}}'.encode()
    assert exchange(faces["hosts' control with the token"], Sent("POST", "/v1/operate", AUTHORISED, body)) == "400"


@pytest.mark.parametrize("count", ["1e400", "NaN", "-1", "1" + "0" * 400, '"x"'])
def test_control_refuses_counts_that_are_none(faces, count):
    body = f'{{"host": "host-1", "reports": {{"GPU-1": {{"loads": {{}}, "counts": ["s", {count}, 2]}}}}}}'.encode()
    assert exchange(faces["control with the token"], Sent("PUT", "/v1/telemetry/reports", AUTHORISED, body)) == "400"


def test_a_login_that_is_no_base64_is_refused_by_redfish(faces):
    for given in ("Basic \u00e9\u00e9", "Basic \udcff", "Basic =", "Basic /w=="):
        sent = Sent("GET", "/redfish/v1/Chassis", {"Authorization": given})
        assert exchange(faces["redfish under TLS as nobody"], sent) == "401", given


def test_a_user_agent_that_is_no_text_is_written_down_as_one_that_is(faces):
    headers = {"User-Agent": "\udcff", "Content-Type": "application/json"}
    body = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "agent"}}'
    sent = Sent("POST", "/api/v1/namespaces/default/configmaps", headers, body)
    assert exchange(faces["kubernetes as everybody"], sent) == "201"


def test_a_websocket_key_that_is_no_ascii_is_refused_by_a_kubelet(faces):
    sent = Sent(
        "GET", "/exec/default/p/c?command=id", {**UPGRADE, "Sec-WebSocket-Key": "\u00e9AAAAAAAAAAAAAAAAAAAAA=="}
    )
    assert exchange(faces["kubelet with the certificate"], sent) == "400"


def http_threads():
    return sum(thread.name.startswith("Thread-") for thread in threading.enumerate())


def test_slow_heads_let_every_other_request_through_and_give_their_threads_back(faces):
    face, before = faces["h3api and resource-pool"], http_threads()
    slow = [socket.create_connection(face.address, timeout=30) for _ in range(SLOW)]
    try:
        took = []
        for number, each in enumerate(slow):
            each.sendall(b"GET /resources HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
            if number % 5 == 0:
                began = time.monotonic()
                assert exchange(face, Sent("GET", "/resources")) == "200"
                took.append(time.monotonic() - began)
        assert max(took) < 5, "the slow are given up after 10 s: nobody waited for that"
        assert http_threads() > before + SLOW // 2, "they hold threads, or this tests nothing"
    finally:
        for each in slow:
            each.close()
    ends = time.monotonic() + 30
    while http_threads() > before + 40 and time.monotonic() < ends:
        time.sleep(0.2)
    assert http_threads() <= before + 40
