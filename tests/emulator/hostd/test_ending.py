"""The emulator's processes end when they are told to, whatever they wait for."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mews.emulator.hostd.chassis_control import ChassisControl, ChassisStream
from mews.emulator.waking import wake_while
from mews.harness.catalogue.files import shipped


def test_a_stream_whose_answer_has_begun_ends_when_another_thread_says_so(tmp_path: Path) -> None:
    """Its connection is that of one answer, and forgets its socket as soon as that begins."""
    listening = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def busy() -> None:
        with listening.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: {}\n")
            over.wait(60)

    ready = tmp_path / "chassis.json"
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    ready.write_text(json.dumps({"control": {"url": url, "token": "t"}}), "utf-8")
    peer = threading.Thread(target=busy, daemon=True)
    peer.start()
    stream = ChassisStream(ChassisControl(ready))
    response = stream.open("/v1/events")
    assert response.readline() == b"data: {}\n"
    reading = threading.Thread(target=response.readline, daemon=True)
    reading.start()
    stream.end()
    reading.join(20)
    ended = not reading.is_alive()
    over.set()
    peer.join(60)
    listening.close()
    assert ended


def test_a_server_that_looks_with_each_connection_whether_it_is_to_end_is_woken() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(60)
    knocks = []

    def stop() -> None:
        knocks.append(listening.accept()[0])

    wake_while(stop, socket.AF_INET, listening.getsockname())
    assert len(knocks) == 1
    knocks[0].close()
    listening.close()


@pytest.mark.wall
def test_a_process_with_a_lifeline_ends_well_while_somebody_holds_its_other_end(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    hardware = str(shipped("hardware", "demo"))
    argv = [sys.executable, "-m", "mews.emulator.serve", "--hardware", hardware, "--insecure", "--lifeline"]
    with subprocess.Popen([*argv, "--ready", str(ready)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
        deadline = time.monotonic() + 60
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
