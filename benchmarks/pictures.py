"""Pictures of the report and of the live page, for docs/report.md: three widths, both themes, in a headless browser.

``python -m benchmarks.pictures [DIR]`` runs a scenario that fails, and a session with a fault, a move, a killed
component and pods that wait; what it writes is to be looked at. DIR is docs/pictures unless it is given.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, progress

sys.path.insert(0, str(ROOT))
WIDTHS = {400: 900, 1280: 900, 2560: 1440}
THEMES = ("light", "dark")
MEWS = [sys.executable, "-m", "mews.harness.cli"]

HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: third-pod-waits}\nhardware: demo\ntimeout: 300\n"

CHOOSE = """
const lanes = [...mewsPicture.model.lanes.values()];
const lane = lanes.find((lane) => lane.group === "pods" && lane.label.includes("trainer"));
mewsPicture.timeline.select({ lane, segment: lane.at(lane.segments[0].from + 1) ?? lane.last() }, { reveal: true });
"""
"""The pod whose GPU moved."""


def a_pod(name: str, gpus: int) -> dict[str, Any]:
    """It holds its GPUs until it is deleted."""
    limits = {"falcon.com/gpu": str(gpus)}
    container = {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": limits}}
    spec = {"schedulerName": "kubecomp-scheduler", "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": spec}


STEPS: tuple[dict[str, Any], ...] = (
    {"fault": {"chassis": "A", "add": {"kind": "dropped-connection", "operation": "attach", "count": 1}}},
    {"name": "a GPU moves", "apply": a_pod("trainer", 5)},
    {"name": "it runs", "wait": {"pod": {"name": "trainer", "phase": "Running"}}},
    {"apply": [a_pod("second", 5), a_pod("third", 5)]},
    {"name": "Reconfig-Mgr dies", "kill": "reconfig-manager"},
)
LAST: dict[str, Any] = {"name": "the third runs, too", "wait": {"pod": {"name": "third", "phase": "Running"}}}


def scenario() -> str:
    """Return the steps as a file, with one that fails."""
    return HEAD + "steps:\n" + "".join(f"  - {json.dumps(step)}\n" for step in (*STEPS, {**LAST, "timeout": 20}))


@contextmanager
def session(folder: Path) -> Iterator[str]:
    """Provide the address of the page of a session in which the steps were done."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "XDG_STATE_HOME": str(folder)}
    command = [*MEWS, "up", "--name", "lab", "--json", "--wait", "devices", "--speed", "10", "--dir", str(folder / "d")]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        for step in (*STEPS, {"sleep": 30}):
            subprocess.run([*MEWS, "step", json.dumps(step), "--name", "lab"], env=environment, check=True)
        yield f"{ready['session']['url']}/#token={ready['session']['token']}"
    finally:
        process.terminate()
        process.wait()


def take(chrome: Any, name: str, folder: Path) -> None:
    """One picture for each width and theme of the page that is open."""
    for theme in THEMES:
        chrome.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": theme}]
        })  # fmt: skip
        for width, height in WIDTHS.items():
            chrome.size(width, height)
            chrome.driver.execute_async_script("setTimeout(arguments[0], 900)")
            chrome.driver.save_screenshot(str(folder / f"{name}-{width}-{theme}.png"))


def main() -> None:
    """Take them all."""
    from tests.browser.driver import browser  # the benchmarks run from a checkout

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as scratch, browser() as chrome:
        there = Path(scratch)
        (there / "third.yaml").write_text(scenario(), encoding="utf-8")
        page = there / "report.html"
        subprocess.run([*MEWS, "run", "third.yaml", "--html", str(page)], cwd=there, check=False)
        chrome.size(1280)
        chrome.open(page.as_uri(), "window.mewsPicture?.timeline.frames.length")
        chrome.js(CHOOSE)
        take(chrome, "report", folder)
        with session(there) as address:
            chrome.size(1280)
            chrome.open(address, "window.mewsLive?.model?.lines.length && document.querySelector('.gpu')")
            take(chrome, "live", folder)
        progress(f"pictures in {folder}: look at them")


if __name__ == "__main__":
    main()
