"""The chassis as a process of its own: ready file, exit codes, kill -9, SIGTERM."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.hardware import hardware
from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer, parse_listen
from tests.test_descriptors import until

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures" / "hardware"
pytestmark = pytest.mark.wall


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "mews.emulator.serve", *map(str, arguments)]


def process(folder: Path, *arguments: object, hardware: Path = FIXTURES / "demo.yaml") -> Any:
    return started(command("--hardware", hardware, "--ready", folder / "ready.json", *arguments), folder)


@contextmanager
def started(argv: list[str], folder: Path) -> Iterator[Any]:
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    with (folder / "log").open("ab") as log:
        running = subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while not ready.exists():
            assert running.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, "the ready file did not appear within 60 s"
            time.sleep(0.01)
        yield running, json.loads(ready.read_text())
    finally:
        running.kill()
        running.wait()


def ask(url: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def ports(url: str) -> dict[str, str]:
    return {row["devid"]: row["hostport"] for row in json.loads(ask(url, "GET", "/resources")[1])}


def test_the_ready_file_names_every_chassis_every_dialect_control_and_the_pid(tmp_path: Path):
    with process(tmp_path, hardware=FIXTURES / "multi-chassis.yaml") as (running, ready):
        assert list(ready["chassis"]) == ["A", "B", "C", "D"]
        assert len({urls["h3api"] for urls in ready["chassis"].values()}) == 4
        for urls in ready["chassis"].values():
            assert set(urls) == {"h3api", "resource-pool", "redfish", "fm", "cdim"}
            assert ask(urls["h3api"], "GET", "/h3api/v1/resources")[0] == 200
            assert ask(urls["resource-pool"], "GET", "/resources")[0] == 200
        assert set(ready["control"]) == {"url", "token"}
        assert ready["pid"] == running.pid
        assert (tmp_path / "ready.json").stat().st_mode & 0o077 == 0


def test_sigterm_ends_it_with_0_and_leaves_nothing(tmp_path: Path):
    with process(tmp_path, hardware=FIXTURES / "multi-chassis.yaml") as (running, ready):
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=60) == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]
        for urls in ready["chassis"].values():
            host, port = urls["h3api"].removeprefix("http://").split(":")
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((host, int(port)), timeout=1)


SIGNALLED = """
import signal, sys, threading
from mews.emulator import serve

def strike(frame, event, argument):
    # A signal while the main thread holds the lock that it is about to wait with.
    if frame.f_code is threading.Condition.wait.__code__ and frame.f_back.f_back.f_code is serve.serve.__code__:
        signal.raise_signal(signal.SIGTERM)

