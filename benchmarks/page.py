"""The report of a long run, in a headless browser: how long it takes to open, and to draw a frame.

A journal of 50,000 lines about 200 GPUs, 50 hosts and 1,000 pods that come and go, GPUs moving between hosts: as many
lines of each kind as a real run of a system that reconfigures has. It is made here, so that nothing has to run for it.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, progress, report
from mews.harness.journal import Journal
from mews.harness.report.html import html_page
from mews.harness.report.run import Run
from mews.harness.scenario.result import Result

sys.path.insert(0, str(ROOT))
GPUS, HOSTS, PODS, LINES = 200, 50, 1000, 50_000

FRAMES = """
const line = mewsPicture.timeline, done = arguments[arguments.length - 1], painted = [], between = [];
const all = line.to - line.from;
let number = 0, last = null;
const step = (now) => {
  if (last !== null) between.push(now - last);
  last = now;
  if (number === 150) { done({ painted, between }); return; }
  if (number < 50) line.zoom(1.06, all * 0.4);
  else if (number < 100) line.pan(all * 0.002);
  else { if (number === 100) line.fit(); line.scroll.scrollTop += 180; }
  const began = performance.now();
  line.paint();
  painted.push(performance.now() - began);
  number += 1;
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""

APPEND = """
const lines = JSON.parse(arguments[0]), took = [];
for (let first = 0; first < lines.length; first += 100) {
  const began = performance.now();
  mewsPicture.append(lines.slice(first, first + 100));
  mewsPicture.timeline.paint();
  took.push(performance.now() - began);
}
return took;
"""


class Maker:
    """Writes a journal; every choice comes from one seed."""

    def __init__(self) -> None:
        self.now = 0.0
        self.journal = Journal(lambda: self.now)
        self._rng = random.Random(1)
        self._hosts = [f"host-{number}" for number in range(HOSTS)]
        self._gpus = [self._gpu(number) for number in range(GPUS)]
        self._at = {gpu["gpuid"]: self._hosts[number % HOSTS] for number, gpu in enumerate(self._gpus)}

    @staticmethod
    def _gpu(number: int) -> dict[str, Any]:
        device = f"{number:04X}00"
        return {"device": device, "uuid": f"GPU-{number:032x}", "gpuid": f"0-{device}"}

    def make(self, most: int) -> Journal:
        """Return all of it."""
        write = self.journal.write
        ports = {str(number): host for number, host in enumerate(self._hosts)}
        table = {gpu["device"]: {**gpu, "port": "1", "host": self._at[gpu["gpuid"]]} for gpu in self._gpus}
        write("chassis", "chassis/A", "table", pool="pool-0", ports=ports, devices=table)
        for host in self._hosts:
            write("api", f"node/{host}", "created", allocatable={"cpu": "64"})
            write("api", f"node/{host}", "condition", type="Ready", status="True", reason="KubeletReady")
        number = 0
        while len(self.journal) < most:
            self._pod(number)
            number += 1
        return self.journal

    def _pod(self, number: int) -> None:
        write, rng = self.journal.write, self._rng
        name, uid = f"job-{number % PODS}", f"uid-{number}"
        host, operation = rng.choice(self._hosts), number
        api = f"pod/default/{name}"
        write("api", api, "created", uid=uid, scheduler="s", node="", phase="Pending", requests={"falcon.com/gpu": 1})
        for _ in range(rng.randrange(3)):
            self.now += rng.expovariate(2)
            text = f"0/{HOSTS} nodes are available: {HOSTS} Insufficient falcon.com/gpu. Try {rng.random():.6f}."
            fields = {"type": "Warning", "reason": "FailedScheduling", "object": api, "message": text}
            write("api", "kubecomp-scheduler", "event", **fields)
        gpu = rng.choice(self._gpus)
        old, place = (
            self._at[gpu["gpuid"]],
            {"port": "1", "host": host, "old_port": "1", "old_host": self._at[gpu["gpuid"]]},
        )
        function = {**gpu, "kind": "GPU", "bdf": "0000:20:00.0", "minor": 1, "healthy": True}
        for event in ("nvml-hidden", "driver-unbound", "function-removed", "link-down"):
            write("host", f"host/{old}", event, **function)
        gone = {"port": None, "host": None, "old_port": "1", "old_host": old}
        for event, where in (("detach-begun", gone), ("detached", gone), ("attach-begun", place), ("attached", place)):
            self.now += rng.expovariate(4)
            write("chassis", "chassis/A", event, **gpu, **where, operation=operation)
        for event in ("link-up", "function-added", "driver-bound", "nvml-visible"):
            write("host", f"host/{host}", event, **function)
        self._at[gpu["gpuid"]] = host
        write("api", f"node/{host}", "allocatable", resource="falcon.com/gpu", old="4", new="5")
        write("api", api, "bound", uid=uid, node=host)
        pod = {"pod": f"default/{name}", "uid": uid}
        device = {"resource": "falcon.com/gpu", "devices": [gpu["gpuid"]]}
        write("kubelet", f"kubelet/{host}", "allocated", **pod, container="main", **device)
        write("api", api, "phase", uid=uid, phase="Running", reason="")
        self.now += rng.expovariate(1)
        write("api", api, "phase", uid=uid, phase="Succeeded", reason="")
        write("kubelet", f"kubelet/{host}", "pod-ended", **pod)
        write("api", api, "deleted", uid=uid)


def main() -> None:
    """Print load time, frame times, and the time that a hundred live lines take."""
    from tests.browser.driver import browser  # the benchmarks run from a checkout

    progress(f"a report of {LINES} lines, {GPUS} GPUs, {PODS} pods in a headless browser")
    journal = Maker().make(LINES + 2000)
    lines = journal.lines()
    result = Result("page", "page.yaml", "embedded", "virtual", 1, "passed", virtual_s=lines[-1].t)
    began = time.perf_counter()
    page = html_page([Run(result, lines[:LINES])])
    report("page_written", time.perf_counter() - began, "s")
    report("page_size", len(page) / 2**20, "MiB")
    if shutil.which("chromedriver") is None or find_spec("selenium") is None:
        progress("not measured in a browser: chromedriver or selenium is missing")
        return
    with tempfile.TemporaryDirectory() as folder, browser() as chrome:
        file = Path(folder) / "report.html"
        file.write_text(page, encoding="utf-8")
        chrome.size(1280)
        chrome.open(file.as_uri(), "window.mewsPicture?.timeline.frames.length")
        ready = chrome.js("return performance.getEntriesByName('mews-ready')[0].startTime")
        report("page_load", ready / 1000, "s")
        measured = chrome.driver.execute_async_script(FRAMES)
        report("page_frame_median", statistics.median(measured["painted"]), "ms", baseline=16.7, baseline_name="60 Hz")
        worst = statistics.quantiles(measured["painted"], n=20)[-1]
        report("page_frame_p95", worst, "ms", baseline=16.7, baseline_name="60 Hz")
        report("page_frame_interval_p95", statistics.quantiles(measured["between"], n=20)[-1], "ms")
        more = json.dumps([{"number": line.number, **line.as_dict()} for line in lines[LINES:]])
        report("page_hundred_lines", statistics.median(chrome.js(APPEND, more)), "ms")


if __name__ == "__main__":
    main()
