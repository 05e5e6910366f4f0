"""A chassis behind a company's certificates: `mews conform` trusts its CA and shows the client certificate that it asks
for, through an HTTP proxy, too (RFC 9110, 9.3.6), and so do what restores the table and `mews proxy`."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from mews.emulator.tls import Identity, made
from mews.emulator.wrongs.proxy import WrongProxy
from mews.harness.cli import exit_code
from mews.harness.conformance.certificates import TlsArguments
from mews.harness.conformance.client import ChassisTarget, Client
from mews.harness.conformance.errors import NoAnswerError
from mews.harness.conformance.forward_proxy import proxy_of
from mews.harness.errors import BadInputError
from tests.harness.conformance.wire import box_handler, running
from tests.harness.conformance.wrong import Wrong

pytestmark = pytest.mark.wall


class Tunnel(BaseHTTPRequestHandler):
    """An HTTP proxy that connects to any host's port on this machine, and asks for credentials where it has some."""

    seen: list[str]
    wanted: str

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""

    def do_CONNECT(self) -> None:
        self.seen.append(self.path)
        if self.wanted and self.headers.get("proxy-authorization") != self.wanted:
            self.send_error(407)
            return
        with socket.create_connection(("127.0.0.1", int(self.path.rpartition(":")[2]))) as behind:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=copied, args=(behind, self.connection))
            back.start()
            copied(self.connection, behind)
            back.join()


def copied(source: socket.socket, sink: socket.socket) -> None:
    try:
        while content := source.recv(1 << 16):
            sink.sendall(content)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


@pytest.fixture(scope="module")
def identities(tmp_path_factory) -> tuple[Identity, Identity]:
    """The chassis' own and the client's."""
    chassis, client = tmp_path_factory.mktemp("chassis"), tmp_path_factory.mktemp("client")
    return made(chassis, ["box.example"]), made(client)


@pytest.fixture
def strict(identities) -> Iterator[tuple[Wrong, int]]:
    """A chassis that asks each client for its certificate, and its port."""
    chassis, client = identities
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chassis.certificate, chassis.key)
    context.load_verify_locations(client.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    box = Wrong()
    with running(box_handler(box), context) as port:
        yield box, port


@contextmanager
def tunnelling(wanted: str = "") -> Iterator[tuple[int, list[str]]]:
    seen: list[str] = []
    with running(type("OneTunnel", (Tunnel,), {"seen": seen, "wanted": wanted})) as port:
        yield port, seen


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch, tmp_path):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def judged(url: str, tmp_path: Path, *options: Any) -> tuple[int, dict[str, Any]]:
    code = exit_code(["conform", url, *map(str, options), "--json", str(tmp_path / "out.json")])
    return code, json.loads((tmp_path / "out.json").read_text())


def test_a_chassis_that_asks_for_a_certificate_is_judged_and_put_back_through_a_tunnel(
    strict, identities, monkeypatch, tmp_path
):
    box, port = strict
    chassis, client = identities
    tls = ("--cacert", chassis.certificate, "--cert", client.certificate, "--key", client.key)
    with tunnelling("Basic bWU6d28gcmQ=") as (tunnel, seen):
        monkeypatch.setenv("https_proxy", f"http://me:wo%20rd@127.0.0.1:{tunnel}")
        before = dict(box.ports)
        code, report = judged(f"https://box.example:{port}", tmp_path, *tls, "--allow-changes")
    assert code == 0, [each for each in report["clauses"] if each["verdict"] == "failed"]
    assert (report["restored"], box.ports) == (True, before)
    assert set(seen) == {f"box.example:{port}"}
    assert "d28" not in json.dumps(report)


def test_a_certificate_that_is_missing_is_reported_with_the_option(strict, identities, tmp_path, capsys):
    _, port = strict
    code, _ = judged(f"https://localhost:{port}", tmp_path, "--ca", identities[0].certificate)
    assert code == 3
    shown = "--cert FILE shows a client certificate|if it asks for a client certificate, give --cert FILE"
    assert re.search(f"; ({shown}); no chassis answers there", capsys.readouterr().err)


