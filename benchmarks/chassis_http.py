"""GET resources on a served chassis of 12 and 1,000 devices, beside a plain Flask + waitress list of the same rows."""

from __future__ import annotations

import json
import sys
import tempfile
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.common import await_condition, in_turns, process, progress, report, requests_per_s
from benchmarks.hardware import hardware

PATH = "/h3api/v1/resources"

BASELINE = """
import json, os, sys
from flask import Flask, jsonify
from waitress import create_server
app = Flask("baseline")
rows = json.load(open(sys.argv[1]))
@app.get("/h3api/v1/resources")
def resources():
    return jsonify(rows)
server = create_server(app, host="127.0.0.1", port=0, threads=8)
open(sys.argv[2] + ".part", "w").write(str(server.effective_port))
os.rename(sys.argv[2] + ".part", sys.argv[2])
server.run()
"""


def measure(devices: int, folder: Path) -> None:
    """One figure with its baseline."""
    file, ready, port_file = folder / "hardware.yaml", folder / "ready.json", folder / "port"
    rows = folder / "rows.json"
    file.write_text(hardware(hosts=4, gpus_per_host=devices // 4))
    with process(sys.executable, "-m", "mews.emulator.serve", "--hardware", str(file), "--ready", str(ready)):
        await_condition(ready.exists, "the chassis")
        base = json.loads(ready.read_text())["chassis"]["C0"]["h3api"]
        url = urlsplit(base)
        with urllib.request.urlopen(f"{url.scheme}://{url.netloc}{PATH}") as answer:
            rows.write_bytes(answer.read())
        with process(sys.executable, "-c", BASELINE, str(rows), str(port_file)):
            await_condition(port_file.exists, "the baseline")
            ours, plain = in_turns(
                lambda: requests_per_s(str(url.hostname), int(url.port or 80), PATH, seconds=1.5),
                lambda: requests_per_s("127.0.0.1", int(port_file.read_text()), PATH, seconds=1.5),
            )
    report(f"chassis_get_{devices}", ours, "requests/s", baseline=plain, baseline_name="flask+waitress, the same rows")


def main() -> None:
    """Both sizes."""
    for devices in (12, 1000):
        progress(f"GET {PATH} with {devices} devices")
        with tempfile.TemporaryDirectory() as folder:
            measure(devices, Path(folder))


if __name__ == "__main__":
    main()
