"""GPU Share under chance: a cluster in virtual time whose parts die, whose watches lag, and whose binds are refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mews.emulator.chassis.inventory_reading import parse_hardware
from mews.harness.clock import run_virtual
from mews.harness.clusters.embedded.cluster import EmbeddedCluster
from mews.harness.clusters.embedded.in_process import in_process_ports
from mews.harness.options import RunOptions
from mews.harness.run_context import begin_run
from mews.harness.scenario.loader import parse_scenario
from mews.kube.api.errors import ApiError, NotFound, ServerError, Unavailable
from mews.kube.api.objects import Object, annotations_of, is_terminal, key_of, node_name_of, phase_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.port import DeleteOptions, KubeApi, WatchEvent
from mews.kube.emulated.apiserver.wire.kubelets import Kubelets
from mews.kube.system.invariant import Breach, ClusterObjects
from mews.systems.gpushare import names
from mews.systems.gpushare.invariants import MemoryAsked
from mews.systems.gpushare.ledger import uses_of
from mews.systems.gpushare.policy import best_fit, free_memory, used_memory
from mews.systems.gpushare.records import assumption, node_gpus, requested

UNITS = 8
Operation = tuple[str, int, int]
"""What is done, and two numbers that say to whom."""
OPERATIONS = ("create", "create-two", "pinned", "delete", "kill", "start", "kubelet", "refuse", "lose", "lag", "rest")
PARTS = (
    "gpushare-extender",
    "gpushare-extender-2",
    "gpushare-device-plugin/a",
    "gpushare-device-plugin/b",
    "default-scheduler",
)
SCENARIO = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: chaos}
hardware: demo
stack: {kubecomp: null, gpushare: {unit: GiB, replicas: 2}}
"""


def hardware() -> Any:
    hosts = [
        {
            "name": host,
            "devices": [
                {"id": str(n), "uuid": f"GPU-{host}{n}", "model": "V100-16GB", "memory_mib": UNITS * 1024}
                for n in range(2)
            ],
        }
        for host in "ab"
    ]
    chassis = [{"name": "A", "ports": {"1": None}, "devices": []}]
    document = {"apiVersion": "mews/v1", "kind": "Hardware", "metadata": {"name": "chaos"}, "hosts": hosts}
    return parse_hardware({**document, "chassis": chassis}, "chaos")


@dataclass(slots=True)
class Trouble:
    """What goes wrong next with the API as the components of GPU Share see it."""

    refusals: int = 0
    losses: int = 0
    lag_s: float = 0.0


class TroubledKube:
    """A KubeApi whose binds may be refused, or done and not answered, and whose watches may lag."""

    def __init__(self, kube: KubeApi, trouble: Trouble, rng: random.Random) -> None:
        self._kube = kube
        self._trouble = trouble
        self._rng = rng

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kube, name)

    async def bind(self, *arguments: Any, **options: Any) -> None:
        if self._trouble.refusals:
            self._trouble.refusals -= 1
            raise ServerError("refused by chance")
        await asyncio.sleep(self._rng.random() * 0.02)
        await self._kube.bind(*arguments, **options)
        if self._trouble.losses:
            self._trouble.losses -= 1
            raise Unavailable("the answer is lost")

    async def watch(self, *arguments: Any, **options: Any) -> AsyncIterator[WatchEvent]:
        async for event in self._kube.watch(*arguments, **options):
            if self._trouble.lag_s:
                await asyncio.sleep(self._trouble.lag_s * self._rng.random())
            yield event


def play(operations: Sequence[Operation], seed: int = 1) -> list[str]:
    """Do all of it, let things come to rest, and say what was wrong at any moment."""
    return run_virtual(lambda: _play(operations, seed))


async def _play(operations: Sequence[Operation], seed: int) -> list[str]:
    scenario = parse_scenario(SCENARIO, __import__("pathlib").Path("chaos.yaml"))
    run = begin_run(RunOptions(), seed=seed, dialect="h3api")
    built, kubelets = hardware(), Kubelets()
    ports = in_process_ports(built, run, kubelets)
    trouble, rng = Trouble(), run.rng("trouble")
    plain = ports.kube

    def kube(actor: str) -> KubeApi:
        mine: Any = plain(actor)
        return TroubledKube(mine, trouble, rng) if actor.startswith("gpushare") else mine  # type: ignore[return-value]

    cluster = EmbeddedCluster(
        scenario, built, name="embedded", run=run, ports=replace(ports, kube=kube), kubelets=kubelets
    )
    await cluster.open()
    player = _Player(cluster, trouble, rng)
    try:
        await player.sleep(30.0)
        for operation in operations:
            await player.do(*operation)
            await player.sleep(rng.choice((0.0, 0.05, 0.5, 3.0)))
        await player.recover()
        return player.wrong
    finally:
        await cluster.close()


