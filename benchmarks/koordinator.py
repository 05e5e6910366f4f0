"""Koordinator: pods placed per second with DeviceShare beside our scheduler without it, and the best of 16 GPUs.

usage: python -m benchmarks.koordinator [sequences [NUMBER] [FIRST]]
"""

from __future__ import annotations

import asyncio
import logging
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import progress, report
from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.objects import Object, node_name_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.clock import stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.scheduler import Scheduler
from mews.kube.system.kinds import install_kind
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.device_crd import device_definition
from mews.systems.koordinator.devices import DeviceLink, NodeDevice, NodeDeviceReport, as_object
from mews.systems.koordinator.names import DEVICES, NVIDIA
from mews.systems.koordinator.plugin import koordinator_profile
from mews.systems.koordinator.selection import Bandwidth, DeviceCandidate, best_set
from mews.systems.koordinator.usage import gpu_resources

NODES_N, GPUS, PODS_N = 1000, 8, 500
DEADLINE_S = 120.0
SEQUENCES = 10_000
_GIB = 2**30
_LINKS = tuple(DeviceLink("gpu", (b, a), 25_000 if a // 4 == b // 4 else 8_000) for a in range(GPUS) for b in range(a))


def _node(name: str) -> Object:
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110", NVIDIA: str(GPUS)}
    return {"metadata": {"name": name}, "status": {"capacity": amounts, "allocatable": amounts}}


def _device(name: str) -> Object:
    gpus = tuple(NodeDevice("gpu", i, f"GPU-{name}-{i}", True, gpu_resources(80 * _GIB)) for i in range(GPUS))
    return as_object(NodeDeviceReport(name, gpus, _LINKS))


def _pod(name: str, scheduler: str, gpus: int) -> Object:
    asked = {"limits": {NVIDIA: str(gpus)}, "requests": {"cpu": "1", "memory": "1Gi"}}
    containers = [{"name": "c", "image": "x", "resources": asked}]
    return {"metadata": {"name": name}, "spec": {"schedulerName": scheduler, "containers": containers}}


def placed_per_s(profile: SchedulerProfile, *, devices: bool, gpus: int) -> float:
    """Pods placed per second of this machine's time, by the in-process API."""

    async def run() -> float:
        clock = virtual_clock()
        kube = InProcessKube(fresh_store(clock.now, random.Random(1)))
        if devices:
            await install_kind(kube, dict(device_definition()))
        for i in range(NODES_N):
            await kube.create(NODES, _node(f"n{i:04}"))
            await kube.patch(NODES, f"n{i:04}", {"spec": {"taints": None}})
            await kube.patch(NODES, f"n{i:04}", {"status": _node("")["status"]}, subresource="status")
            if devices:
                await kube.create(DEVICES, _device(f"n{i:04}"))
        for i in range(PODS_N):
            await kube.create(PODS, _pod(f"p{i}", profile.scheduler_name, gpus), namespace="default")
        context = Context(kube, clock, stream(1, "scheduler"), logging.getLogger("mews.bench"))
        scheduler = Scheduler(context, SchedulerConfig((profile,)))
        begun = time.perf_counter()
        task = asyncio.create_task(scheduler.run())
        while True:
            await asyncio.sleep(0.05)
            pods = (await kube.list(PODS, namespace="default", field_selector="spec.nodeName=")).items
            if not any(not node_name_of(pod) for pod in pods):
                break
            if time.perf_counter() - begun > DEADLINE_S:
                raise TimeoutError(f"{len(pods)} of {PODS_N} pods have no node after {DEADLINE_S} s")
        took = time.perf_counter() - begun
        task.cancel()
        await asyncio.wait([task])
        return PODS_N / took

    return run_virtual(run)


def placements() -> None:
    """With and without DeviceShare, in one run."""
    progress(f"koordinator: {PODS_N} pods onto {NODES_N} nodes with {GPUS} GPUs, without and with DeviceShare")
    plain = placed_per_s(SchedulerProfile("default-scheduler", default_plugins()), devices=False, gpus=1)
    for gpus in (1, 2):
        rate = placed_per_s(koordinator_profile(KoordinatorConfig()), devices=True, gpus=gpus)
        name = f"koordinator DeviceShare, {gpus} GPU{'s' if gpus > 1 else ''} a pod"
        report(name, rate, "pods/s", baseline=plain, baseline_name="our scheduler without it, one GPU a pod")


def best_of_sixteen() -> None:
    """Choosing the best set of 8 out of 16 GPUs: two boxes of eight with links of chance, the worst of ten."""
    progress("koordinator: the best 8 of 16 GPUs by pairwise bandwidth")
    took = []
    for seed in range(10):
        rng = random.Random(seed)
        links = [DeviceLink("gpu", (b, a), rng.choice((8, 25, 50, 100)) * 1000) for a in range(16) for b in range(a)]
        candidates = [DeviceCandidate(NodeDevice("gpu", minor, f"G{minor}", True)) for minor in range(16)]
        begun = time.perf_counter()
        best_set(candidates, 8, "bandwidth", Bandwidth(links, "gpu"))
        took.append(1e3 * (time.perf_counter() - begun))
    report("koordinator best 8 of 16, median", statistics.median(took), "ms")
    report("koordinator best 8 of 16, worst", max(took), "ms")


WHOLE_EVERY = 200
"""One of so many sequences is played with kubelets, koordlet and hooks as well."""


def sequences(wanted: int, first: int = 0) -> None:
    """Sequences of crashes, changes of the leader, stale watches, lost Devices, sick and held GPUs, without a device
    given over its sum."""
    from tests.systems.koordinator.test_stateful import STEPS, happens
    from tests.systems.koordinator.test_whole_sequences import happens_whole

    logging.disable(logging.CRITICAL)
    progress(f"koordinator: {wanted} sequences of crashes, leaders, stale watches, lost Devices, sick and held GPUs")
    begun = time.perf_counter()
    for seed in range(first, first + wanted):
        if seed % 1000 == 0:
            progress(f"from seed {seed} on")
        rng = random.Random(seed)
        happens(seed, [rng.choice(STEPS) for _ in range(rng.randint(5, 20))])
        if seed % WHOLE_EVERY == 0:
            with tempfile.TemporaryDirectory() as folder:
                happens_whole(seed, Path(folder))
    report("koordinator sequences without a violation", float(wanted), "sequences")
    report("koordinator sequences", wanted / (time.perf_counter() - begun), "sequences/s")


def main() -> None:
    """What ``benchmarks/run.py`` runs."""
    placements()
    best_of_sixteen()


if __name__ == "__main__":
    if sys.argv[1:2] == ["sequences"]:
        sequences(*(map(int, sys.argv[2:]) if sys.argv[2:] else (SEQUENCES,)))
    else:
        main()
