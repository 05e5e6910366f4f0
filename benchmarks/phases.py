"""The phases of a reconfiguration: node selection and availability update against nodes (computing time), retrieval
against chassis and the whole against moved GPUs (emulated seconds, profile falcon-4005). The paper: O(n) + O(m)."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import statistics
import time
from functools import partial
from typing import Any

from benchmarks.common import progress, report
from benchmarks.hardware import hardware
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.inventory.reading import parse_hardware
from mews.harness.clock import run_virtual
from mews.harness.clusters.embedded.cluster import EmbeddedCluster
from mews.harness.clusters.embedded.in_process import in_process_ports
from mews.harness.options import RunOptions
from mews.harness.ports.chassis import LocalFleet
from mews.harness.run_context import begin_run
from mews.harness.scenario.model import Scenario
from mews.kube.api.objects import Object
from mews.kube.api.resources import CONFIGMAPS, NAMESPACES, NODES, PODS
from mews.kube.chassis.dialects import client_of
from mews.kube.chassis.port import ChassisApi
from mews.kube.client.port import KubeApi
from mews.kube.clock import Clock, Pace, rest, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.ports.kubelets import Kubelets
from mews.kube.scheduling.config import SchedulerConfig
from mews.kube.scheduling.scheduler import Scheduler
from mews.systems.kubecomp.config import ChassisConfig, KubeCompConfig, NodeConfig
from mews.systems.kubecomp.config_map_writer import ConfigMapWriter
from mews.systems.kubecomp.metrics import KubeCompMemoryMetrics, Phase
from mews.systems.kubecomp.plugin import kubecomp_profile
from mews.systems.kubecomp.reconfig_manager import ReconfigManager
from mews.systems.kubecomp.records import NODE_PREFIX, POOL_PREFIX, NodeReport, report_data

NODE_COUNTS = (10, 100, 1000)
CHASSIS = (1, 4, 16)
MOVED = (1, 2, 4, 8)
RESOURCE = "falcon.com/gpu"
GPUS_PER_NODE = 4


async def opened(inventory: Hardware, *, seed: int = 1) -> EmbeddedCluster:
    """Return a whole cluster on the running virtual loop."""
    scenario = Scenario.model_validate(
        {"apiVersion": "mews/v1", "kind": "Scenario", "metadata": {"name": "phases"}, "hardware": {}}
    )
    run, kubelets = begin_run(RunOptions(), seed=seed, dialect="h3api"), Kubelets()
    ports = in_process_ports(inventory, run, kubelets)
    cluster = EmbeddedCluster(scenario, inventory, name="embedded", run=run, ports=ports, kubelets=kubelets)
    await cluster.open()
    return cluster


async def create(kube: KubeApi, gpus: int) -> Object:
    """Return a pod that asks for so many GPUs."""
    container = {"name": "main", "image": "mews/train", "resources": {"limits": {RESOURCE: str(gpus)}}}
    spec = {"schedulerName": "kubecomp-scheduler", "restartPolicy": "Never", "containers": [container]}
    return await kube.create(PODS, {"metadata": {"name": "asks"}, "spec": spec}, namespace="default")


async def ask(kube: KubeApi, gpus: int) -> None:
    """Such a pod, until it is bound."""
    made = await create(kube, gpus)
    async for event in kube.watch(PODS, resource_version=made["metadata"]["resourceVersion"]):
        if event.object["spec"].get("nodeName"):
            return


async def reconfigured(inventory: Hardware, gpus: int, seed: int) -> dict[str, float]:
    """Emulated seconds per phase of one reconfiguration."""
    cluster = await opened(inventory, seed=seed)
    try:
        async with asyncio.timeout(3600):
            await ask(cluster.kube, gpus)
        phases: dict[str, float] = dict(cluster.metrics()["phase_seconds"])
        return phases
    finally:
        await cluster.close()


async def furnished(kube: KubeApi, config: KubeCompConfig, now_s: float) -> None:
    """All nodes with four GPUs each and the reports of their device managers, without the kubelets."""
    await kube.create(NAMESPACES, {"metadata": {"name": config.namespace}})
    room = {"cpu": "64", "memory": "256Gi", "pods": "110", config.resource: str(GPUS_PER_NODE)}
    board = ConfigMapWriter(kube, config.namespace)
    for number, node in enumerate(config.nodes):
        status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        await kube.create(NODES, {"metadata": {"name": node.name}, "status": status})
        await kube.patch(NODES, node.name, {"spec": {"taints": None}})
        announced = tuple(config.chassis[0].gpuid(device) for device in devices_of(number, len(config.nodes)))
        await board.write(f"{NODE_PREFIX}{node.name}", report_data(NodeReport(announced, heartbeat_s=now_s)))


def devices_of(node: int, nodes: int) -> list[str]:
    """Return what ``hardware`` puts on that node."""
    return [f"{number:06X}" for number in range(nodes * GPUS_PER_NODE) if number % nodes == node]


async def decided(count: int) -> dict[str, float]:
    """Computing seconds of node selection and availability update at so many nodes, by the machine's clock."""
    inventory = inventory_of(hosts=count, gpus_per_host=GPUS_PER_NODE)
    clock, pace = Clock.wall(), Pace()
    kube = InProcessKube(fresh_store(clock.now, random.Random(1)))
    ports = dict(inventory.chassis[0].ports)
    nodes = tuple(NodeConfig(str(host), {"C0": port}) for port, host in sorted(ports.items(), key=lambda p: int(p[0])))
    config = KubeCompConfig(chassis=(ChassisConfig("C0", 0),), nodes=nodes)
    await furnished(kube, config, clock.now())
    fleet, measures = LocalFleet(inventory, pace=pace), KubeCompMemoryMetrics()
    chassis: dict[str, ChassisApi] = {"C0": client_of("h3api", fleet.transport("C0", "h3api"))}
    log = logging.getLogger("mews.bench")
    profile = kubecomp_profile(config, metrics=measures, now=time.perf_counter)
    manager = ReconfigManager(Context(kube, clock, stream(1, "manager"), log), config, chassis, measures)
    scheduler = Scheduler(Context(kube, clock, stream(1, "scheduler"), log), SchedulerConfig((profile,)))
    tasks = [asyncio.create_task(manager.run()), asyncio.create_task(scheduler.run())]
    try:
        async with asyncio.timeout(120):
            while await pools(kube, config) == 0:
                await rest(0.05)
            await create(kube, GPUS_PER_NODE + 1)
            while not measures.durations[Phase.AVAILABILITY_UPDATE]:
                await rest(0.01)
        return {phase.value: max(measures.durations[phase], default=0.0) for phase in Phase}
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        fleet.close()


