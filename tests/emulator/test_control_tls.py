"""``control`` under TLS: by which certificate, and what slow, mute and plain clients do to it."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from mews.certificates import Certificates, certificates_in, make_certificates
from mews.emulator.control_tls import add_control_tls_arguments, control_certificates
from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer, main
from mews.emulator.tls import Identity
from mews.emulator.tls_adapter import WorkerTls, shake_hands, shut_reading

HARDWARE = Path(__file__).parents[2] / "fixtures" / "hardware" / "demo.yaml"


@pytest.fixture
def made(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path, time.time())


@pytest.fixture
def server(made: Certificates) -> Iterator[ChassisServer]:
    running = ChassisServer(load_hardware(HARDWARE), token="secret", control_tls=made)
    running.start()
    yield running
    running.stop()


def port_of(server: ChassisServer) -> int:
    return int(server.ready()["control"]["url"].rpartition(":")[2])


def table(server: ChassisServer) -> dict[str, object]:
    ready = server.ready()
    request = Request(ready["control"]["url"] + "/v1/table", headers={"Authorization": "Bearer secret"})
    with urlopen(request, timeout=30, context=ssl.create_default_context(cafile=ready["ca"])) as answer:
        found: dict[str, object] = json.load(answer)
    return found


@pytest.mark.wall
def test_control_and_redfish_are_under_tls_and_the_boxes_own_languages_are_not(server: ChassisServer):
    ready = server.ready()
    schemes = {name: url.partition(":")[0] for name, url in ready["chassis"]["A"].items()}
    assert schemes == {"h3api": "http", "resource-pool": "http", "redfish": "https", "fm": "https", "cdim": "http"}
    assert ready["control"]["url"].startswith("https://")
    assert set(table(server)) == {"A"}


@pytest.mark.wall
def test_clients_that_say_nothing_or_half_a_hello_keep_nobody_waiting(server: ChassisServer):
    mute = [socket.create_connection(("127.0.0.1", port_of(server))) for _ in range(20)]
    for each in mute[10:]:
        each.sendall(b"\x16\x03\x01\x02\x00\x01")
    began = time.monotonic()
    table(server)
    assert time.monotonic() - began < 8, "they are given up after ten seconds each"
    for each in mute:
        each.close()
    table(server)


def _rest_of(connection: socket.socket) -> bytes:
    """What is still answered once nothing more is sent; a server that ends it at once may be faster than we are."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
    try:
        return connection.makefile("rb").read()
    except ConnectionResetError:
        return b""


@pytest.mark.wall
def test_plain_http_is_answered_in_kind_and_rubbish_ends_the_connection(
    server: ChassisServer, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    answers = []
    for sent in (b"GET /v1/table HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x00" * 100, b""):
        with socket.create_connection(("127.0.0.1", port_of(server)), timeout=30) as plain:
            plain.sendall(sent)
            answers.append(_rest_of(plain))
    assert answers[0].startswith(b"HTTP/1.0 400 ")
    assert answers[0].endswith(b"Client sent an HTTP request to an HTTPS server.\n")
    assert not any(b"HTTP" in answer for answer in answers[1:])
    table(server)
    assert not [record for record in caplog.records if record.exc_info], "a traceback for what a client did"


@pytest.mark.wall
def test_a_request_that_does_not_come_is_answered_under_tls(server: ChassisServer, made: Certificates):
    with (
        socket.create_connection(("127.0.0.1", port_of(server)), timeout=60) as raw,
        made.client_context().wrap_socket(raw, server_hostname="127.0.0.1") as connection,
    ):
        connection.sendall(b"POST /v1/edit HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n")
        connection.sendall(b"Content-Length: 100\r\n\r\n{")
        answer = connection.makefile("rb").read()  # plain text here would be a broken record
    assert answer == b"" or answer.startswith(b"HTTP/1.")


def test_who_is_cut_off_while_reading_can_still_be_answered_under_tls(made: Certificates):
    ours, theirs = socket.socketpair()
    heard = []

    def listen() -> None:
        with made.client_context().wrap_socket(theirs, server_hostname="127.0.0.1") as connection:
            heard.append(connection.makefile("rb").read())

    listening = threading.Thread(target=listen)
    listening.start()
    wrapped, _ = WorkerTls(Identity(made.certificate, made.key)).wrap(ours)
    assert shake_hands(wrapped)
    shut_reading(wrapped)
    assert wrapped.recv(10) == b""
    wrapped.sendall(b"HTTP/1.1 408 Request Timeout")
    wrapped.close()
    listening.join(30)
    assert heard == [b"HTTP/1.1 408 Request Timeout"]


def options(*words: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_control_tls_arguments(parser)
    parser.add_argument("--allow-host", action="append", default=[])
    return parser.parse_args(list(map(str, words)))


def test_without_a_word_one_is_made_and_with_insecure_none():
    made = control_certificates(options("--allow-host", "box.lab"))
    assert made is not None
    assert made.key.stat().st_mode & 0o777 == 0o600
    assert made.key.parent.stat().st_mode & 0o077 == 0
    assert control_certificates(options("--plain-control")) is None


def test_files_that_are_still_being_made_are_waited_for(tmp_path: Path):
    there = certificates_in(tmp_path)
    words = ("--control-certificate", there.certificate, "--control-key", there.key, "--ca", there.authority)
    making = threading.Timer(0.3, lambda: make_certificates(tmp_path, time.time()))
    making.start()
    assert control_certificates(options(*words)) == there
    assert there.certificate.exists()
    making.join()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--control-key", "k"], "--control-certificate, --control-key and --ca: must be given together"),
        (
            ["--plain-control", "--ca", "c"],
            "--plain-control: not together with --control-certificate, --control-key and --ca",
        ),
    ],
)
def test_half_of_it_is_told_in_one_line(words: list[str], told: str, capsys: pytest.CaptureFixture[str]):
    assert main(["--hardware", str(HARDWARE), *words]) == 2
    assert capsys.readouterr().err == f"{told}\n"
