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
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.common import await_condition, process, progress, report
from benchmarks.hardware import hardware

ROOT = "/redfish/v1"
CONNECTIONS, SECONDS = 4, 3.0
BASELINE = "sushy-tools' sushy-static, the same resources"
KINDS = ("root", "zone", "pcie_device", "sensor")


@dataclass
class Place:
    """A server: where it is, whom to trust there, what to send with each request."""

    base: str
    trusted: ssl.SSLContext | None
    headers: dict[str, str] = field(default_factory=dict)

    def connection(self) -> http.client.HTTPConnection:
        """One more."""
        port = urlsplit(self.base).port or 80
        if self.trusted is None:
            return http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=self.trusted)

    def fetch(self, path: str) -> bytes:
        """A resource."""
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
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def answers(place: Place) -> bool:
    """Whether somebody answers there."""
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


def measured(place: Place, paths: Mapping[str, str]) -> dict[str, float]:
    """Kind -> requests per second."""
    found = {}
    for kind, path in paths.items():
        progress(f"GET {place.base}{path}")
        found[kind] = requests_per_s(place, path)
    return found


def ours(folder: Path, *options: str) -> tuple[dict[str, float], dict[str, bytes], dict[str, str], Any]:
    """Kind -> requests per second; path -> body; kind -> path; and what the ready file says."""
    file, ready = folder / "hardware.yaml", folder / "ready.json"
    file.write_text(hardware(hosts=4, gpus_per_host=3))
    argv = ("-m", "mews.emulator.serve", "--hardware", str(file), "--ready", str(ready), *options)
    with process(sys.executable, *argv):
        await_condition(ready.exists, "the chassis")
        announced = json.loads(ready.read_text())
        ((name, urls),) = list(announced["chassis"].items())[:1]
        trusted = ssl.create_default_context(cafile=announced["ca"]) if "ca" in announced else None
        place = Place(urls["redfish"], trusted)
        log_in(place, announced["accounts"]["redfish"]["password"])
        lists = (f"{ROOT}/Fabrics/PCIe/Zones", f"{ROOT}/Chassis/{name}/PCIeDevices", f"{ROOT}/Chassis/{name}/Sensors")
        members = [json.loads(place.fetch(path))["Members"][-1]["@odata.id"] for path in lists]
        paths = dict(zip(KINDS, (f"{ROOT}/", *members), strict=True))
        return measured(place, paths), {path: place.fetch(path) for path in paths.values()}, paths, announced


def theirs(folder: Path, bodies: Mapping[str, bytes], paths: Mapping[str, str], tls: Mapping[str, str]) -> Any:
    """Kind -> requests per second of sushy-static; None where it is not installed."""
    script = Path(sys.executable).parent / "sushy-static"
    if not script.exists():
        progress("sushy-tools is not installed: no baseline")
        return {}
    for path, body in bodies.items():
        file = folder / "mockup" / path.removeprefix(ROOT).strip("/") / "index.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    port = free_port()
    options = ["--mockup-files", str(folder / "mockup"), "--interface", "127.0.0.1", "--port", str(port)]
    options += ["--ssl-certificate", tls["certificate"], "--ssl-key", tls["key"]] if tls else []
    trusted = ssl.create_default_context(cafile=tls["certificate"]) if tls else None
    place = Place(f"{'https' if tls else 'http'}://127.0.0.1:{port}", trusted)
    with process(str(script), *options):
        await_condition(lambda: answers(place), "sushy-static")
        return measured(place, paths)


def main() -> None:
    """Four figures in plain HTTP, and four under TLS."""
    from mews.emulator.tls import made

    os.environ.pop("MEWS_REDFISH_PASSWORD", None)
    for suffix in ("", "_tls"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            identity = made(folder)
            files = {"certificate": str(identity.certificate), "key": str(identity.key)} if suffix else {}
            options = [word for key, path in files.items() for word in (f"--{key}", path)] or ["--insecure"]
            found, bodies, paths, _ = ours(folder, *options)
            baseline = theirs(folder, bodies, paths, files)
        for kind, speed in found.items():
            report(
                f"redfish_get_{kind}{suffix}", speed, "requests/s", baseline=baseline.get(kind), baseline_name=BASELINE
            )


if __name__ == "__main__":
    main()