async def pools(kube: KubeApi, config: KubeCompConfig) -> int:
    """Return how many pools are published."""
    there = await kube.list(CONFIGMAPS, namespace=config.namespace)
    return sum(item["metadata"]["name"].startswith(POOL_PREFIX) for item in there.items)


def inventory_of(**options: Any) -> Hardware:
    """Return the hardware of a benchmark."""
    return parse_hardware(json.loads(hardware(**options)), "benchmark")


def emulated(inventory: Hardware, gpus: int, seeds: int = 10) -> dict[str, float]:
    """Mean emulated seconds per phase over seeds."""
    runs = [run_virtual(partial(reconfigured, inventory, gpus, seed)) for seed in range(1, seeds + 1)]
    return {phase: statistics.fmean(run[phase] for run in runs) for phase in runs[0]}


def main() -> None:
    """All three growths; the baseline of each is its smallest size."""
    base: dict[str, float] = {}
    for count in NODE_COUNTS:
        progress(f"node selection and availability update at {count} nodes")
        phases = asyncio.run(decided(count))
        for phase in ("node_selection", "availability_update"):
            base.setdefault(phase, phases[phase])
            report(
                f"{phase}_{count}_nodes",
                phases[phase],
                "s",
                baseline=base[phase],
                baseline_name=f"{NODE_COUNTS[0]} nodes",
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
