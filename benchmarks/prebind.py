"""Pods that wait in PreBind at once: each has a claim on one pool of devices that are attached before a pod is bound
(KEP-5007), and attaches are slow. By our scheduler in virtual time, and by the real one on our API.

The pool has 128 devices a slice, and each claim takes one. ``at_once`` attaches run side by side.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.common import ROOT, progress, report
from benchmarks.schedulers import on_our_scheduler, on_the_real_scheduler
from mews.harness.clusters.programs.finding import SCHEDULER, of_release
from mews.kube.api.objects import Object, name_of, node_name_of
from mews.kube.api.resource_claims import results_of
from mews.kube.api.resources import (
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICE_ACCOUNTS,
)
from mews.kube.client.informer import Informer
from mews.kube.client.port import KubeApi
from mews.kube.component import Runnable
from mews.kube.releases.cluster_release import cluster_release

RELEASE = "1.37"
DRIVER, POOL, CONDITION = "pool.example.com", "pool", "example.com/attached"
NODES_COUNT, IN_A_SLICE = 8, 128
PODS_COUNT = 1000
MOST_MIB = 1024
_NAMESPACE = "test"


class Attaching(Struct, frozen=True):
    """``pods`` come at once; each attach takes ``attach_s``, and ``at_once`` of them run side by side."""

    pods: int = PODS_COUNT
    attach_s: float = 20.0
    at_once: int = 64


class PreBindTimes(Struct, frozen=True):
    """``waiting``: how many pods had a device and were not bound at one moment, at most. ``bound_s``: from the first
    pod's creation to each one's binding, in order, in seconds of the loop. ``cpu_s``: CPU time of this process."""

    waiting: int
    bound_s: tuple[float, ...]
    cpu_s: float

    def quantile_s(self, share: float) -> float:
        """Return the time by which so many are bound."""
        return self.bound_s[min(int(share * len(self.bound_s)), len(self.bound_s) - 1)]


def _node(number: int) -> Object:
    room = {"pods": "250", "cpu": "64", "memory": "512Gi"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    metadata = {"name": f"node-{number}", "labels": {"kubernetes.io/hostname": f"node-{number}"}}
    return {"metadata": metadata, "status": {"capacity": room, "allocatable": room, "conditions": [ready]}}


def _slice(number: int, count: int) -> Object:
    device = {"bindsToNode": True, "bindingConditions": [CONDITION], "bindingFailureConditions": [f"{CONDITION}-not"]}
    spec = {
        "driver": DRIVER,
        "allNodes": True,
        "pool": {"name": POOL, "generation": 1, "resourceSliceCount": count},
        "devices": [{"name": f"device-{number}-{place}", **device} for place in range(IN_A_SLICE)],
    }
    return {"metadata": {"name": f"slice-{number}"}, "spec": spec}


def _pod(number: int) -> Object:
    container = {"name": "pause", "image": "pause", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    return {"metadata": {"name": f"pod-{number}"}, "spec": {"containers": [container], "resourceClaims": claims}}


async def _furnish(kube: KubeApi, pods: int) -> None:
    await kube.create(NAMESPACES, {"metadata": {"name": _NAMESPACE}})
    await kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=_NAMESPACE)
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    await kube.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}})
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    template = {"metadata": {"name": "one"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    await kube.create(RESOURCE_CLAIM_TEMPLATES, template, namespace=_NAMESPACE)
    for number in range(NODES_COUNT):
        made = await kube.create(NODES, _node(number))
        await kube.replace(NODES, {**made, "status": _node(number)["status"]}, subresource="status")
        await kube.patch(NODES, f"node-{number}", {"spec": {"taints": None}})
    slices = -(-pods // IN_A_SLICE)
    for number in range(slices):
        await kube.create(RESOURCE_SLICES, _slice(number, slices))


class _Pool:
    """Attaches what claims were given, as the driver of a pool does, and notes who waits for it."""

    def __init__(self, kube: KubeApi, work: Attaching) -> None:
        self._kube = kube
        self._work = work
        self._claims = Informer(kube, RESOURCE_CLAIMS)
        self._pods = Informer(kube, PODS)
        self._due: asyncio.Queue[Object] = asyncio.Queue()
        self._allocated: set[str] = set()
        self._bound: dict[str, float] = {}
        self._all_bound = asyncio.Event()
        self.waiting = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        self._claims.on_change(self._claim)
        self._pods.on_change(self._pod)
        async with asyncio.TaskGroup() as group:
            for part in (self._claims.run(), self._pods.run(), *(self._attach() for _ in range(self._work.at_once))):
                group.create_task(part)

    async def all_bound(self) -> list[float]:
        """Return when each pod was bound, once all are."""
        await self._all_bound.wait()
        return sorted(self._bound.values())

    def _claim(self, old: Object | None, new: Object | None) -> None:
        if new is not None and results_of(new) and name_of(new) not in self._allocated:
            self._allocated.add(name_of(new))
            self.waiting = max(self.waiting, len(self._allocated) - len(self._bound))
            self._due.put_nowait(new)

    def _pod(self, old: Object | None, new: Object | None) -> None:
        if new is not None and node_name_of(new) and name_of(new) not in self._bound:
            self._bound[name_of(new)] = asyncio.get_running_loop().time()
            if len(self._bound) == self._work.pods:
                self._all_bound.set()

    async def _attach(self) -> None:
        while True:
            claim = await self._due.get()
            await asyncio.sleep(self._work.attach_s)
            (result,) = results_of(claim)
            stamp = {"lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Attached", "message": ""}
            condition = {"type": CONDITION, "status": "True", **stamp}
            entry = {**{key: result[key] for key in ("driver", "pool", "device")}, "conditions": [condition]}
            body = {"status": {"devices": [entry]}}
            await self._kube.patch(RESOURCE_CLAIMS, name_of(claim), body, namespace=_NAMESPACE, subresource="status")


async def _times(kube: KubeApi, parts: Sequence[Runnable], work: Attaching) -> PreBindTimes:
    await _furnish(kube, work.pods)
    pool = _Pool(kube, work)
    running = [asyncio.create_task(part.run()) for part in (pool, *parts)]
    await asyncio.sleep(3.0)
    begun_s, begun_cpu_s = asyncio.get_running_loop().time(), time.process_time()
    try:
        for number in range(work.pods):
            await kube.create(PODS, _pod(number), namespace=_NAMESPACE)
        found = await pool.all_bound()
        bound_s = tuple(at_s - begun_s for at_s in found)
        return PreBindTimes(pool.waiting, bound_s, time.process_time() - begun_cpu_s)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def ours(work: Attaching, release: str = RELEASE) -> PreBindTimes:
    """Our scheduler and controller on our API, in virtual time."""
    return on_our_scheduler(partial(_times, work=work), cluster_release(release))


def theirs(work: Attaching, folder: Path, release: str = RELEASE) -> PreBindTimes:
    """Return the real scheduler on our API over HTTP, with our controller, in wall-clock time."""
    return on_the_real_scheduler(partial(_times, work=work), cluster_release(release), folder)


def _apart(argument: str) -> dict[str, Any]:
    """Return one of both in a process of its own: its times, and the MiB that the process took at most."""
    argv = (sys.executable, "-m", "benchmarks.prebind", argument)
    found: dict[str, Any] = json.loads(subprocess.run(argv, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    return found


def _alone(measure: Callable[[], PreBindTimes]) -> None:
    times = measure()
    found = {
        "waiting": times.waiting,
        "p50_s": times.quantile_s(0.5),
        "p99_s": times.quantile_s(0.99),
        "cpu_s": times.cpu_s,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    sys.stdout.write(json.dumps(found))


def main(arguments: Sequence[str] = ()) -> None:
    """Both, where there is a kube-scheduler of the release."""
    if arguments[:1] == ("--ours",):
        _alone(lambda: ours(Attaching()))
        return
    if arguments[:1] == ("--theirs",):
        with tempfile.TemporaryDirectory() as folder:
            _alone(lambda: theirs(Attaching(), Path(folder)))
        return
    progress(f"{PODS_COUNT} pods in PreBind at once, our scheduler in virtual time")
    mine = _apart("--ours")
    real: dict[str, Any] = {}
    if of_release(SCHEDULER, RELEASE) is None:
        progress(f"  no kube-scheduler of {RELEASE} found: not compared in this run")
    else:
        progress(f"{PODS_COUNT} pods in PreBind at once, the real scheduler on our API")
        real = _apart("--theirs")
    report("prebind_memory", mine["mib"], "MiB", baseline=MOST_MIB, baseline_name="the most it may take")
    for key, unit in (("waiting", "pods"), ("p50_s", "s"), ("p99_s", "s"), ("cpu_s", "s")):
        baseline = real.get(key) if key != "cpu_s" else None
        report(f"prebind_{key}", mine[key], unit, baseline=baseline, baseline_name="kube-scheduler" if baseline else "")


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