class _Player:
    def __init__(self, cluster: EmbeddedCluster, trouble: Trouble, rng: random.Random) -> None:
        self._cluster = cluster
        self._trouble = trouble
        self._rng = rng
        self._law = MemoryAsked()
        self._lines = 0
        self._made = 0
        self.wrong: list[str] = []

    async def do(self, what: str, first: int, second: int) -> None:
        match what:
            case "create":
                await self._create([1 + first % UNITS])
            case "create-two":
                await self._create([1 + first % 3, 1 + second % 3])
            case "pinned":
                await self._create([1 + first % UNITS], node="ab"[second % 2])
            case "delete":
                await self._delete(first)
            case "kill":
                await self._cluster.kill(PARTS[first % len(PARTS)])
            case "start":
                await self._cluster.start(PARTS[first % len(PARTS)])
            case "kubelet":
                await self._cluster.kill(f"kubelet/{'ab'[first % 2]}")
                await self.sleep(1.0)
                await self._cluster.start(f"kubelet/{'ab'[first % 2]}")
            case "refuse":
                self._trouble.refusals = 1 + first % 3
            case "lose":
                self._trouble.losses = 1
            case "lag":
                self._trouble.lag_s = (0.0, 0.5, 5.0)[first % 3]

    async def _create(self, amounts: Sequence[int], node: str = "") -> None:
        self._made += 1
        containers = [
            {"name": f"c{n}", "image": "mews/gpu-hold", "resources": {"limits": {names.MEMORY_RESOURCE: str(amount)}}}
            for n, amount in enumerate(amounts)
        ]
        spec: dict[str, Any] = {"containers": containers, "terminationGracePeriodSeconds": 1}
        if node:
            spec["nodeName"] = node
        metadata = {"name": f"p{self._made}", "namespace": "default"}
        await self._cluster.kube.create(PODS, {"metadata": metadata, "spec": spec}, namespace="default")

    async def _pods(self) -> list[Object]:
        return (await self._cluster.kube.list(PODS)).items

    async def _delete(self, which: int) -> None:
        pods = await self._pods()
        if pods:
            try:
                name = pods[which % len(pods)]["metadata"]["name"]
                await self._cluster.kube.delete(PODS, name, namespace="default", options=DeleteOptions())
            except NotFound:
                return

    async def sleep(self, span_s: float) -> None:
        """In small steps, each of them judged."""
        steps = max(int(span_s / 0.5), 1)
        for _ in range(steps):
            await asyncio.sleep(span_s / steps)
            await self._judge()

    async def _judge(self) -> None:
        found: list[Breach] = []
        for line in self._cluster.journal.lines()[self._lines :]:
            self._lines += 1
            found += self._law.on_line(line, None)  # type: ignore[arg-type]
        pods = {key_of(pod): pod for pod in await self._pods()}
        found += self._law.on_objects(0.0, ClusterObjects({}, pods, 0.0), None)  # type: ignore[arg-type]
        self.wrong += [breach.what for breach in found if breach.what not in self.wrong]

    async def recover(self) -> None:
        """All trouble ends; what fits must then run, in a bounded time."""
        self._trouble.refusals = self._trouble.losses = 0
        self._trouble.lag_s = 0.0
        for part in (*PARTS, "kubelet/a", "kubelet/b"):
            await self._cluster.start(part)
        for _ in range(8):
            await self.sleep(60.0)
        self.wrong += [f"crashed: {crash}" for crash in self._cluster.crashes()]
        pods = await self._pods()
        nodes = (await self._cluster.kube.list(NODES)).items
        for pod in pods:
            if phase_of(pod) == "Pending" and not node_name_of(pod):
                self.wrong += [
                    f"{key_of(pod)} is stuck though it fits {where}" for where in self._room(pod, nodes, pods)
                ]
            decision = assumption(pod)
            if (
                phase_of(pod) == "Running"
                and (decision is None or not decision.assigned)
                and not _without(self._cluster, pod)
            ):
                self.wrong.append(f"{key_of(pod)} runs and was never assigned: {dict(annotations_of(pod))}")

    def _room(self, pod: Object, nodes: Sequence[Object], pods: Sequence[Object]) -> list[str]:
        amount, found = requested(pod, names.MEMORY_RESOURCE), []
        for node in nodes:
            here = [other for other in pods if node_name_of(other) == node["metadata"]["name"]]
            live = [other for other in here if not is_terminal(other)]
            gpus = node_gpus(node, names.MEMORY_RESOURCE, names.COUNT_RESOURCE)
            free = free_memory(gpus, used_memory(gpus, uses_of(live, {})))
            asked = sum(requested(other, names.MEMORY_RESOURCE) for other in live)
            if best_fit(amount, gpus, free) is not None and asked + amount <= sum(gpu.memory for gpu in gpus):
                found.append(str(node["metadata"]["name"]))
        return found


def _without(cluster: EmbeddedCluster, pod: Object) -> bool:
    """Whether a container of it was told that there is no GPU for it: a pinned pod that fits nowhere runs without."""
    uid = pod["metadata"]["uid"]
    return any(
        line.fields.get("env", {}).get(names.INDEX) == "-1"
        for line in cluster.journal.lines()
        if line.event == "container-started" and line.fields.get("uid") == uid
    )


__all__ = ["OPERATIONS", "ApiError", "Operation", "play"]
