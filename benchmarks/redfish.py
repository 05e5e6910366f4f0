"""GET of the service root, a Zone and a PCIeDevice, beside sushy-tools' static server with the very same resources."""

from __future__ import annotations

import http.client
import json
import socket
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.common import await_condition, process, progress, report
from benchmarks.hardware import hardware

ROOT = "/redfish/v1"
CONNECTIONS, SECONDS = 4, 3.0
BASELINE = "sushy-tools' sushy-static, the same resources"


def login(base: str, password: str) -> str:
    """A session's token."""
    body = json.dumps({"UserName": "admin", "Password": password}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{base}{ROOT}/SessionService/Sessions", body, headers)
    with urllib.request.urlopen(request) as answer:
        return str(answer.headers["X-Auth-Token"])


def fetch(base: str, path: str, token: str) -> bytes:
    """A resource."""
    request = urllib.request.Request(base + path, headers={"X-Auth-Token": token})
    with urllib.request.urlopen(request) as answer:
        return bytes(answer.read())


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def answers(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def requests_per_s(port: int, path: str, headers: dict[str, str]) -> float:
    """GETs answered with 200 per second, each on a connection of its own: sushy-static keeps none open."""
    counts = [0] * CONNECTIONS
    end = time.monotonic() + SECONDS

    def drive(slot: int) -> None:
        while time.monotonic() < end:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path, headers=headers)
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


def ours(folder: Path) -> dict[str, tuple[float, bytes]]:
    """Path -> requests per second, and the body."""
    file, ready = folder / "hardware.yaml", folder / "ready.json"
    file.write_text(hardware(hosts=4, gpus_per_host=3))
    found = {}
    with process(sys.executable, "-m", "mews.emulator.serve", "--hardware", str(file), "--ready", str(ready)):
        await_condition(ready.exists, "the chassis")
        announced = json.loads(ready.read_text())
        ((name, urls),) = list(announced["chassis"].items())[:1]
        base = urls["redfish"]
        token = login(base, announced["accounts"]["redfish"]["password"])
        first = [
            json.loads(fetch(base, path, token))["Members"][0]["@odata.id"]
            for path in (f"{ROOT}/Fabrics/PCIe/Zones", f"{ROOT}/Chassis/{name}/PCIeDevices")
        ]
        url = urlsplit(base)
        for path in (f"{ROOT}/", *first):
            progress(f"GET {path}")
            speed = requests_per_s(int(url.port or 80), path, {"X-Auth-Token": token})
            found[path] = (speed, fetch(base, path, token))
    return found


def main() -> None:
    """Three figures."""
    script = Path(sys.executable).parent / "sushy-static"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = ours(folder)
        for path, (_, body) in found.items():
            file = folder / "mockup" / path.removeprefix(ROOT).strip("/") / "index.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
        plain = dict.fromkeys(found, None)
        port = free_port()
        if script.exists():
            arguments = ("--mockup-files", str(folder / "mockup"), "--interface", "127.0.0.1", "--port", str(port))
            with process(str(script), *arguments):
                await_condition(lambda: answers(port), "sushy-static")
                plain = {path: requests_per_s(port, path, {}) for path in found}
        else:
            progress("sushy-tools is not installed: no baseline")
    for kind, (path, (speed, _)) in zip(("root", "zone", "pcie_device"), found.items(), strict=True):
        report(f"redfish_get_{kind}", speed, "requests/s", baseline=plain[path], baseline_name=BASELINE)


if __name__ == "__main__":
    main()
