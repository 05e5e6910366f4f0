"""The live page with 1,000 pods and 200 GPUs, in a headless browser before the session's own server: does it keep up?

Pods end, GPUs move between hosts for those that wait, new ones come: some 400 lines a second, five times what a busy
session writes. Printed are the page's frames and the work that a batch of lines makes, and the server's processor time.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import statistics
import sys
import threading
import time
from importlib.util import find_spec
from typing import Any
from urllib.request import Request, urlopen

from benchmarks.common import ROOT, progress, report
from mews.harness.journal import LINES_KEPT, Journal
from mews.harness.live.server import SessionServer
from mews.harness.report.live_page import live_file

sys.path.insert(0, str(ROOT))
GPUS, HOSTS, PODS = 200, 50, 1000
SECONDS, TURNS = 10.0, 25
"""For how long, and how many pods end in each second."""

FRAMES = """
const done = arguments[arguments.length - 1], until = performance.now() + arguments[0] * 1000, between = [], spent = [];
const line = mewsLive.picture.timeline;
line.frames.length = 0;
let last = null, seen = null;
const step = (now) => {
  if (last !== null) between.push(now - last);
  if (mewsLive.spent !== seen) spent.push(seen = mewsLive.spent);
  last = now;
  if (now < until) requestAnimationFrame(step); else done({ between, spent, painted: [...line.frames] });
};
requestAnimationFrame(step);
"""


class Crowd:
    """A journal in which 200 pods run, 800 wait, and go on; every choice comes from one seed."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.journal = Journal(lambda: time.monotonic() - self._began)
        self.journal.keep_latest(LINES_KEPT)  # as `mews up` does
        self._rng = random.Random(1)
        self._hosts = [f"host-{number}" for number in range(HOSTS)]
        self._number = 0
        self._waiting: list[str] = []
        self._running: list[tuple[str, dict[str, Any], str]] = []
        self._gpus = [self._gpu(number) for number in range(GPUS)]

    @staticmethod
    def _gpu(number: int) -> dict[str, Any]:
        device = f"{number:04X}00"
        return {"device": device, "uuid": f"GPU-{number:032x}", "gpuid": f"0-{device}"}

    def table(self) -> dict[str, dict[str, Any]]:
        """Device -> row, as the chassis shows it."""
        at = {gpu["device"]: host for _, gpu, host in self._running}
        rows = {}
        for number, gpu in enumerate(self._gpus):
            host = at.get(gpu["device"], self._hosts[number % HOSTS])
            rows[gpu["device"]] = {**gpu, "kind": "GPU", "pool": "p", "port": host.removeprefix("host-"), "host": host}
        return rows

    def telemetry(self) -> dict[str, dict[str, Any]]:
        """Device -> what its board shows."""
        shown = {"temperature_c": 60.0, "power_mw": 150_000, "utilization_percent": 80}
        return {gpu["device"]: {"uuid": gpu["uuid"], **shown} for gpu in self._gpus}

    def begin(self) -> None:
        """All hosts, GPUs and pods."""
        write = self.journal.write
        ports = {str(number): host for number, host in enumerate(self._hosts)}
        write("chassis", "chassis/A", "table", pool="p", ports=ports, devices=self.table())
        for host in self._hosts:
            write("api", f"node/{host}", "created", allocatable={"cpu": "64"})
            write("api", f"node/{host}", "condition", type="Ready", status="True", reason="KubeletReady")
        for _ in range(PODS):
            self._come()
        for number, gpu in enumerate(self._gpus):
            self._run(self._waiting.pop(0), gpu, self._hosts[number % HOSTS])

    def turn(self) -> None:
        """A pod ends, its GPU moves to where the next one runs, and another pod comes."""
        write, rng = self.journal.write, self._rng
        name, gpu, old = self._running.pop(rng.randrange(len(self._running)))
        write("api", f"pod/default/{name}", "phase", uid=name, phase="Succeeded", reason="")
        write("kubelet", f"kubelet/{old}", "pod-ended", pod=f"default/{name}", uid=name)
        write("api", f"pod/default/{name}", "deleted", uid=name)
        host, gone = rng.choice(self._hosts), {"port": None, "host": None, "old_port": "1", "old_host": old}
        there = {"port": "1", "host": host, "old_port": None, "old_host": None}
        for event, place in (("detach-begun", gone), ("detached", gone), ("attach-begun", there), ("attached", there)):
            write("chassis", "chassis/A", event, **gpu, **place, operation=self._number)
        for event in ("link-up", "function-added", "driver-bound", "nvml-visible"):
            write("host", f"host/{host}", event, **gpu, kind="GPU", bdf="0000:20:00.0", minor=1, healthy=True)
        self._run(self._waiting.pop(0), gpu, host)
        self._come()

    def _come(self) -> None:
        name, self._number = f"job-{self._number}", self._number + 1
        self._waiting.append(name)
        api, requests = f"pod/default/{name}", {"falcon.com/gpu": 1}
        write = self.journal.write
        write("api", api, "created", uid=name, scheduler="s", node="", phase="Pending", requests=requests)
        text = f"0/{HOSTS} nodes are available: {HOSTS} Insufficient falcon.com/gpu."
        write("api", "s", "event", type="Warning", reason="FailedScheduling", object=api, message=text)

    def _run(self, name: str, gpu: dict[str, Any], host: str) -> None:
        self._running.append((name, gpu, host))
        write, api = self.journal.write, f"pod/default/{name}"
        write("api", api, "bound", uid=name, node=host)
        pod = {"pod": f"default/{name}", "uid": name, "container": "main"}
        write("kubelet", f"kubelet/{host}", "allocated", **pod, resource="falcon.com/gpu", devices=[gpu["gpuid"]])
        write("api", api, "phase", uid=name, phase="Running", reason="")


