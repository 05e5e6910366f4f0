"""A small cluster without kubelets: the embedded store, schedulers on it, and short words for nodes and pods."""

from __future__ import annotations

import asyncio
import copy
import logging
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.ports.fence import Fence, Fenced
from mews.kube.api.objects import Object, condition_of, node_name_of
from mews.kube.api.resources import NEW_EVENTS, NODES, PODS, PRIORITY_CLASSES
from mews.kube.client.port import DeleteOptions, KubeApi
from mews.kube.clock import stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.scheduler import Scheduler

GPU = "nvidia.com/gpu"
T = TypeVar("T")


def node(name: str, *, gpus: int = 0, cpu: str = "8", memory: str = "16Gi", pods: int = 110, **spec: Any) -> Object:
    """A ready node; ``labels`` are added to its hostname, the rest is spec."""
    labels = {"kubernetes.io/hostname": name, **spec.pop("labels", {})}
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    if gpus:
        amounts[GPU] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(name: str, *, gpus: int = 0, requests: Mapping[str, str] | None = None, **spec: Any) -> Object:
    """A pod of one container; ``labels`` go to metadata, ``container`` into the container, the rest is spec."""
    resources: dict[str, Any] = {"requests": dict(requests or {})}
    if gpus:
        resources["limits"] = {GPU: str(gpus)}
        resources["requests"][GPU] = str(gpus)
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if "labels" in spec:
        metadata["labels"] = spec.pop("labels")
    container = {"name": "c", "image": "x", "resources": resources, **spec.pop("container", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def default_profile(name: str = "default-scheduler", **options: Any) -> SchedulerProfile:
    return SchedulerProfile(name, default_plugins(), **options)


class World:
    """Made within a running virtual loop."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self.clock = virtual_clock()
        self.store = fresh_store(self.clock.now, random.Random(seed))
        self.kube: KubeApi = InProcessKube(self.store)
        self._running: list[tuple[Fence, asyncio.Task[None]]] = []

    # ------------------------------------------------------------------------------------------------- the scheduler

    def scheduler(self, *profiles: SchedulerProfile, kube: KubeApi | None = None) -> Scheduler:
        """Start one; ``kill`` ends the last started."""
        fence = Fence()
        port = fence.around(kube or self.kube)
        name = f"scheduler/{len(self._running)}"
        context = Context(port, self.clock, stream(self.seed, name), logging.getLogger("test"))
        scheduler = Scheduler(context, SchedulerConfig(profiles or (default_profile(),)))
        self._running.append((fence, asyncio.create_task(scheduler.run())))
        return scheduler

    async def kill(self) -> None:
        """A crash of the last scheduler: nothing gets out any more, and no tidying up."""
        fence, task = self._running.pop()
        fence.cut()
        await self._end(task)

    async def close(self) -> None:
        while self._running:
            await self._end(self._running.pop()[1])

    @staticmethod
    async def _end(task: asyncio.Task[None]) -> None:
        """Cancel; a scheduler that had ended by itself fails the test, unless by its fence."""
        task.cancel()
        await asyncio.wait([task])
        failure = None if task.cancelled() else task.exception()
        if isinstance(failure, BaseExceptionGroup):
            failure = failure.split(Fenced)[1]
        if failure is not None:
            raise failure

    # ------------------------------------------------------------------------------------------------------- objects

    async def add_node(self, name: str, **options: Any) -> None:
        wanted = node(name, **options)
        await self.kube.create(NODES, wanted)
        await self.edit_node(name, lambda n: n.update(spec=wanted["spec"]))

    async def edit_node(self, name: str, edit: Callable[[Object], object], *, status: bool = False) -> None:
        changed = copy.deepcopy(await self.kube.get(NODES, name))
        edit(changed)
        await self.kube.replace(NODES, changed, subresource="status" if status else None)

    async def set_gpus(self, name: str, gpus: int) -> None:
        def edit(n: Object) -> None:
            n["status"]["allocatable"][GPU] = n["status"]["capacity"][GPU] = str(gpus)

        await self.edit_node(name, edit, status=True)

    async def add(self, name: str, **options: Any) -> Object:
        return await self.kube.create(PODS, pod(name, **options), namespace="default")

    async def priority(self, name: str, value: int, **more: Any) -> None:
        await self.kube.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value, **more})

    async def get(self, name: str) -> Object:
        return await self.kube.get(PODS, name, namespace="default")

    async def remove(self, name: str) -> None:
        await self.kube.delete(PODS, name, namespace="default", options=DeleteOptions(grace_period_s=0))

    async def finish(self, name: str, phase: str = "Succeeded") -> None:
        await self.kube.patch(PODS, name, {"status": {"phase": phase}}, namespace="default", subresource="status")

    # ------------------------------------------------------------------------------------------------------ questions

    async def nodes_of(self, *names: str) -> list[str]:
        return [node_name_of(await self.get(name)) for name in names]

    async def node_of(self, name: str) -> str:
        return (await self.nodes_of(name))[0]

    async def message(self, name: str) -> str:
        condition = condition_of(await self.get(name), "PodScheduled")
        return str((condition or {}).get("message", ""))

    async def events(self, name: str) -> list[Object]:
        """A pod's events, in the order in which they came."""
        items = (await self.kube.list(NEW_EVENTS, namespace="default")).items
        return sorted(
            (e for e in items if e["regarding"]["name"] == name), key=lambda e: int(e["metadata"]["resourceVersion"])
        )

    async def notes(self, name: str) -> list[str]:
        return [e["note"] for e in await self.events(name)]

    def elapsed_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def until_bound(self, name: str, *, within_s: float = 600.0) -> float:
        """Seconds from the start until the pod is bound, to a hundredth."""
        end = self.elapsed_s() + within_s
        while not await self.node_of(name):
            if self.elapsed_s() > end:
                raise AssertionError(f"{name} not bound within {within_s} s: {await self.message(name)}")
            await asyncio.sleep(0.01)
        return round(self.elapsed_s(), 2)


def live(story: Callable[[World], Coroutine[Any, Any, T]], seed: int = 1) -> T:
    """Tell a story in virtual time."""

    async def main() -> T:
        world = World(seed)
        try:
            return await story(world)
        finally:
            await world.close()

    return run_virtual(main)


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> Object:
    return {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}


def on_host(*names: str) -> Object:
    """A pod's nodeSelector for one host."""
    return {"kubernetes.io/hostname": names[0]}


def names(events: Sequence[Object], reason: str) -> list[str]:
    return [e["note"] for e in events if e["reason"] == reason]
