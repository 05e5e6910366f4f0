"""Pods bound per second at 200 nodes, one GPU each, beside the real kube-scheduler where its binary is found; and at
5,000 nodes in virtual time, by CPU seconds."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.common import progress, report
from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.port import KubeApi
from mews.kube.clock import Clock, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.scheduler import Scheduler

NODES_N, PODS_N, GPUS = 200, 2000, 16
MEASURED_PER_S = 510.0
"""The real kube-scheduler 1.34.2 with raised client limits: 496 and 523 (contract apiserver.md section 9)."""
MANY_NODES = 5000
TARGET_PER_S = 680.0
TARGET_NAME = 'row "Basic" of scheduler_perf, the target'
DEADLINE_S = 120.0


def node(number: int) -> dict[str, Any]:
    """Return a Ready node with sixteen GPUs."""
    room = {"cpu": "192", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(GPUS)}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "metadata": {"name": f"node-{number:03}"},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def pod(number: int) -> dict[str, Any]:
    """Return a pod that asks for one GPU."""
    resources = {"requests": {"cpu": "100m"}, "limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": "mews/train", "resources": resources}
    return {"metadata": {"name": f"pod-{number:04}", "namespace": "default"}, "spec": {"containers": [container]}}


async def furnish(kube: KubeApi, nodes: int = NODES_N, pods: int = PODS_N) -> None:
    """All nodes, untainted, and all pods."""
    for number in range(nodes):
        created = await kube.create(NODES, node(number))
        patch = {"spec": {"taints": None}}
        await kube.patch(NODES, created["metadata"]["name"], patch)
        await kube.patch(NODES, created["metadata"]["name"], {"status": node(number)["status"]}, subresource="status")
    for number in range(pods):
        await kube.create(PODS, pod(number), namespace="default")


async def bound_per_s(
    kube: KubeApi,
    begin: Callable[[], Awaitable[None]],
    pods: int = PODS_N,
    deadline_s: float = DEADLINE_S,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """From the first to the last binding of so many pods, by ``clock``; ``begin()`` starts the scheduler."""
    version = (await kube.list(PODS)).resource_version
    bound: set[str] = set()
    first_s = 0.0
    await begin()
    async with asyncio.timeout(deadline_s):
        async for event in kube.watch(PODS, resource_version=version):
            if event.object["spec"].get("nodeName"):
                first_s = first_s or clock()
                bound.add(event.object["metadata"]["name"])
            if len(bound) == pods:
                break
    return (pods - 1) / (clock() - first_s)


async def ours(
    clock: Clock, nodes: int = NODES_N, pods: int = PODS_N, timer: Callable[[], float] = time.perf_counter
) -> float:
    """Our scheduler over the in-process API."""
    store = fresh_store(clock.now, random.Random(1))
    kube = InProcessKube(store)
    await furnish(kube, nodes, pods)
    config = SchedulerConfig((SchedulerProfile("default-scheduler", default_plugins()),))
    context = Context(InProcessKube(store), clock, stream(1, "scheduler"), logging.getLogger("mews.bench"))
    tasks: list[asyncio.Task[None]] = []

    async def begin() -> None:
        tasks.append(asyncio.create_task(Scheduler(context, config).run()))

    rate = await bound_per_s(kube, begin, pods, clock=timer)
    tasks[0].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return rate


async def theirs(binary: Path) -> float:
    """Return the unmodified kube-scheduler over the same store, served over HTTP, with raised client limits."""
    clock = Clock.wall()
    store = fresh_store(clock.now, random.Random(1))
    server = ApiServer(store)
    await server.start()
    kube = InProcessKube(store)
    await furnish(kube)
    children: list[asyncio.subprocess.Process] = []
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(Path(folder), server.url)

        async def begin() -> None:
            argv = (str(binary), "--config", str(config), "--secure-port", "0", "--leader-elect=false")
            quiet = asyncio.subprocess.DEVNULL
            children.append(await asyncio.create_subprocess_exec(*argv, stdout=quiet, stderr=quiet))

        try:
            return await bound_per_s(kube, begin)
        finally:
            for child in children:
                child.terminate()
                await child.wait()
            await server.stop()


def write_config(folder: Path, url: str) -> Path:
    """Return a KubeSchedulerConfiguration that speaks JSON and is not throttled, with its kubeconfig."""
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, server={"server": url}, user={})
    config = folder / "scheduler.json"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"leaderElect": False},
                "clientConnection": {
                    "kubeconfig": str(kubeconfig),
                    "contentType": "application/json",
                    "acceptContentTypes": "application/json",
                    "qps": 5000,
                    "burst": 5000,
                },
            }
        )
    )
    return config


def main() -> None:
    """Ours, then the real one on the same API where it can be had."""
    progress(f"{PODS_N} pods of one GPU onto {NODES_N} nodes")
    rate = asyncio.run(ours(Clock.wall()))
    report(
        "bind_rate", rate, "pods/s", baseline=MEASURED_PER_S, baseline_name="kube-scheduler on its own API, recorded"
    )
    progress(f"{PODS_N} pods of one GPU onto {MANY_NODES} nodes, in virtual time")
    many = run_virtual(lambda: ours(virtual_clock(), MANY_NODES, timer=time.process_time))
    report(f"bind_rate_{MANY_NODES}", many, "pods/s of CPU", baseline=TARGET_PER_S, baseline_name=TARGET_NAME)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    binary = Path(assets) / "kube-scheduler" if assets else None
    if binary is None or not binary.exists():
        progress("  KUBEBUILDER_ASSETS holds no kube-scheduler: not compared in this run")
        return
    peer = asyncio.run(theirs(binary))
    report("bind_rate_same_run", rate, "pods/s", baseline=peer, baseline_name="kube-scheduler on our API over HTTP")


if __name__ == "__main__":
    main()
