"""The embedded API server beside the real one, side by side in one run, both over TLS with a token: creates, lists,
watch fan-out, time until a cluster is Ready, memory; and creates in virtual time."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.api_client import Target, creates_per_s
from benchmarks.api_server import pod
from benchmarks.common import await_condition, process, progress, report
from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.errors import RequirementError
from mews.kube.api.resources import CONFIGMAPS, PODS
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store

MAPS, PODS_PATH = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"
CREATES, LISTED, WATCHERS, WATCHED = 2000, 5000, 100, 100
VIRTUAL_PER_S, MEMORY_GB = 5000.0, 0.5
"""What is aimed at."""


def config_map(name: str) -> dict[str, Any]:
    """Return a small one."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}


def typed_pod(name: str) -> dict[str, Any]:
    """Return a pod as clients send it."""
    return {"apiVersion": "v1", "kind": "Pod", **pod(name)}


@contextmanager
def embedded(folder: Path, *size: int) -> Iterator[tuple[Target, Target, int]]:
    """Our server over TLS and over http, and its process' number."""
    arguments = [sys.executable, "-m", "benchmarks.api_server", str(folder), *map(str, size)]
    with process(*arguments) as child:
        await_condition((folder / "ready.json").exists, "the embedded API server", timeout_s=1800)
        announced = json.loads((folder / "ready.json").read_text())
        secure = Target("embedded", announced["https"], announced["token"], announced["authority"])
        yield secure, Target("embedded-http", announced["http"]), child.pid


@contextmanager
def real() -> Iterator[Target | None]:
    """etcd and kube-apiserver, None where they cannot be had."""
    servers = Servers()
    try:
        servers.ready()
    except RequirementError as error:
        progress(f"skipped: {error}")
        yield None
        return
    try:
        identity = servers.identity
        yield Target("kube-apiserver", servers.url, identity.token, str(identity.certificate))
    finally:
        servers.stop()


def compare(bench: str, unit: str, ours: float, theirs: float | None, name: str = "kube-apiserver") -> None:
    """A line with the real one's figure beside ours."""
    report(bench, ours, unit, baseline=theirs, baseline_name=name)


def creates(ours: Target, plain: Target, theirs: Target | None) -> None:
    """Small objects and pods, one client and eight."""
    for what, path, body in (("configmaps", MAPS, config_map), ("pods", PODS_PATH, typed_pod)):
        for clients in (1, 8):
            progress(f"{CREATES} {what} by {clients}")

            def rate(target: Target, n: int = clients, p: str = path, b: Any = body) -> float:
                creates_per_s(target, p, b, clients=n, n=100)
                return creates_per_s(target, p, b, clients=n, n=CREATES)

            measured = rate(ours)
            compare(f"api_create_{what}_{clients}", "creates/s", measured, rate(theirs) if theirs else None)
            if clients == 8:
                compare(f"api_create_{what}_8_http", "creates/s", rate(plain), measured, "the same over TLS")


def list_s(target: Target) -> float:
    """Median seconds of five lists of all pods, filled up to the wanted number before."""
    connection = target.connect()
    have = len(json.loads(connection.ask("GET", PODS_PATH)[1])["items"])
    if have < LISTED:
        creates_per_s(target, PODS_PATH, typed_pod, clients=8, n=LISTED - have)
    taken = []
    for _ in range(5):
        begin = time.perf_counter()
        status, answer = connection.ask("GET", f"{PODS_PATH}?limit={LISTED}")
        taken.append(time.perf_counter() - begin)
        assert status == 200 and answer.count(b'"creationTimestamp"') >= LISTED
    connection.close()
    return sorted(taken)[2]


