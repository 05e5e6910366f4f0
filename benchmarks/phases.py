"""The phases of a reconfiguration: node selection and availability update against nodes (computing time), retrieval
against chassis and the whole against moved GPUs (emulated seconds, profile falcon-4005). The paper: O(n) + O(m)."""

from __future__ import annotations

import asyncio
import json
import statistics
from typing import Any

from benchmarks.common import progress, report
from benchmarks.hardware import hardware
from mews.emulator.chassis.inventory import Hardware, parse_hardware
from mews.harness.clock import Pace, run_virtual, virtual_clock
from mews.harness.clusters.embedded.cluster import EmbeddedCluster, Kubelets
from mews.harness.clusters.embedded.local_world import LocalWorld
from mews.harness.journal import Journal
from mews.harness.scenario.model import Scenario
from mews.kube.api.resources import PODS
from mews.kube.clock import Clock, stream

NODES = (10, 100, 1000)
CHASSIS = (1, 4, 16)
MOVED = (1, 2, 4, 8)
RESOURCE = "falcon.com/gpu"


async def opened(inventory: Hardware, *, virtual: bool, seed: int = 1) -> EmbeddedCluster:
    """A cluster on the running loop, virtual or not, with everything in process."""
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    journal, pace = Journal(lambda: loop.time() - start_s), Pace()
    clock = virtual_clock() if virtual else Clock.wall()
    world = LocalWorld(inventory, journal=journal, clock=clock, pace=pace, seed=seed, rng=stream(seed, "store"))
    kubelets = Kubelets()
    await world.open(kubelets)
    scenario = Scenario.model_validate(
        {"apiVersion": "mews/v1", "kind": "Scenario", "metadata": {"name": "phases"}, "hardware": {}}
    )
    cluster = EmbeddedCluster(
        scenario,
        inventory,
        world=world,
        kubelets=kubelets,
        journal=journal,
        clock=clock,
        pace=pace,
        dialect="h3api",
        seed=seed,
    )
    await cluster.open()
    return cluster


async def ask(cluster: EmbeddedCluster, gpus: int) -> None:
    """A pod that asks for so many GPUs, until it is bound."""
    container = {"name": "main", "image": "mews/train", "resources": {"limits": {RESOURCE: str(gpus)}}}
    spec = {"schedulerName": "kubecomp-scheduler", "restartPolicy": "Never", "containers": [container]}
    made = await cluster.kube.create(PODS, {"metadata": {"name": "asks"}, "spec": spec}, namespace="default")
    async for event in cluster.kube.watch(PODS, resource_version=made["metadata"]["resourceVersion"]):
        if event.object["spec"].get("nodeName"):
            return


async def reconfigured(inventory: Hardware, gpus: int, *, virtual: bool, seed: int = 1) -> dict[str, float]:
    """Seconds per phase of one reconfiguration."""
    cluster = await opened(inventory, virtual=virtual, seed=seed)
    try:
        async with asyncio.timeout(3600 if virtual else 120):
            await ask(cluster, gpus)
        phases: dict[str, float] = dict(cluster.metrics()["phase_seconds"])
        return phases
    finally:
        await cluster.close()


def inventory_of(**options: Any) -> Hardware:
    """The hardware of a benchmark."""
    return parse_hardware(json.loads(hardware(**options)), "benchmark")


def emulated(inventory: Hardware, gpus: int, seeds: int = 10) -> dict[str, float]:
    """Mean emulated seconds per phase over seeds."""
    runs = [
        run_virtual(lambda seed=seed: reconfigured(inventory, gpus, virtual=True, seed=seed))  # type: ignore[misc]
        for seed in range(1, seeds + 1)
    ]
    return {phase: statistics.fmean(run[phase] for run in runs) for phase in runs[0]}


def main() -> None:
    """All three growths; the baseline of each is its smallest size."""
    base: dict[str, float] = {}
    for count in NODES:
        progress(f"node selection and availability update at {count} nodes")
        phases = asyncio.run(reconfigured(inventory_of(hosts=count), 5, virtual=False))
        for phase in ("node_selection", "availability_update"):
            base.setdefault(phase, phases[phase])
            report(
                f"{phase}_{count}_nodes", phases[phase], "s", baseline=base[phase], baseline_name=f"{NODES[0]} nodes"
            )
    for count in CHASSIS:
        progress(f"allocation retrieval at {count} chassis")
        phases = emulated(inventory_of(hosts=4, gpus_per_host=count, chassis=count, profile="falcon-4005"), count + 1)
        value = phases["allocation_retrieval"]
        base.setdefault("retrieval", value)
        report(f"retrieval_{count}_chassis", value, "emulated s", baseline=base["retrieval"], baseline_name="1 chassis")
    for count in MOVED:
        progress(f"the whole with {count} moved")
        phases = emulated(inventory_of(hosts=2, gpus_per_host=8, profile="falcon-4005"), 8 + count)
        value = sum(phases.values())
        base.setdefault("total", value)
        report(f"total_{count}_moved", value, "emulated s", baseline=base["total"], baseline_name="1 moved")


if __name__ == "__main__":
    main()