class CrowdedSession:
    """What the server asks of a session, of the crowd."""

    class cluster:
        """It exposes nothing."""

        @staticmethod
        def exposing() -> tuple[str, ...]:
            """Return None."""
            return ()

    def __init__(self, crowd: Crowd) -> None:
        self.name, self.journal, self._crowd = "crowd", crowd.journal, crowd

    def about(self) -> dict[str, Any]:
        """Return them as ``/v1/session`` has it."""
        head = {"name": self.name, "cluster": "embedded", "seed": 1, "speed": 1.0, "systems": ["kubecomp"]}
        return {
            **head,
            "components": ["scheduler"],
            "chassis": ["A"],
            "hosts": [],
            "faults": {"chassis": [], "host": []},
        }

    async def hardware(self) -> dict[str, Any]:
        """Return them as ``/v1/hardware`` has it."""
        return {"table": {"A": self._crowd.table()}, "hosts": {}, "telemetry": {"A": self._crowd.telemetry()}}


class Served(threading.Thread):
    """The server on a thread and loop of its own, which is asked to let the crowd go on."""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(daemon=True)
        self._crowd = crowd
        self.server: Any = None
        self.ready, self.go, self.done = threading.Event(), threading.Event(), threading.Event()
        self.cpu_s, self.lines = 0.0, 0

    def run(self) -> None:
        """Serve until the crowd has gone on for its time."""
        asyncio.run(self._main())

    async def _main(self) -> None:
        session: Any = CrowdedSession(self._crowd)
        self.server = SessionServer(session, live_file)
        await self.server.start()
        self.ready.set()
        await asyncio.to_thread(self.go.wait)
        before, first, making_s = time.thread_time(), len(self._crowd.journal), 0.0
        for _ in range(int(SECONDS * 10)):
            began = time.thread_time()
            for _ in range(TURNS // 10 + (self._crowd.journal.elapsed_s % 1 < (TURNS % 10) / 10)):
                self._crowd.turn()
            making_s += time.thread_time() - began
            await asyncio.sleep(0.1)
        self.cpu_s = time.thread_time() - before - making_s
        self.lines = len(self._crowd.journal) - first
        await asyncio.to_thread(self.done.wait)
        await self.server.close()


def main() -> None:
    """Print load time, frames, what a batch of lines costs the page, and what all of it costs the server."""
    from tests.browser.driver import browser  # the benchmarks run from a checkout

    progress(f"the live page of {PODS} pods and {GPUS} GPUs in a headless browser")
    crowd = Crowd()
    crowd.begin()
    served = Served(crowd)
    served.start()
    served.ready.wait()
    server, took = served.server, []
    for path in ("/v1/hardware", "/v1/journal?since=0"):
        request = Request(server.url + path, headers={"Authorization": f"Bearer {server.token}"})
        began = time.perf_counter()
        with urlopen(request) as answer:
            json.load(answer)
        took.append((path.partition("?")[0].rpartition("/")[2], time.perf_counter() - began))
    for name, seconds in took:
        report(f"live_{name}_answer", seconds * 1000, "ms")
    if shutil.which("chromedriver") is None or find_spec("selenium") is None:
        progress("not measured in a browser: chromedriver or selenium is missing")
        return
    with browser() as chrome:
        chrome.size(1280)
        chrome.open(f"{server.url}/#token={server.token}", "performance.getEntriesByName('mews-ready').length")
        report("live_load", chrome.js("return performance.getEntriesByName('mews-ready')[0].startTime") / 1000, "s")
        served.go.set()
        seen = chrome.driver.execute_async_script(FRAMES, SECONDS)
        chrome.until("document.querySelectorAll('.gpu').length === 200")
        tail = chrome.js("return mewsLive.next")
    served.done.set()
    served.join()
    for name, values in (("paint", seen["painted"]), ("frame_interval", seen["between"]), ("batch", seen["spent"])):
        report(f"live_{name}_median", statistics.median(values), "ms", baseline=16.7, baseline_name="60 Hz")
        report(f"live_{name}_p95", statistics.quantiles(values, n=20)[-1], "ms")
    report("live_lines", served.lines / SECONDS, "1/s")
    report("live_lines_behind", len(crowd.journal) - tail, "lines")
    report("live_server_cpu", served.cpu_s / SECONDS * 100, "% of a processor")
    report("live_server_cpu_per_line", served.cpu_s / max(served.lines, 1) * 1e6, "us")


if __name__ == "__main__":
    main()
