"""Clients that are slow, many, huge, broken or gone: the server refuses or cuts them, and serves the others."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.kube.emulated.apiserver.faces import DEADLINE_S, Face, face

pytestmark = pytest.mark.wall

MAPS = "/api/v1/namespaces/default/configmaps"
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Face]:
    with face(tmp_path, tls=False, patience_s=0.5) as opened:
        yield opened


def ask(
    served: Face, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    """Status, and the message or the text."""
    connection = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=DEADLINE_S)
    try:
        connection.request(method, path, body, JSON if headers is None else headers)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        return answer.status, json.loads(text).get("message", "") if text.startswith("{") else text
    finally:
        connection.close()


def config_map(name: str, **more: Any) -> bytes:
    return json.dumps({"metadata": {"name": name, **more.pop("metadata", {})}, **more}).encode()


def dial(served: Face) -> socket.socket:
    url = urlsplit(served.url)
    return socket.create_connection((str(url.hostname), int(url.port or 0)), timeout=DEADLINE_S)


def until(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.02)


def watches(served: Face) -> int:
    return int(served.run(lambda: served.server.watches))


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        (MAPS, config_map("a", data={"a": "x" * 3_200_000}), 413, "Request entity too large: limit is 3145728"),
        (
            MAPS,
            config_map("a", data={"a": "x" * 1_100_000}),
            422,
            'ConfigMap "a" is invalid: []: Too long: may not be more than 1048576 bytes',
        ),
        (
            MAPS,
            config_map("a", metadata={"annotations": {"a": "x" * 300_000}}),
            422,
            'ConfigMap "a" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes',
        ),
        (
            "/api/v1/namespaces/default/secrets",
            config_map("a", stringData={"a": "x" * 1_700_000}),
            422,
            'Secret "a" is invalid: data: Too long: may not be more than 1048576 bytes',
        ),
        (
            "/api/v1/namespaces/default/pods",
            config_map("a", spec={"containers": [{"name": "c", "image": "i", "args": ["x" * 1_700_000]}]}),
            500,
            "etcdserver: request is too large",
        ),
        (
            "/api/v1/namespaces/default/pods",
            config_map("a", spec={"containers": [{"name": "c", "image": "i", "args": ["x" * 1_400_000]}]}),
            201,
            "",
        ),
    ],
    ids=["body", "data", "annotations", "secret", "etcd", "fits"],
)
def test_what_is_too_large_is_refused_in_the_real_servers_words(
    served: Face, path: str, body: bytes, status: int, text: str
) -> None:
    assert ask(served, "POST", path, body) == (status, text)


def test_a_patch_that_makes_an_object_too_large_leaves_it_as_it_was(served: Face) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    assert ask(served, "POST", "/api/v1/namespaces/default/pods", config_map("p", spec=spec))[0] == 201
    large = json.dumps({"status": {"message": "x" * 1_700_000}}).encode()
    merge = {"Content-Type": "application/merge-patch+json"}
    path = "/api/v1/namespaces/default/pods/p/status"
    assert ask(served, "PATCH", path, large, merge) == (500, "etcdserver: request is too large")
    assert served.run(lambda: served.store.find(pods(served), "default", "p")["status"]).get("message") is None


def pods(served: Face) -> Any:
    return served.store.kinds.find("", "v1", "pods")


MERGE, STRATEGIC = ({"Content-Type": f"application/{kind}+json"} for kind in ("merge-patch", "strategic-merge-patch"))
JSON_PATCH, APPLY = {"Content-Type": "application/json-patch+json"}, {"Content-Type": "application/apply-patch+yaml"}
PROTOBUF = {"Content-Type": "application/vnd.kubernetes.protobuf"}
ONE = f"{MAPS}/one"
ROUGH: list[tuple[str, str, bytes | None, dict[str, str]]] = [
    ("POST", MAPS, b'{"metadata":{"name":"d"},"x":' + b"[" * 20_000 + b"]" * 20_000 + b"}", JSON),
    ("POST", MAPS, b'{"metadata":{"name":"n"},"data":{"a":NaN}}', JSON),
    ("POST", MAPS, b'{"metadata":' + b"1" * 5000 + b"}", JSON),
    ("POST", MAPS, b'{"metadata":{"name":"u\\u0000"}}', JSON),
    ("POST", MAPS, b'{"metadata":{"name":"u\\ud800"}}', JSON),
    ("POST", MAPS, b'{"metadata":[]}', JSON),
    ("POST", MAPS, b'{"metadata":{"name":7,"labels":[1],"ownerReferences":{}}}', JSON),
    ("POST", MAPS, b"", JSON),
    ("POST", MAPS, b"[]", JSON),
    ("POST", MAPS, b"{}", {"Content-Type": "text/plain"}),
    ("POST", MAPS, b"k8s\x00\xff\xff", PROTOBUF),
    ("POST", MAPS, b"k8s\x00" + b"\xff" * 100_000, PROTOBUF),
    ("POST", MAPS, b"a: &a [" + b"*a," * 10_000 + b"]", {"Content-Type": "application/yaml"}),
    ("PATCH", ONE, b"[1]", JSON_PATCH),
    ("PATCH", ONE, b'[{"op":"fly","path":"/a"}]', JSON_PATCH),
    ("PATCH", ONE, b'[{"op":"replace","path":"","value":7}]', JSON_PATCH),
    ("PATCH", ONE, b'[{"op":"replace","path":"/metadata","value":null}]', JSON_PATCH),
    ("PATCH", ONE, b'[{"op":"move","from":"/metadata","path":"/metadata/name"}]', JSON_PATCH),
    ("PATCH", ONE, json.dumps([{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 10_001).encode(), JSON_PATCH),
    ("PATCH", ONE, b'"x"', MERGE),
    ("PATCH", ONE, b'{"metadata":null}', MERGE),
    ("PATCH", ONE, b'{"metadata":"x"}', MERGE),
    ("PATCH", ONE, b"[]", STRATEGIC),
    ("PATCH", ONE, b'{"metadata":[]}', STRATEGIC),
    ("PATCH", f"{ONE}?fieldManager=a", b"a: [", APPLY),
    ("PATCH", f"{ONE}?fieldManager=a", b"[]", APPLY),
    ("PATCH", f"{ONE}?fieldManager=a", b"metadata: x", APPLY),
    ("GET", f"{MAPS}?labelSelector=%00%ff%20in(", None, {}),
    ("GET", f"{MAPS}?fieldSelector=a", None, {}),
    ("GET", f"{MAPS}?limit=x", None, {}),
    ("GET", f"{MAPS}?limit=1&continue=%%%", None, {}),
    ("GET", f"{MAPS}?resourceVersion=-1", None, {}),
    ("GET", f"{MAPS}/%ff%fe", None, {}),
    ("GET", f"{MAPS}?labelSelector={'a' * 9000}", None, {}),
    ("GET", f"{MAPS}?x={'a' * 2_000_000}", None, {}),
    ("GET", f"{MAPS}/one/two/three/four", None, {}),
    ("GET", "/api/v1/namespaces/%2e%2e/pods/x", None, {}),
    ("GET", MAPS, None, {"Accept": "application/xml"}),
    ("TRACE", MAPS, None, {}),
    ("BREW", MAPS, None, {}),
]


def test_no_rough_request_is_answered_with_an_error_of_the_server(
    served: Face, caplog: pytest.LogCaptureFixture
) -> None:
    assert ask(served, "POST", MAPS, config_map("one"))[0] == 201
    with caplog.at_level(logging.WARNING):
        answers = [(ask(served, *request), request) for request in ROUGH]
    faulty = [(answer, request[:2]) for answer, request in answers if answer[0] >= 500]
    assert faulty == []
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
    assert ask(served, "GET", ONE, headers={})[0] == 200


def test_bytes_that_are_no_utf_8_become_replacement_characters(served: Face) -> None:
    assert ask(served, "POST", MAPS, b'{"metadata":{"name":"u"},"data":{"a":"\xff"}}')[0] == 201
    kind = served.store.kinds.find("", "v1", "configmaps")
    assert served.run(lambda: served.store.find(kind, "default", "u"))["data"] == {"a": "\ufffd"}


def test_a_watcher_that_reads_nothing_is_cut_off_and_holds_up_nobody(served: Face) -> None:
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    url = urlsplit(served.url)
    slow.connect((url.hostname, url.port))
    slow.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    until("the watch", lambda: watches(served) == 1)
    for number in range(60):
        assert ask(served, "POST", MAPS, config_map(f"c{number}", data={"a": "x" * 200_000}))[0] == 201
    until("the slow watcher to be cut off", lambda: watches(served) == 0)
    slow.close()


def test_a_thousand_watchers_hear_of_a_change_and_are_forgotten_when_they_vanish(served: Face) -> None:
    readers = [dial(served) for _ in range(1000)]
    for reader in readers:
        reader.sendall(
            f"GET {MAPS}?watch=1&resourceVersion={served.store.version} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        )
    until("the watches", lambda: watches(served) == 1000)
    assert ask(served, "POST", MAPS, config_map("news"))[0] == 201
    for reader in readers:
        heard = b""
        while b'"news"' not in heard:
            heard += reader.recv(1 << 16)
    for reader in readers:
        reader.close()
    until("the watches to be forgotten", lambda: watches(served) == 0)


def test_clients_that_vanish_in_the_midst_of_a_request_leave_nothing(served: Face) -> None:
    for beginning in (
        b"POST ",
        b"POST /api/v1/na",
        b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    ):
        for _ in range(20):
            with dial(served) as client:
                client.sendall(beginning % MAPS.encode() if b"%s" in beginning else beginning)
    assert ask(served, "POST", MAPS, config_map("after"))[0] == 201
    assert watches(served) == 0
