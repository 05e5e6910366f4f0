"""Pods with claims bound per second, on workloads of scheduler_perf (SchedulingWithResourceClaimTemplate): by ours in
virtual time, by the real kube-scheduler on our API, and by the real control plane.

500 nodes with ten devices each; some are taken before. ``full`` keeps ten pods waiting while ten devices are free.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.common import ROOT, progress, report
from benchmarks.schedulers import RUN, on_our_scheduler, on_the_real_scheduler
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.clusters.programs.controllers import kube_controller_manager
from mews.harness.clusters.programs.finding import CONTROLLERS, SCHEDULER, of_release
from mews.harness.clusters.programs.scheduler import kube_scheduler
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.harness.ports.fence import Fence
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, name_of, node_name_of
from mews.kube.api.resource_claims import DELETE_PROTECTION
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
from mews.kube.client.http import HttpKube
from mews.kube.client.port import DeleteOptions, KubeApi
from mews.kube.component import Runnable
from mews.kube.releases.cluster_release import ClusterRelease, cluster_release

DRIVER, DEVICES = "test-driver.cdi.k8s.io", 10
_AT_ONCE = 16
_WAITING = 10
_DEADLINE_S = 900.0
MOST_MIB = 1024


class Workload(Struct, frozen=True):
    """``taken`` devices are allocated before ``pods`` come; ``steady``: ten at a time, each deleted once bound."""

    name: str
    nodes: int
    taken: int
    pods: int
    steady: bool = False


WORKLOADS = (
    Workload("2000pods_200nodes", 200, 1000, 1000),
    Workload("full_500nodes", 500, 4990, 300, steady=True),
    Workload("5000pods_500nodes", 500, 2500, 2500),
)


def _node(number: int) -> Object:
    room = {"pods": "110", "cpu": "4", "memory": "32Gi"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": room, "allocatable": room, "conditions": [ready]}
    return {"metadata": {"name": f"dra-{number}"}, "status": status}


def _slice(number: int) -> Object:
    devices = [_device(index) for index in range(DEVICES)]
    pool = {"name": f"slice-{number}", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": f"dra-{number}", "pool": pool, "devices": devices}
    return {"metadata": {"name": f"slice-{number}"}, "spec": spec}


def _device(number: int) -> dict[str, Any]:
    root, address = f"0{number % 2}", f"0000:0{number}:00.0"
    texts = {
        "driver": "xe",
        "resource.k8s.io/pciRoot": str(number % 2),
        "family": "Arc Pro B-Series",
        "health": "Healthy",
        "model": "B60",
        "pciAddress": address,
        "pciId": "0xe211",
        "pciRoot": root,
        "resource.kubernetes.io/pciBusID": address,
        "resource.kubernetes.io/pciRoot": f"pci0000:{root}",
        "type": "gpu",
    }
    attributes: dict[str, Any] = {name: {"string": text} for name, text in texts.items()}
    attributes |= {"driverVersion": {"version": "1.2.3"}, "sriov": {"bool": True}}
    capacity = {"memory": {"value": "24480Mi"}, "millicores": {"value": "1k"}}
    return {"name": f"device-{number}", "attributes": attributes, "capacity": capacity}


_CLASS: Object = {
    "metadata": {"name": "test-class"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}
_ASKED = {"devices": {"requests": [{"name": "req-0", "exactly": {"deviceClassName": "test-class"}}]}}


def _pod(number: int) -> Object:
    container = {"name": "pause", "image": "pause", "resources": {"claims": [{"name": "resource"}]}}
    claims = [{"name": "resource", "resourceClaimTemplateName": "test-template"}]
    return {"metadata": {"name": f"test-{number}"}, "spec": {"containers": [container], "resourceClaims": claims}}


def _allocation(place: int) -> dict[str, Any]:
    node, device = divmod(place, DEVICES)
    result = {"request": "req-0", "driver": DRIVER, "pool": f"slice-{node}", "device": f"device-{device}"}
    field = {"key": "metadata.name", "operator": "In", "values": [f"dra-{node}"]}
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}}


async def _furnish(kube: KubeApi, work: Workload) -> None:
    async def node(number: int) -> None:
        made = await kube.create(NODES, _node(number))
        await kube.replace(NODES, {**made, "status": _node(number)["status"]}, subresource="status")
        await kube.patch(NODES, f"dra-{number}", {"spec": {"taints": None}})
        await kube.create(RESOURCE_SLICES, _slice(number))

    places = random.Random(1).sample(range(work.nodes * DEVICES), work.taken)

    async def claim(number: int) -> None:
        metadata = {"name": f"claim-{number}", "finalizers": [DELETE_PROTECTION]}
        made = await kube.create(RESOURCE_CLAIMS, {"metadata": metadata, "spec": _ASKED}, namespace="init")
        status = {"allocation": _allocation(places[number])}
        await kube.replace(RESOURCE_CLAIMS, {**made, "status": status}, subresource="status")

    for namespace in ("init", "test"):
        await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
        await kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=namespace)
    await kube.create(DEVICE_CLASSES, _CLASS)
    template = {"metadata": {"name": "test-template"}, "spec": {"spec": _ASKED}}
    await kube.create(RESOURCE_CLAIM_TEMPLATES, template, namespace="test")
    await _some_at_once(node, work.nodes)
    await _some_at_once(claim, work.taken)


async def _some_at_once(act: Any, count: int, at_once: int = _AT_ONCE) -> None:
    numbers = iter(range(count))

    async def some() -> None:
        for number in numbers:
            await act(number)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(some())


async def _rate(kube: KubeApi, parts: Sequence[Runnable], work: Workload) -> float:
    """Pods bound a second of wall time, from the first that is made to the last that is bound."""
    await _furnish(kube, work)
    running = [asyncio.create_task(part.run()) for part in parts]
    bound: dict[str, asyncio.Event] = {f"test-{number}": asyncio.Event() for number in range(work.pods)}

    def seen(pod: Object) -> None:
        if node_name_of(pod) and name_of(pod) in bound:
            bound[name_of(pod)].set()

    async def look() -> None:
        while True:  # a watch that ends is begun anew
            listed = await kube.list(PODS, namespace="test")
            for each in listed.items:
                seen(each)
            with contextlib.suppress(ApiError, UnavailableError):
                async for event in kube.watch(PODS, namespace="test", resource_version=listed.resource_version):
                    seen(event.object)

    async def pod(number: int) -> None:
        await kube.create(PODS, _pod(number), namespace="test")
        if work.steady:
            await bound[f"test-{number}"].wait()
            await kube.delete(PODS, f"test-{number}", namespace="test", options=DeleteOptions(grace_period_s=0))

    running.append(asyncio.create_task(look()))
    await asyncio.sleep(3.0)
    began_s = time.perf_counter()
    try:
        async with asyncio.timeout(_DEADLINE_S):
            await _some_at_once(pod, work.pods, _WAITING)
            await asyncio.gather(*(event.wait() for event in bound.values()))
        return work.pods / (time.perf_counter() - began_s)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def ours(work: Workload, release: ClusterRelease) -> float:
    """Our scheduler and controller on our API, in virtual time."""
    return on_our_scheduler(partial(_rate, work=work), release)


def mixed(work: Workload, release: ClusterRelease, folder: Path) -> float:
    """Return the real scheduler on our API over HTTP, with our controller."""
    return on_the_real_scheduler(partial(_rate, work=work), release, folder)


def theirs(work: Workload, release: ClusterRelease, folder: Path) -> float:
    """Return the real control plane."""
    servers = Servers(release=release)

    async def main() -> float:
        await asyncio.to_thread(servers.ready)
        identity, kubeconfig = servers.identity, folder / "kubeconfig"
        cluster = {"server": servers.url, "certificate-authority": str(identity.certificate)}
        write_kubeconfig(kubeconfig, server=cluster, user={"token": identity.token})
        programs = (
            kube_scheduler(folder, kubeconfig, release=release),
            kube_controller_manager(folder, kubeconfig, run=RUN, release=release),
        )
        kube = HttpKube(servers.url, token=identity.token, ssl=identity.client_context())
        try:
            return await _rate(kube, [program(Fence()) for program in programs if program is not None], work)
        finally:
            await kube.close()

    try:
        return asyncio.run(main())
    finally:
        servers.stop()


def _apart(work: Workload, release: str) -> dict[str, float]:
    """``ours`` in a process of its own: the rate, and the MiB that the process took at most."""
    argv = (sys.executable, "-m", "benchmarks.dra_binds", "--ours", work.name, release)
    return json.loads(subprocess.run(argv, cwd=ROOT, check=True, capture_output=True).stdout)  # type: ignore[no-any-return]


def _alone(name: str, release: str) -> None:
    work = next(each for each in WORKLOADS if each.name == name)
    rate = ours(work, cluster_release(release))
    sys.stdout.write(json.dumps({"rate": rate, "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def _compare(work: Workload, release: str) -> None:
    progress(f"{work.name} on Kubernetes {release}: {work.pods} pods, {work.taken} devices taken before")
    mine = _apart(work, release)
    report(f"dra_{work.name}_memory", mine["mib"], "MiB", baseline=MOST_MIB, baseline_name="the most it may take")
    if of_release(SCHEDULER, release) is None or of_release(CONTROLLERS, release) is None:
        progress(f"  no Kubernetes {release} found: not compared in this run")
        report(f"dra_{work.name}", mine["rate"], "pods/s")
        return
    cluster = cluster_release(release)
    with tempfile.TemporaryDirectory() as folder:
        real = theirs(work, cluster, Path(folder))
    report(f"dra_{work.name}", mine["rate"], "pods/s", baseline=real, baseline_name="the real control plane")
    with tempfile.TemporaryDirectory() as folder:
        between = mixed(work, cluster, Path(folder))
    report(f"dra_{work.name}_mixed", between, "pods/s", baseline=real, baseline_name="the real control plane")


def main(arguments: Sequence[str] = ()) -> None:
    """All workloads on Kubernetes 1.37, or on the release that is named."""
    if arguments[:1] == ("--ours",):
        _alone(arguments[1], arguments[2])
        return
    for work in WORKLOADS:
        _compare(work, arguments[0] if arguments else "1.37")


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