def fan_out_per_s(target: Target) -> float:
    """Events delivered per second to all watchers together, while one client creates as fast as it can."""
    connections = [target.connect() for _ in range(WATCHERS)]
    here = json.loads(connections[0].ask("GET", f"{MAPS}?limit=1")[1])["metadata"]["resourceVersion"]
    seen = [0] * WATCHERS

    def read(slot: int) -> None:
        connection = connections[slot]
        connection.send("GET", f"{MAPS}?watch=1&resourceVersion={here}&timeoutSeconds=300")
        connection.answer_head()
        while seen[slot] < WATCHED:
            seen[slot] += connection.chunk().count(b'{"type":"ADDED"')

    threads = [threading.Thread(target=read, args=(slot,)) for slot in range(WATCHERS)]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    begin = time.perf_counter()
    creates_per_s(target, MAPS, config_map, clients=1, n=WATCHED)
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begin
    for connection in connections:
        connection.close()
    return WATCHERS * WATCHED / took


def up_s(cluster: str, folder: Path) -> float:
    """From `mews up` on the demo's hardware until it says that all serves and every node is Ready."""
    argv = [
        sys.executable,
        "-m",
        "mews.harness.cli",
        "up",
        "--json",
        "--cluster",
        cluster,
        "--name",
        f"bench-{cluster}",
    ]
    begin = time.perf_counter()
    with subprocess.Popen([*argv, "--dir", str(folder / cluster)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        announced = child.stdout.readline()
        took = time.perf_counter() - begin
        child.terminate()
        child.wait()
    if not announced:
        raise RuntimeError(f"mews up --cluster {cluster} did not come up")
    return took


def memory_gb(pid: int) -> float:
    """Resident set of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1e6


def virtual_creates_per_s(resource: Any, body: Any, n: int = 20_000) -> float:
    """Objects created per wall-clock second by a component in virtual time."""

    async def main() -> float:
        kube = InProcessKube(fresh_store(virtual_clock().now, random.Random(1)))
        bodies = [body(f"o-{number}") for number in range(n)]
        begin = time.perf_counter()
        for each in bodies:
            await kube.create(resource, each, namespace="default")
        return n / (time.perf_counter() - begin)

    return run_virtual(main)


def main() -> None:
    """All figures."""
    for name, resource, body in (("configmaps", CONFIGMAPS, config_map), ("pods", PODS, typed_pod)):
        progress(f"{name} in virtual time")
        rate = virtual_creates_per_s(resource, body)
        report(f"api_virtual_create_{name}", rate, "creates/s", baseline=VIRTUAL_PER_S, baseline_name="the target")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        theirs = stack.enter_context(real())
        ours, plain, _ = stack.enter_context(embedded(folder))
        creates(ours, plain, theirs)
        progress(f"list of {LISTED} pods")
        compare("api_list_5000_pods", "s", list_s(ours), list_s(theirs) if theirs else None)
        progress(f"{WATCHED} events to {WATCHERS} watchers")
        compare("api_watch_fan_out", "events/s", fan_out_per_s(ours), fan_out_per_s(theirs) if theirs else None)
    with tempfile.TemporaryDirectory() as folder_name:
        progress("time to Ready")
        ours_s = up_s("embedded", Path(folder_name))
        theirs_s = up_s("control-plane", Path(folder_name)) if theirs else None
        compare("api_up_ready", "s", ours_s, theirs_s, "mews up --cluster control-plane")
    progress("5,000 nodes and 50,000 pods")
    with tempfile.TemporaryDirectory() as folder_name, embedded(Path(folder_name), 5000, 50_000) as (_, plain, pid):
        plain.connect().close()
        report("api_memory_50000_pods", memory_gb(pid), "GB", baseline=MEMORY_GB, baseline_name="the target")
    with tempfile.TemporaryDirectory() as folder_name, embedded(Path(folder_name), 5000, 50_000, 1) as (_, plain, pid):
        plain.connect().close()
        both = memory_gb(pid)
        report("api_memory_50000_pods_controllers", both, "GB", baseline=MEMORY_GB, baseline_name="the target")


if __name__ == "__main__":
    main()
