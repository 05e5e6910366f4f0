"""Nodes with Device objects, and koord-scheduler on them, without kubelets, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from mews.harness.clock import run_virtual
from mews.harness.ports.fence import Fence, Fenced
from mews.kube.api.errors import NotFoundError, UnavailableError
from mews.kube.api.objects import Object, is_terminal
from mews.kube.api.resources import CRDS, LEASES, PODS, Resource
from mews.kube.client.port import WatchEvent
from mews.kube.clock import stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.system.kinds import install_kind
from mews.systems.koordinator.allocations import DeviceAllocation, allocations_of
from mews.systems.koordinator.cache import NodeDeviceCache
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.device_crd import device_definition, pod_group_definition
from mews.systems.koordinator.devices import NodeDevice, NodeDeviceReport, as_object
from mews.systems.koordinator.names import DEVICES
from mews.systems.koordinator.plugin import koordinator_profile
from mews.systems.koordinator.scheduler import KoordScheduler
from mews.systems.koordinator.usage import gpu_resources
from tests.kube.scheduling.world import World, pod

GIB = 2**30


def gpus(node: str, count: int, memory: int = 8 * GIB, unhealthy: Sequence[int] = ()) -> tuple[NodeDevice, ...]:
    """GPUs of one size."""
    return tuple(
        NodeDevice("gpu", minor, f"GPU-{node}-{minor}", minor not in unhealthy, gpu_resources(memory))
        for minor in range(count)
    )


class StaleKube(InProcessKube):
    """Watches of the resources in ``stale`` show nothing new until ``refresh``. While it is ``silent`` nothing is
    written, and leases are not read."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.stale: set[Resource] = set()
        self.silent = False
        self._fresh = asyncio.Event()

    def _reach(self) -> None:
        if self.silent:
            raise UnavailableError("no answer")

    async def get(self, resource: Resource, name: str, **options: Any) -> Object:
        if resource == LEASES:
            self._reach()
        return await super().get(resource, name, **options)

    async def replace(self, resource: Resource, obj: Mapping[str, Any], **options: Any) -> Object:
        self._reach()
        return await super().replace(resource, obj, **options)

    async def patch(self, resource: Resource, name: str, body: Any, **options: Any) -> Object:
        self._reach()
        return await super().patch(resource, name, body, **options)

    async def bind(self, namespace: str, pod: str, node: str, **options: Any) -> None:
        self._reach()
        await super().bind(namespace, pod, node, **options)

    def refresh(self) -> None:
        self.stale.clear()
        self._fresh.set()
        self._fresh = asyncio.Event()

    async def watch(self, resource: Resource, **options: Any) -> AsyncIterator[WatchEvent]:
        async with aclosing(super().watch(resource, **options)) as events:
            async for event in events:
                while resource in self.stale:
                    await self._fresh.wait()
                yield event


class Candidate:
    """A koord-scheduler that schedules while it holds the lease."""

    def __init__(self, world: DeviceWorld, number: int) -> None:
        self.kube, self.fence = StaleKube(world.store), Fence()
        port = self.fence.around(self.kube)
        context = Context(port, world.clock, stream(world.seed, f"candidate/{number}"), logging.getLogger("test"))
        self.scheduler = KoordScheduler(context, KoordinatorConfig(namespace="default", leader_elect=True))
        self.task = asyncio.create_task(self.scheduler.run())

    async def kill(self) -> None:
        """A crash: nothing gets out any more."""
        self.fence.cut()
        await self.end()

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        failure = None if self.task.cancelled() else self.task.exception()
        if isinstance(failure, BaseExceptionGroup):
            failure = failure.split(Fenced)[1]
        if failure is not None:
            raise failure


class DeviceWorld(World):
    """``cache`` is the books of the scheduler that was started last."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = NodeDeviceCache()
        self.kube = self.stale_kube = StaleKube(self.store)
        self.candidates: list[Candidate] = []
        self._stood = 0

    async def stand(self) -> Candidate:
        """One more scheduler wants to lead."""
        await self.install()
        self._stood += 1
        self.candidates.append(Candidate(self, self._stood))
        return self.candidates[-1]

    def leader(self) -> Candidate | None:
        """Who schedules now."""
        return next((each for each in self.candidates if each.scheduler.cache.nodes), None)

    async def close(self) -> None:
        while self.candidates:
            await self.candidates.pop().end()
        await super().close()

    async def install(self) -> None:
        try:
            await self.kube.get(CRDS, "devices.scheduling.koordinator.sh")
        except NotFoundError:
            await install_kind(self.kube, dict(device_definition()))
            await install_kind(self.kube, dict(pod_group_definition()))

    async def koordinator(self, **options: Any) -> None:
        """Start a scheduler."""
        await self.install()
        self.cache = NodeDeviceCache()
        self.scheduler(koordinator_profile(KoordinatorConfig(**options), self.cache))

    async def node_with(self, report: NodeDeviceReport, **options: Any) -> None:
        """A node and its Device."""
        await self.install()
        await self.add_node(report.node, **{"cpu": "64", "memory": "256Gi", **options})
        await self.kube.create(DEVICES, as_object(report))

    async def report(self, report: NodeDeviceReport) -> None:
        """The Device says something else now."""
        known = await self.kube.get(DEVICES, report.node)
        made = as_object(report)
        made["metadata"]["resourceVersion"] = known["metadata"]["resourceVersion"]
        await self.kube.replace(DEVICES, made)

    async def ask(
        self, name: str, asked: Mapping[str, int | str], annotations: Mapping[str, str] | None = None, **spec: Any
    ) -> Object:
        """A pod of koord-scheduler that asks for devices."""
        amounts = {key: str(value) for key, value in asked.items()}
        made = pod(name, schedulerName="koord-scheduler", container={"resources": {"limits": amounts}}, **spec)
        if annotations:
            made["metadata"]["annotations"] = dict(annotations)
        return await self.kube.create(PODS, made, namespace="default")

    async def given(self, name: str) -> list[int]:
        """Minors of the GPUs of a pod."""
        return [each.minor for each in await self.allocations(name) if each.type == "gpu"]

    async def allocations(self, name: str) -> tuple[DeviceAllocation, ...]:
        return allocations_of(await self.get(name))

    async def all_bound(self, names: Iterable[str], **options: Any) -> None:
        for name in names:
            await self.until_bound(name, **options)

    async def over_full(self) -> list[str]:
        """Devices of which bound pods have more than there is."""
        sums: dict[tuple[str, str, int, str], int] = {}
        for each in (await self.kube.list(PODS)).items:
            node = each["spec"].get("nodeName")
            for given in allocations_of(each) if node and not is_terminal(each) else ():
                for resource, value in given.resources.items():
                    slot = node, given.type, given.minor, resource
                    sums[slot] = sums.get(slot, 0) + value
        limit = {"koordinator.sh/gpu-memory": 8 * GIB}
        return [f"{slot}: {value}" for slot, value in sums.items() if value > limit.get(slot[3], 100)]


def play(story: Callable[[DeviceWorld], Coroutine[Any, Any, None]]) -> None:
    """Tell a story in virtual time."""

    async def main() -> None:
        world = DeviceWorld()
        try:
            await story(world)
        finally:
            await world.close()

    run_virtual(main)


async def a_while(seconds: float = 5.0) -> None:
    """Let everything happen that happens by itself."""
    await asyncio.sleep(seconds)
