"""GETs of Redfish, logged in and with ETags, beside sushy-tools' static server with the very same resources.

Each request has a connection of its own, as sushy-static keeps none open; both in plain HTTP (ours ``--insecure``),
and both under TLS. What does not change is one thing, a sensor, whose reading is another at each moment, another.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.common import await_condition, in_turns, process, progress, report
from benchmarks.hardware import hardware

ROOT = "/redfish/v1"
CONNECTIONS, SECONDS, HOSTS = 4, 1.0, 4
SIZES = (12, 1_000, 10_000)
"""Devices: under TLS at the first size only, as what TLS costs does not depend on them."""
MOST = 1_000
"""Devices of a chassis; beyond them there are several, of which the first is asked."""
BASELINE = "sushy-tools' sushy-static, the same resources"
KINDS = ("root", "zone", "pcie_device", "sensor", "zones")


@dataclass
class Place:
    """A server: where it is, whom to trust there, what to send with each request."""

    base: str
    trusted: ssl.SSLContext | None
    headers: dict[str, str] = field(default_factory=dict)

    def connection(self) -> http.client.HTTPConnection:
        """Return one more."""
        port = urlsplit(self.base).port or 80
        if self.base.startswith("http://"):
            return http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=self.trusted)

    def fetch(self, path: str) -> bytes:
        """Return a resource."""
        request = urllib.request.Request(self.base + path, headers=self.headers)
        with urllib.request.urlopen(request, context=self.trusted) as answer:
            return bytes(answer.read())


def log_in(place: Place, password: str) -> None:
    """Send a session's token from now on."""
    body = json.dumps({"UserName": "admin", "Password": password}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{place.base}{ROOT}/SessionService/Sessions", body, headers)
    with urllib.request.urlopen(request, context=place.trusted) as answer:
        place.headers = {"X-Auth-Token": str(answer.headers["X-Auth-Token"])}


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def answers(place: Place) -> bool:
    """Return whether somebody answers there."""
    try:
        connection = place.connection()
        connection.connect()
        connection.close()
    except OSError:
        return False
    return True


def requests_per_s(place: Place, path: str) -> float:
    """GETs answered with 200 per second, each on a connection of its own."""
    counts = [0] * CONNECTIONS
    end = time.monotonic() + SECONDS

    def drive(slot: int) -> None:
        while time.monotonic() < end:
            connection = place.connection()
            connection.request("GET", path, headers=place.headers)
            answer = connection.getresponse()
            answer.read()
            connection.close()
            if answer.status != 200:
                raise RuntimeError(f"GET {path}: {answer.status}")
            counts[slot] += 1

    threads = [threading.Thread(target=drive, args=(slot,)) for slot in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SECONDS


@contextmanager
def ours(folder: Path, devices: int, *options: str) -> Iterator[Place]:
    """Our server with so many devices on four hosts; somebody is logged in."""
    file, ready = folder / "hardware.yaml", folder / "ready.json"
    chassis = max(1, devices // MOST)
    file.write_text(hardware(hosts=HOSTS, chassis=chassis, gpus_per_host=devices // HOSTS))
    argv = ("-m", "mews.emulator.serve", "--hardware", str(file), "--ready", str(ready), *options)
    with process(sys.executable, *argv):
        await_condition(ready.exists, "the chassis")
        announced = json.loads(ready.read_text())
        trusted = ssl.create_default_context(cafile=announced["ca"]) if announced["ca"] else None
        place = Place(announced["chassis"]["C0"]["redfish"], trusted)
        log_in(place, announced["accounts"]["redfish"]["password"])
        yield place


def paths_of(place: Place) -> dict[str, str]:
    """Kind -> path."""
    home = f"{ROOT}/Chassis/C0"
    lists = (f"{ROOT}/Fabrics/PCIe/Zones", f"{home}/PCIeDevices", f"{home}/Sensors")
    members = [json.loads(place.fetch(path))["Members"][-1]["@odata.id"] for path in lists]
    return dict(zip(KINDS, (f"{ROOT}/", *members, lists[0]), strict=True))


@contextmanager
def theirs(folder: Path, place: Place, paths: Mapping[str, str], tls: Mapping[str, str]) -> Iterator[Place | None]:
    """sushy-static with the same resources; None where it is not installed."""
    script = Path(sys.executable).parent / "sushy-static"
    if not script.exists():
        progress("sushy-tools is not installed: no baseline")
        yield None
        return
    for path in paths.values():
        file = folder / "mockup" / path.removeprefix(ROOT).strip("/") / "index.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(place.fetch(path))
    port = free_port()
    options = ["--mockup-files", str(folder / "mockup"), "--interface", "127.0.0.1", "--port", str(port)]
    options += ["--ssl-certificate", tls["certificate"], "--ssl-key", tls["key"]] if tls else []
    found = Place(f"{'https' if tls else 'http'}://127.0.0.1:{port}", place.trusted)
    with quiet_process(str(script), *options):
        await_condition(lambda: answers(found), "sushy-static")
        yield found


@contextmanager
def quiet_process(*argv: str) -> Iterator[None]:
    """Provide a child that says every request."""
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        child.kill()
        child.wait()


def main() -> None:
    """Each kind of resource at each size in plain HTTP, and under TLS."""
    os.environ.pop("MEWS_REDFISH_PASSWORD", None)
    for devices in SIZES:
        suffix = "" if devices == SIZES[0] else f"_{devices}"
        compare(devices, suffix, tls=False)
    compare(SIZES[0], "_tls", tls=True)


def compare(devices: int, suffix: str, *, tls: bool) -> None:
    """Ours and theirs with so many devices."""
    from mews.emulator.tls import made

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        identity = made(folder)
        files = {"certificate": str(identity.certificate), "key": str(identity.key)} if tls else {}
        options = [word for key, path in files.items() for word in (f"--{key}", path)] or ["--insecure"]
        with ours(folder, devices, *options) as place:
            paths = paths_of(place)
            with theirs(folder, place, paths, files) as other:
                for kind, path in paths.items():
                    measure(f"redfish_get_{kind}{suffix}", path, place, other)


def measure(bench: str, path: str, place: Place, other: Place | None) -> None:
    """One figure."""
    progress(f"GET {place.base}{path}")
    places = [each for each in (place, other) if each is not None]
    speeds = in_turns(*(partial(requests_per_s, each, path) for each in places))
    report(bench, speeds[0], "requests/s", baseline=speeds[1] if other else None, baseline_name=BASELINE)


if __name__ == "__main__":
    main()
