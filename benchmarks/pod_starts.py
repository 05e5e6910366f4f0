"""What namespaces cost a pod that is a process: CPU time a start, two hundred pods at once, what a kill leaves.

``python -m benchmarks.pod_starts``. The same container is started with a root and a network of its own, and as a plain
process; what either costs is the CPU time of this process and of those that it started. Then a Deployment of two
hundred pods becomes ready under ``mews up``, which is killed without warning.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.common import in_turns, progress, report
from mews.kube.api.objects import Object
from mews.kube.emulated.kubelet.images import Image
from mews.kube.emulated.kubelet.mount_namespace import filters_lacking
from mews.kube.emulated.kubelet.pod_roots import PodRoots
from mews.kube.emulated.kubelet.podnet.network import PodNetwork
from mews.kube.emulated.kubelet.podnet.service_table import ServiceTable
from mews.kube.emulated.kubelet.process import ProcessRuntime
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.emulated.kubelet.volumes.host_paths import NodeHostPaths
from mews.kube.emulated.kubelet.volumes.pod_volumes import PodVolumes

STARTS = 40
PODS = 200
MOST_MS, MOST_LEFT_S = 60.0, 5.0
_READY_S = 300.0
_PROGRAM = ("sleep", "1000")


class _Api:
    """One ConfigMap."""

    async def get(self, resource: Any, name: str, *, namespace: str | None = None) -> Object:
        return {"data": {"a": "1"}}


def _launch(number: int) -> Launch:
    mounts = [{"name": "config", "mountPath": "/etc/app"}, {"name": "scratch", "mountPath": "/scratch"}]
    volumes = [{"name": "config", "configMap": {"name": "c"}}, {"name": "scratch", "emptyDir": {}}]
    container = {"name": "main", "image": "bench/app", "volumeMounts": mounts}
    metadata = {"name": f"p-{number}", "namespace": "ns", "uid": f"uid-{number}"}
    pod = {"metadata": metadata, "spec": {"nodeName": "n1", "containers": [container], "volumes": volumes}}
    return Launch(pod, "main", 0, Image("bench/app", _PROGRAM), (), (), {}, ip=f"127.9.9.{number % 250 + 2}")


def _roots(folder: Path, *, network: bool) -> PodRoots:
    kube: Any = _Api
    volumes = PodVolumes(lambda: kube(), folder, NodeHostPaths(lambda node: folder / node, lambda host: None))
    table = ServiceTable(folder / "services", lambda: ("127.0.0.1", 1))
    return PodRoots(folder, volumes, shared=[folder], network=PodNetwork(table, random.Random(1)) if network else None)


def _cpu_ms() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return 1000 * sum(each.ru_utime + each.ru_stime for each in used)


def start_ms(*, own: bool) -> float:
    """Return milliseconds of CPU of one start and its end; ``own``: with a root and a network of its own."""

    async def main(folder: Path) -> float:
        runtime = ProcessRuntime(folder, roots=_roots(folder, network=True) if own else None)
        await _once(runtime, 0)  # what is found out once
        began_ms = _cpu_ms()
        for number in range(1, STARTS + 1):
            await _once(runtime, number)
        took_ms = (_cpu_ms() - began_ms) / STARTS
        await runtime.close()
        return took_ms

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(main(Path(folder)))


async def _once(runtime: ProcessRuntime, number: int) -> None:
    process = await runtime.start(_launch(number))
    await process.stop(0.0)  # sleep, as first process of its own, ignores what asks it to end
    await process.wait()


def _owned(mark: str) -> Iterator[int]:
    """Processes that bear the run's mark."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if mark.encode() in (folder / "environ").read_bytes():
                    yield int(folder.name)
            except OSError:  # it has just ended
                continue


def _namespaces() -> set[str]:
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                found |= {os.readlink(folder / "ns" / kind) for kind in ("user", "mnt", "uts", "pid", "ipc")}
            except OSError:
                continue
    return found


def _deployment() -> Object:
    spec = {"containers": [{"name": "main", "image": "bench/app"}], "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": {"app": "many"}}, "spec": spec}
    whole = {"replicas": PODS, "selector": {"matchLabels": {"app": "many"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "many"}, "spec": whole}


def _many(folder: Path) -> tuple[float, float]:
    """Return seconds until all pods are ready, and from a kill until nothing is left of them."""
    images, before = folder / "images.yaml", _namespaces()
    images.write_text(yaml.safe_dump({"images": {"bench/app": {"process": list(_PROGRAM)}}}))
    argv = [sys.executable, "-m", "mews.harness.cli", "up", "--json", "--stack", "none", "--dir", str(folder / "up")]
    env = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
    with subprocess.Popen([*argv, "--images", str(images)], stdout=subprocess.PIPE, env=env) as child:
        assert child.stdout is not None
        ready = json.loads(child.stdout.readline())
        kubectl = ["kubectl", "--kubeconfig", ready["kubeconfig"]]
        began = time.monotonic()
        subprocess.run([*kubectl, "apply", "-f", "-"], input=json.dumps(_deployment()), text=True, check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        wait = ["rollout", "status", "deployment/many", "--timeout", f"{_READY_S:g}s"]
        subprocess.run([*kubectl, *wait], check=True, stdout=subprocess.DEVNULL)
        took_s = time.monotonic() - began
        child.send_signal(signal.SIGKILL)
        child.wait()
        killed = time.monotonic()
        while time.monotonic() < killed + 60 and (left := [*_owned(str(folder))]):
            time.sleep(0.05)
        gone_s = time.monotonic() - killed
    mounted = [line for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]
    more = _namespaces() - before
    if left or mounted or more:
        raise RuntimeError(f"left behind: {len(left)} processes, {len(mounted)} mounts, {len(more)} namespaces")
    return took_s, gone_s


def main() -> None:
    """All of it."""
    if filters_lacking():
        progress(f"pod_starts: left out: {filters_lacking()}")
        return
    progress(f"{STARTS} starts of a container with two volumes, with namespaces and as a plain process")
    own_ms, plain_ms = in_turns(lambda: start_ms(own=True), lambda: start_ms(own=False))
    report("pod_start", own_ms, "ms of CPU", baseline=plain_ms, baseline_name="a plain process")
    report("pod_start_more", own_ms - plain_ms, "ms of CPU", baseline=MOST_MS, baseline_name="goal, at most")
    progress(f"{PODS} pods at once, on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as folder:
        took_s, gone_s = _many(Path(folder))
    report("pods_at_once", took_s, "s")
    report("pods_gone_after_kill", gone_s, "s", baseline=MOST_LEFT_S, baseline_name="goal, at most")


if __name__ == "__main__":
    main()
