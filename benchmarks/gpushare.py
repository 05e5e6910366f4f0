"""GPU Share: the extender's filter call at 5,000 nodes x 8 GPUs, what a device list costs in MiB units, and sequences
of chance (``MEWS_GPUSHARE_SEQUENCES``, by default 200; ``MEWS_GPUSHARE_FIRST``, by default 0; ``MEWS_KUBELET_FAULTS``:
a fault of the kubelets, none by default).
usage: python -m benchmarks.gpushare [sequences]"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import statistics
import sys
import time
from typing import Any

from benchmarks.common import progress, report
from benchmarks.gpushare_binds import binds
from mews.kube.api.objects import Object
from mews.kube.client.port import ObjectList
from mews.kube.clock import Clock
from mews.kube.component import Context
from mews.kube.deviceplugin.messages import list_message
from mews.systems.gpushare import names
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.extender import GpuShareExtender
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import decided, gpus_text
from mews.systems.gpushare.slices import list_bytes, slices
from tests.systems.gpushare.kept_handler import KeptHandler

NODES, GPUS, PODS_PER_NODE, CALLS = 5000, 8, 6, 200
UUID = "GPU-16a0c321-0000-0000-{:04d}-{:012d}"


def node(number: int) -> Object:
    gpus = [SharedGpu(index, UUID.format(index, number), 80) for index in range(GPUS)]
    amounts = {names.MEMORY_RESOURCE: str(80 * GPUS), names.COUNT_RESOURCE: str(GPUS)}
    metadata = {"name": f"node-{number:04d}", "uid": f"n{number}", "resourceVersion": str(number + 1)}
    metadata["annotations"] = {names.NODE_GPUS: gpus_text(gpus)}  # type: ignore[assignment]
    return {"metadata": metadata, "status": {"capacity": amounts, "allocatable": amounts}}


def pod(number: int, rng: random.Random) -> Object:
    where = number // PODS_PER_NODE
    gpu = SharedGpu(number % GPUS, UUID.format(number % GPUS, where), 80)
    memory = rng.randint(10, 70)
    limits = {"limits": {names.MEMORY_RESOURCE: str(memory)}}
    annotations = decided(gpu, memory, number)
    metadata = {"name": f"p{number}", "namespace": "default", "uid": f"p{number}", "resourceVersion": str(number + 1)}
    spec = {"nodeName": f"node-{where:04d}", "containers": [{"name": "c", "resources": limits}]}
    return {"metadata": {**metadata, "annotations": annotations}, "spec": spec, "status": {"phase": "Running"}}


class Listed:
    """A KubeApi that has these objects, and in which nothing happens."""

    def __init__(self, objects: dict[str, list[Object]]) -> None:
        self._objects = objects

    async def list(self, resource: Any, **options: Any) -> ObjectList:
        return ObjectList(self._objects.get(resource.plural, []), "1000000")

    async def watch(self, resource: Any, **options: Any) -> Any:
        await asyncio.get_running_loop().create_future()
        yield None


async def filter_calls() -> tuple[list[float], list[float]]:
    """Return seconds of each call, by the clock and of this process's own work."""
    rng = random.Random(1)
    nodes = [node(number) for number in range(NODES)]
    pods = [pod(number, rng) for number in range(NODES * PODS_PER_NODE)]
    kube: Any = Listed({"nodes": nodes, "pods": pods})
    service = KeptHandler()
    context = Context(kube, Clock.wall(), rng, logging.getLogger("bench"))
    running = asyncio.create_task(GpuShareExtender(context, GpuShareConfig(unit="GiB"), service).run())
    handler = await service.handler
    everywhere = [each["metadata"]["name"] for each in nodes]
    took, busy = list[float](), list[float]()
    for turn in range(CALLS + 1):
        limits = {"limits": {names.MEMORY_RESOURCE: str(rng.randint(10, 75))}}
        asking = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "resources": limits}]}}
        body = json.dumps({"Pod": asking, "NodeNames": everywhere}).encode()
        begun, worked = time.perf_counter(), time.process_time()
        reply = await handler("POST", "/gpushare-scheduler/filter", body)
        if turn:
            took.append(time.perf_counter() - begun)
            busy.append(time.process_time() - worked)
        else:
            report("gpushare first filter", 1e3 * (time.perf_counter() - begun), "ms")
        assert reply.status == 200
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return sorted(took), sorted(busy)


def filter_speed() -> None:
    progress(f"gpushare: filter calls for {NODES} nodes with {GPUS} GPUs and {PODS_PER_NODE} pods each")
    took, busy = asyncio.run(filter_calls())
    report("gpushare filter p50", 1e3 * statistics.median(took), "ms")
    report("gpushare filter p99", 1e3 * took[int(len(took) * 0.99)], "ms", baseline=50.0, baseline_name="target")
    report(
        "gpushare filter p99, own work", 1e3 * busy[int(len(busy) * 0.99)], "ms", baseline=50.0, baseline_name="target"
    )


def list_cost() -> None:
    progress("gpushare: the device list of two GPUs of 16276 MiB in MiB units")
    gpus = [SharedGpu(index, UUID.format(index, 0), 16276) for index in range(2)]
    report("gpushare list length", list_bytes((gpu.uuid, gpu.memory) for gpu in gpus) / 2**20, "MiB")
    begun = time.process_time()
    message = list_message([each for gpu in gpus for each in slices(gpu)]).SerializeToString()
    report("gpushare list made and encoded, own work", 1e3 * (time.process_time() - begun), "ms")
    report("gpushare list message", len(message) / 2**20, "MiB")


def sequences() -> None:
    from tests.systems.gpushare.chaos import drawn, play

    wanted, first = (int(os.environ.get(f"MEWS_GPUSHARE_{name}", default)) for name, default in SEQUENCES.items())
    progress(f"gpushare: {wanted} sequences of crashes, restarts, stale watches, and writes refused, lost or late")
    faults = tuple(filter(None, [os.environ.get("MEWS_KUBELET_FAULTS", "")]))
    begun, found = time.perf_counter(), 0
    for seed in range(first, first + wanted):
        chosen = drawn(seed)
        wrong = play(chosen, seed, faults=faults)
        if wrong:
            found += 1
            progress(f"gpushare: sequence {seed}: {chosen}: {wrong}")
        if (played := seed - first + 1) % 250 == 0:
            progress(f"gpushare: {played} of {wanted} sequences, {found} with a violation")
    report("gpushare sequences", wanted, "sequences")
    report("gpushare sequences with a violation", found, "sequences")
    report("gpushare sequences speed", wanted / (time.perf_counter() - begun), "1/s")


SEQUENCES = {"SEQUENCES": "200", "FIRST": "0"}


def main() -> None:
    """All of it, or the sequences alone."""
    if sys.argv[1:] != ["sequences"]:
        filter_speed()
        list_cost()
        binds()
    sequences()


if __name__ == "__main__":
    main()