sys.settrace(strike)
sys.exit(serve.main(sys.argv[1:]))
"""


def test_a_signal_at_a_bad_moment_ends_it_too(tmp_path: Path):
    arguments = ["--hardware", FIXTURES / "demo.yaml", "--ready", tmp_path / "ready.json"]
    with started([sys.executable, "-c", SIGNALLED, *map(str, arguments)], tmp_path) as (running, _):
        running.send_signal(signal.SIGTERM)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 0


@pytest.mark.parametrize("body", ["Content-Length: -5\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nZZ\r\n"])
def test_a_body_whose_length_makes_no_sense_is_a_bad_request(body: str, tmp_path: Path):
    with process(tmp_path) as (_, ready):
        host, port = ready["chassis"]["A"]["h3api"].removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(f"POST /allocation HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{body}".encode())
            assert connection.makefile("rb").readline().upper() == b"HTTP/1.1 400 BAD REQUEST\r\n"
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_listen_is_the_first_port_and_all_others_are_free_ones(tmp_path: Path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with process(tmp_path, "--listen", f"127.0.0.1:{port}", hardware=FIXTURES / "testbed.yaml") as (_, ready):
        assert ready["chassis"]["A"]["h3api"] == f"http://127.0.0.1:{port}"
        assert ready["chassis"]["B"]["h3api"] != f"http://127.0.0.1:{port}"


def test_only_the_asked_dialect_is_spoken(tmp_path: Path):
    with process(tmp_path, "--dialect", "h3api") as (_, ready):
        assert list(ready["chassis"]["A"]) == ["h3api"]
        assert ask(ready["chassis"]["A"]["h3api"], "GET", "/resources")[0] == 404


def run(*arguments: object) -> tuple[int, str]:
    ended = subprocess.run(
        command(*arguments),
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return ended.returncode, ended.stderr


def test_a_bad_hardware_file_is_exit_code_2_and_one_line(tmp_path: Path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("apiVersion: mews/v1\nkind: Hardware\nmetadata: {name: x}\nchassis: [{name: A, slots: lots}]\n")
    code, text = run("--hardware", bad)
    assert code == 2
    assert text.splitlines() == [f"{bad}:4: chassis[0].ports: null: must be a mapping"]
    code, text = run("--hardware", tmp_path / "none.yaml")
    assert code == 2
    assert len(text.splitlines()) == 1


def test_a_port_in_use_is_exit_code_3_and_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, text = run("--hardware", FIXTURES / "demo.yaml", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert code == 3
    assert "Address already in use" in text
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize("text", ["8000", ":8000", "host:", "host:port", "host:70000"])
def test_a_bad_listen_is_told(text: str):
    with pytest.raises(ValueError, match="must be HOST:PORT"):
        parse_listen(text)


def test_the_table_survives_kill_9_exactly_as_it_was_acknowledged(tmp_path: Path):
    """Writes run in a loop while the process is killed; the write in flight may or may not have happened."""
    state = tmp_path / "state"
    acknowledged: dict[str, str] = {}
    for round_ in range(3):
        with process(tmp_path, "--state", state) as (running, ready):
            url = ready["chassis"]["A"]["resource-pool"]
            if round_ == 0:
                acknowledged = ports(url)
            table = ports(url)
            in_flight = acknowledged.pop("?", None)
            different = [device for device in table if table[device] != acknowledged[device]]
            assert different in ([], [in_flight]), (different, in_flight)
            acknowledged = table
            killer = threading.Timer(0.01 + 0.1 * round_, running.kill)
            written = 0
            for number in itertools.count():
                device = sorted(table)[number // 2 % 12]
                try:
                    if number % 2 == 0 or not acknowledged[device]:
                        status, _ = (
                            ask(url, "DELETE", "/allocation", {"devid": device})
                            if acknowledged[device]
                            else ask(url, "POST", "/allocation", {"devid": device, "hostport": "2"})
                        )
                        wanted = "" if acknowledged[device] else "2"
                    else:
                        continue
                except (OSError, http.client.HTTPException):
                    acknowledged["?"] = device
                    break
                assert status == 204
                acknowledged[device] = wanted
                written += 1
                if written == 6:
                    killer.start()
            killer.join()
    with process(tmp_path, "--state", state) as (_, ready):
        in_flight = acknowledged.pop("?")
        table = ports(ready["chassis"]["A"]["resource-pool"])
        assert [device for device in table if table[device] != acknowledged[device]] in ([], [in_flight])


def test_a_state_file_in_use_is_exit_code_3_and_one_line(tmp_path: Path):
    with process(tmp_path, "--state", tmp_path / "state"):
        code, text = run("--hardware", FIXTURES / "demo.yaml", "--state", tmp_path / "state")
    assert code == 3
    assert "locked" in text
    assert len(text.splitlines()) == 1


def test_a_second_of_latency_passes_at_the_speed_that_is_asked(tmp_path: Path):
    hardware = tmp_path / "slow.yaml"
    text = (FIXTURES / "demo.yaml").read_text()
    hardware.write_text(text.replace("profile: instant", "profile: {detach: 20}"))
    with process(tmp_path, "--speed", "50", hardware=hardware) as (_, ready):
        begun = time.monotonic()
        assert ask(ready["chassis"]["A"]["resource-pool"], "DELETE", "/allocation", {"devid": "000100"})[0] == 204
        assert 0.4 <= time.monotonic() - begun < 15  # 20 emulated seconds


def test_redfish_alone_speaks_tls_on_the_port_that_is_named_by_a_certificate_of_its_own(tmp_path: Path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with process(tmp_path, "--dialect", "redfish", "--listen", f"127.0.0.1:{port}") as (_, ready):
        assert ready["chassis"]["A"] == {"redfish": f"https://127.0.0.1:{port}"}
        trusted = ssl.create_default_context(cafile=ready["ca"])
        connection = http.client.HTTPSConnection(f"127.0.0.1:{port}", timeout=60, context=trusted)
        connection.request("GET", "/redfish/v1/")
        assert connection.getresponse().status == 200
        connection.close()
        assert ask(f"http://127.0.0.1:{port}", "GET", "/redfish/v1/")[0] == 400


def test_plain_ports_come_first_then_those_under_tls_and_each_start_has_the_same(tmp_path: Path):
    with process(tmp_path, hardware=FIXTURES / "testbed.yaml") as (_, ready):
        urls = [url for faces in ready["chassis"].values() for url in faces.values()]
    assert len({url.rpartition(":")[2] for url in urls}) == 4
    plain, *further = dict.fromkeys(sorted(urls, key=lambda url: url.partition(":")[0]))
    options = ["--listen", plain.rpartition("/")[2]]
    options += [word for url in further for word in ("--further", url.rpartition(":")[2])]
    with process(tmp_path, *options, hardware=FIXTURES / "testbed.yaml") as (_, again):
        assert again["chassis"] == ready["chassis"]


def test_redfish_is_not_on_the_plain_port_and_the_others_are_not_on_its_own(tmp_path: Path):
    with process(tmp_path) as (_, ready):
        faces = ready["chassis"]["A"]
        assert ask(faces["h3api"], "GET", "/redfish/v1/")[0] == 404
        trusted = ssl.create_default_context(cafile=ready["ca"])
        connection = http.client.HTTPSConnection(faces["redfish"].removeprefix("https://"), timeout=60, context=trusted)
        connection.request("GET", "/resources")
        assert connection.getresponse().status in (401, 404)
        connection.close()


def test_insecure_is_the_old_way_and_says_so_in_one_line(tmp_path: Path):
    with process(tmp_path, "--insecure") as (_, ready):
        assert len(set(ready["chassis"]["A"].values())) == 1
        assert ready["ca"] is None
        account = ready["accounts"]["redfish"]
        login = {"UserName": account["user"], "Password": account["password"]}
        url = ready["chassis"]["A"]["redfish"]
        sessions = "/redfish/v1/SessionService/Sessions"
        assert ask(url, "POST", sessions, login, **{"Content-Type": "application/json"})[0] == 201
    said = (tmp_path / "log").read_text()
    assert said.count("--insecure: Redfish and control speak plain HTTP") == 1


def test_clients_that_do_not_finish_their_handshake_keep_nobody_waiting(tmp_path: Path):
    with process(tmp_path) as (_, ready):
        url = ready["chassis"]["A"]["redfish"]
        host, _, port = url.removeprefix("https://").partition(":")
        mute = [socket.create_connection((host, int(port)), timeout=60) for _ in range(100)]
        try:
            trusted = ssl.create_default_context(cafile=ready["ca"])
            began = time.monotonic()
            connection = http.client.HTTPSConnection(f"{host}:{port}", timeout=60, context=trusted)
            connection.request("GET", "/redfish/v1/")
            assert connection.getresponse().status == 200
            connection.close()
            assert time.monotonic() - began < 8  # each of the mute ones has ten seconds
        finally:
            for each in mute:
                each.close()


def test_a_big_pool_takes_two_threads_a_port_and_one_a_chassis(tmp_path):
    file = tmp_path / "big.yaml"
    file.write_text(hardware(hosts=4, chassis=40, gpus_per_host=10))
    before = threading.active_count()
    server = ChassisServer(load_hardware(file))
    server.start()
    try:
        ports = 2 * 40 + 1
        assert threading.active_count() - before <= 2 * ports + 40 + 5
    finally:
        server.stop()
    # Threads of clients that were just served end by themselves, soon.
    assert until(lambda: threading.active_count() <= before + 1)