def test_what_restores_the_table_shows_the_same_certificate(strict, identities, tmp_path):
    box, port = strict
    chassis, client = identities
    box.ports["000100"] = "3"
    plan = {
        "version": 2,
        "url": f"https://localhost:{port}",
        "dialect": "h3api",
        "ca": str(chassis.certificate),
        "insecure": False,
        "patience_s": 5.0,
        "limits": {"settle_s": 0.2},
        "pid": 1,
        "born": "",
        "devices": {"000100": {"port": None, "seen": [None, "3"]}},
        "neighbours": {},
    }
    file = tmp_path / "restore.json"
    file.write_text(json.dumps({**plan, "cert": str(client.certificate), "key": str(client.key)}))
    assert exit_code(["conform", "--restore", str(file)]) == 0
    assert box.ports["000100"] == ""


def test_a_run_notes_its_certificate_for_the_guard_by_a_path_that_holds_in_any_folder(
    strict, identities, tmp_path, monkeypatch
):
    chassis, client = identities
    monkeypatch.chdir(client.certificate.parent)
    notes: list[dict[str, Any]] = []
    file = tmp_path / "restore.json"
    box, port = strict
    box.change = lambda method, path, number, answered: (
        (notes.append(json.loads(file.read_text())) if method != "GET" and file.exists() else None) or answered
    )
    tls = ("--ca", chassis.certificate, "--cert", "chassis.crt", "--key", "chassis.key")
    code, _ = judged(f"https://localhost:{port}", tmp_path, *tls, "--allow-changes", "--restore-file", file)
    assert code == 0
    assert {(each["cert"], each["key"]) for each in notes} == {(str(client.certificate), str(client.key))}


def test_the_proxy_of_wrongs_shows_it_too(strict, identities):
    _, port = strict
    chassis, client = identities
    url = f"https://localhost:{port}"
    tls = TlsArguments(chassis.certificate, cert=client.certificate, key=client.key)
    served = WrongProxy(url, (), context=tls.context(url))
    served.start()
    try:
        reply = Client(ChassisTarget(served.url, str(served.ca))).send("GET", "/h3api/v1/resources")
    finally:
        served.stop()
    assert reply.status == 200


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_away_is_named_without_its_password(scheme, monkeypatch):
    monkeypatch.setenv("all_proxy", "http://me:secret@127.0.0.1:9")
    with pytest.raises(
        NoAnswerError, match=rf"^{scheme}://box.example \(through the proxy 127.0.0.1:9\): the conn"
    ) as told:
        Client(ChassisTarget(f"{scheme}://box.example")).send("GET", "/")
    assert "secret" not in str(told.value)


def test_a_proxy_that_refuses_is_one_line(strict, identities, monkeypatch):
    _, port = strict
    with tunnelling("Basic other") as (tunnel, _):
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{tunnel}")
        client = Client(ChassisTarget(f"https://box.example:{port}", str(identities[0].certificate)))
        with pytest.raises(NoAnswerError, match="the proxy refuses: 407 Proxy Authentication Required") as told:
            client.send("GET", "/")
    assert told.value.kind in NoAnswerError.HOPELESS


@pytest.mark.parametrize("proxy", ["socks5://me:secret@p.example:1080", "http://p.example:x", "http://", "p.example:0"])
def test_a_proxy_of_another_kind_is_bad_input(proxy, monkeypatch):
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(BadInputError, match=r"^https_proxy: .*: must be an HTTP proxy, http://HOST\[:PORT\]$") as told:
        proxy_of(http.client.urlsplit("https://box.example"))
    assert "secret" not in str(told.value)


def test_a_proxy_is_an_address_without_a_scheme_too(monkeypatch):
    monkeypatch.setenv("http_proxy", "p.example:3128")
    found = proxy_of(http.client.urlsplit("http://box.example"))
    assert found is not None
    assert (found.hostname, found.port) == ("p.example", 3128)
