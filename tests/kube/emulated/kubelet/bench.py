"""A node with an emulated kubelet on an embedded store, for tests in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from mews.harness.clock import virtual_clock
from mews.kube.api.objects import Object
from mews.kube.api.resources import EVENTS, PODS
from mews.kube.clock import Pace, stream
from mews.kube.component import Context
from mews.kube.deviceplugin.port import Allocation
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.kubelet import Kubelet
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime

NODE = "host-1"


@dataclass
class FakeDevices:
    """A device manager that gives what it is told to."""

    resources: dict[str, tuple[int, int]] = field(default_factory=dict)
    envs: dict[str, str] = field(default_factory=dict)
    refuse: dict[str, Exception] = field(default_factory=dict)
    failing_starts: list[Exception] = field(default_factory=list)
    admitted: list[str] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    admission_s: float = 0.0

    async def admit(self, pod: Mapping[str, Any], *, running: Any = ()) -> None:
        if self.admission_s:
            await asyncio.sleep(self.admission_s)
        name = pod["metadata"]["name"]
        if name in self.refuse:
            raise self.refuse[name]
        self.admitted.append(name)

    def container_allocation(self, pod_uid: str, container: str) -> Allocation:
        return Allocation(envs=dict(self.envs))

    async def pre_start(self, pod_uid: str, container: str) -> None:
        self.starts.append(container)
        if self.failing_starts:
            raise self.failing_starts.pop(0)

    def node_resources(self) -> dict[str, tuple[int, int]]:
        return dict(self.resources)


class Bench:
    """One node."""

    def __init__(self, seed: int = 1, **options: Any) -> None:
        self.clock = virtual_clock()
        self.store = fresh_store(self.clock.now, stream(seed, "store"))
        self.kube = InProcessKube(self.store)
        self.devices = FakeDevices()
        self.pace = Pace()
        self.containerd = Containerd(self.clock, stream(seed, "containerd"), simulated=SimulatedRuntime(self.pace))
        self.images = load_images()
        self.seed = seed
        self.options = options
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.starts = 0

    def kubelet(self) -> Kubelet:
        self.starts += 1
        rng = stream(self.seed, f"kubelet {self.starts}")
        context = Context(self.kube, self.clock, rng, logging.getLogger("kubelet"))
        return Kubelet(
            context,
            NodeSpec(NODE),
            self.devices,
            self.containerd,
            self.pace,
            images=self.images,
            note=lambda event, **fields: self.notes.append((event, fields)),
            **self.options,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Kubelet]:
        """A kubelet that runs; killed at the end, its containers are not."""
        kubelet = self.kubelet()
        task = asyncio.create_task(kubelet.run())
        try:
            yield kubelet
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def pod(self, name: str, command: list[str] | None = None, *, bind: bool = True, **parts: Any) -> Object:
        body = pod(name, command, **parts)
        made = await self.kube.create(PODS, body, namespace="default")
        if bind:
            await self.kube.bind("default", name, NODE)
        return made

    async def get(self, name: str) -> Object:
        return await self.kube.get(PODS, name, namespace="default")

    async def phase(self, name: str, phase: str, timeout_s: float = 600.0) -> Object:
        return await self.until(name, lambda pod: pod["status"]["phase"] == phase, timeout_s)

    async def until(self, name: str, holds: Callable[[Object], bool], timeout_s: float = 600.0) -> Object:
        async with asyncio.timeout(timeout_s):
            while True:
                pod = await self.get(name)
                if holds(pod):
                    return pod
                await asyncio.sleep(0.01)

    async def events(self, name: str) -> list[tuple[str, str, str, int]]:
        found = (await self.kube.list(EVENTS, namespace="default")).items
        mine = [event for event in found if event["involvedObject"]["name"] == name]
        return [(event["type"], event["reason"], event["message"], event["count"]) for event in mine]


async def until(holds: Callable[[], bool], timeout_s: float = 600.0) -> None:
    """Wait for a condition, looking a hundred times a second."""
    async with asyncio.timeout(timeout_s):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def pod(
    name: str,
    command: list[str] | None = None,
    *,
    image: str = "busybox",
    policy: str = "Never",
    containers: list[dict[str, Any]] | None = None,
    inits: list[dict[str, Any]] | None = None,
    annotations: dict[str, str] | None = None,
    grace_s: int = 30,
    **spec: Any,
) -> dict[str, Any]:
    """A pod of one container ``main``, or of those given."""
    main: dict[str, Any] = {"name": "main", "image": image}
    if command:
        main["command"] = command
    body: dict[str, Any] = {"containers": containers or [main], "restartPolicy": policy, **spec}
    body["terminationGracePeriodSeconds"] = grace_s
    if inits:
        body["initContainers"] = inits
    metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": body}
