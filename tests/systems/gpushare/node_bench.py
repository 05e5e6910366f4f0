"""A plugin's answers on one node, asked by a kubelet that does as a test says, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.objects import annotations_of
from mews.kube.api.resources import PODS
from mews.kube.client.informer import Informer
from mews.kube.client.port import DeleteOptions
from mews.kube.clock import stream
from mews.kube.component import Context
from mews.kube.deviceplugin.port import ContainerDevices, PluginError, PodDevices
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.system.ports import NodeAccess
from mews.systems.gpushare import names
from mews.systems.gpushare.allocations import NodeAllocations
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.ledger import NodeLedgers
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import assumption, decided
from mews.systems.gpushare.slices import slice_id

NODE = "a"


def some_slices(gpu: SharedGpu, first: int, upto: int) -> frozenset[str]:
    """Slices of a GPU by their numbers."""
    return frozenset(slice_id(gpu.uuid, number) for number in range(first, upto))


class TestedKubelet:
    """What it lists: pods by name, with the slices of their containers. ``silent``: it does not answer."""

    __test__ = False

    def __init__(self) -> None:
        self.held: dict[str, dict[str, frozenset[str]]] = {}
        self.silent = False

    async def list(self) -> tuple[PodDevices, ...]:
        """As podresources' List."""
        if self.silent:
            raise PluginError("Unavailable", "the kubelet does not answer")
        return tuple(
            PodDevices(
                name,
                "default",
                tuple(
                    (container, (ContainerDevices(names.MEMORY_RESOURCE, tuple(sorted(ids))),) if ids else ())
                    for container, ids in by.items()
                ),
            )
            for name, by in self.held.items()
        )


class NodeBench:
    """The node, its pods, and one incarnation of what answers there."""

    def __init__(self, gpus: Sequence[SharedGpu], kube: Callable[[InProcessKube], Any]) -> None:
        clock = virtual_clock()
        self.gpus = gpus
        self.kubelet = TestedKubelet()
        self.kube = InProcessKube(fresh_store(clock.now, stream(1, "store")), "system:admin")
        self._theirs = kube(self.kube)
        self._context = Context(self._theirs, clock, stream(1, "x"), logging.getLogger("test"))
        self._tasks: list[asyncio.Task[None]] = []
        self.answers: NodeAllocations
        self.containers: dict[str, list[str]] = {}

    async def begin(self) -> None:
        """A new incarnation; one that is there dies."""
        await self.die()
        config = GpuShareConfig(unit="GiB")
        pods = Informer(self._theirs, PODS, field_selector=f"spec.nodeName={NODE}")
        node = NodeAccess(NODE, cast(Any, None), cast(Any, self.kubelet))
        ledgers = NodeLedgers(self._theirs, "kube-system")
        self.answers = NodeAllocations(self._context, config, node, ledgers, pods, lambda: self.gpus)
        self._tasks = [asyncio.create_task(pods.run())]
        await pods.synced()
        self._tasks.append(asyncio.create_task(self.answers.settle_on()))

    async def die(self) -> None:
        """Without a word."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def pod(self, name: str, gpu: SharedGpu, *amounts: int, assumed: int) -> None:
        """A pod that the extender has decided on and bound here."""
        containers = [
            {"name": f"c{n}", "image": "x", "resources": {"limits": {names.MEMORY_RESOURCE: str(amount)}}}
            for n, amount in enumerate(amounts)
        ]
        self.containers[name] = [str(each["name"]) for each in containers]
        metadata = {"name": name, "annotations": decided(gpu, sum(amounts), assumed)}
        body = {"metadata": metadata, "spec": {"nodeName": NODE, "containers": containers}}
        await self.kube.create(PODS, body, namespace="default")

    def admits(self, name: str) -> None:
        """The kubelet's list has the pod from now on."""
        self.kubelet.held[name] = dict.fromkeys(self.containers[name], frozenset())

    async def serve(self, name: str, container: str, ids: frozenset[str], *, ask: bool = True) -> dict[str, str]:
        """What the container is told: it gets these slices, whatever is preferred."""
        if ask:
            every = [slice_id(gpu.uuid, number) for gpu in self.gpus for number in range(gpu.memory)]
            taken = {each for by in self.kubelet.held.values() for held in by.values() for each in held}
            await self.answers.prefer(sorted(set(every) - taken), (), len(ids))
        env = await self.answers.allocate(sorted(ids))
        if name not in self.kubelet.held:
            self.admits(name)
        self.kubelet.held[name][container] = ids
        return env

    async def ends(self, name: str) -> None:
        """The pod is gone, and its slices are free."""
        del self.kubelet.held[name]
        await self.kube.delete(PODS, name, namespace="default", options=DeleteOptions(grace_period_s=0))

    async def assigned(self, name: str) -> str | None:
        """The GPU that its annotations say once ASSIGNED is true, None before."""
        decision = assumption(await self.kube.get(PODS, name, namespace="default"))
        return decision.uuid if decision is not None and decision.assigned else None

    async def annotations(self, name: str) -> dict[str, str]:
        """The pod's."""
        return dict(annotations_of(await self.kube.get(PODS, name, namespace="default")))


def on_node(
    work: Callable[[NodeBench], Coroutine[Any, Any, None]],
    gpus: Sequence[SharedGpu],
    kube: Callable[[InProcessKube], Any] = lambda kube: kube,
) -> None:
    """Do that with a plugin that has begun on a node with these GPUs."""

    async def main() -> None:
        bench = NodeBench(gpus, kube)
        try:
            await bench.begin()
            await work(bench)
        finally:
            await bench.die()

    run_virtual(main)
