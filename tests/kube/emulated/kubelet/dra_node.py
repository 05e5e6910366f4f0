"""A node in virtual time with a kubelet and a DRA driver; claims are allocated by hand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.ports.deviceplugin import LocalKubeletFolder
from mews.harness.ports.dra import LocalDraLink, LocalDraNode
from mews.kube.api.objects import Object, name_of, phase_of
from mews.kube.api.resource_claims import DELETE_PROTECTION
from mews.kube.api.resources import (
    DEVICE_CLASSES,
    EVENTS,
    PODS,
    RESOURCE_CLAIMS,
    SERVICE_ACCOUNTS,
)
from mews.kube.client.port import DeleteOptions
from mews.kube.clock import Pace, rest, stream
from mews.kube.component import Context
from mews.kube.dra.driver import WELL, Condition, DriverComponent, DriverError
from mews.kube.dra.port import ClaimReference
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.devices import MemoryCheckpoint
from mews.kube.emulated.kubelet.dra.claim_cache import cache_from
from mews.kube.emulated.kubelet.dra.state_store import MemoryDraState
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.machine import Machine
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease

NODE, DRIVER = "n1", "fan.example.com"


class Fans:
    """The driver of the helper's docstring; ``fails`` says why not."""

    name = DRIVER

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.fails = ""
        self.count = 2
        self.taints: dict[str, list[dict[str, Any]]] = {}

    async def devices(self) -> Sequence[Mapping[str, Any]]:
        names = [f"fan-{n}" for n in range(self.count)]
        return [{"name": name, **({"taints": self.taints[name]} if name in self.taints else {})} for name in names]

    async def prepare(self, claim: Object, results: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        self.calls.append(("prepare", name_of(claim)))
        if self.fails:
            raise DriverError(self.fails)
        own = {each["device"]: {"env": [f"{each['request'].upper()}={each['device']}"]} for each in results}
        return {"containerEdits": {"env": ["FANS=on"]}, "devices": own}

    async def unprepare(self, claim: ClaimReference) -> None:
        self.calls.append(("unprepare", claim.name))
        if self.fails:
            raise DriverError(self.fails)


class MonitoredFans(Fans):
    """Its devices' conditions are known."""

    def __init__(self) -> None:
        super().__init__()
        self.conditions = {"fan-0": WELL, "fan-1": WELL}

    async def health(self) -> Mapping[str, Condition]:
        return dict(self.conditions)


class Node:
    """A node with a kubelet and a driver; claims are allocated by hand."""

    def __init__(self, release: ClusterRelease = STANDARD, fans: Fans | None = None) -> None:
        self.clock = virtual_clock()
        self.kube = InProcessKube(fresh_store(self.clock.now, stream(1, "store"), attended=True, release=release))
        self.dra, self.state, self.fans = LocalDraNode(), MemoryDraState(), fans or Fans()
        self.folder, self.health_state = LocalKubeletFolder(), MemoryDraState()
        pace = Pace()
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.machine = Machine(
            NodeSpec(NODE),
            Containerd(self.clock, stream(1, "containerd"), simulated=SimulatedRuntime(pace)),
            self.folder,
            MemoryCheckpoint(),
            load_images(),
            pace,
            note=lambda event, **fields: self.lines.append((event, fields)),
            dra=self.dra,
            dra_state=self.state,
            dra_health_state=self.health_state,
            gates=release.gates,
        )
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.link: LocalDraLink | None = None
        self.poll_s: float | None = 1.0

    def context(self, name: str) -> Context:
        return Context(self.kube, self.clock, stream(1, name), logging.getLogger(name))

    def start_kubelet(self) -> None:
        self.tasks["kubelet"] = asyncio.create_task(self.machine.kubelet(self.context("kubelet")).run())

    def start_driver(self) -> None:
        self.link = self.dra.link()
        self.component = DriverComponent(
            self.context("driver"), self.fans, link=self.link, node=NODE, poll_s=self.poll_s
        )
        self.tasks["driver"] = asyncio.create_task(self.component.run())

    async def stop(self, name: str) -> None:
        task = self.tasks.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def kill_driver(self) -> None:
        """As kill -9 does: the socket's file stays."""
        assert self.link is not None
        served = self.dra.sockets()
        self.link.kill()
        await self.stop("driver")
        for path, socket in served.items():
            self.dra.put(path, socket)

    async def claim(self, name: str, *, devices: Sequence[str] = ("fan-0",), pods: Sequence[Object] = ()) -> None:
        """An allocated claim, reserved for those pods."""
        requests = [{"name": f"r{n}", "exactly": {"deviceClassName": "k"}} for n in range(len(devices))]
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
        made = await self.kube.create(RESOURCE_CLAIMS, body, namespace="default")
        made["metadata"]["finalizers"] = [DELETE_PROTECTION]
        made = await self.kube.replace(RESOURCE_CLAIMS, made)
        results = [
            {"request": f"r{n}", "driver": DRIVER, "pool": NODE, "device": each} for n, each in enumerate(devices)
        ]
        status: dict[str, Any] = {"allocation": {"devices": {"results": results}}}
        made = await self.kube.replace(RESOURCE_CLAIMS, {**made, "status": status}, subresource="status")
        for pod in pods:
            await self.reserve(name, pod)

    async def reserve(self, name: str, pod: Object) -> None:
        claim = await self.kube.get(RESOURCE_CLAIMS, name, namespace="default")
        entry = {"resource": "pods", "name": name_of(pod), "uid": pod["metadata"]["uid"]}
        status = {**claim["status"], "reservedFor": [*claim["status"].get("reservedFor", ()), entry]}
        await self.kube.replace(RESOURCE_CLAIMS, {**claim, "status": status}, subresource="status")

    async def pod(self, name: str, claim: str, *, uses: Mapping[str, Any] | None = None, **spec: Any) -> Object:
        container = {"name": "m", "image": "mews/gpu-hold", "resources": {"claims": [uses or {"name": "e"}]}}
        claims = [{"name": "e", "resourceClaimName": claim}]
        body = {"nodeName": NODE, "containers": [container], "resourceClaims": claims, **spec}
        return await self.kube.create(PODS, {"metadata": {"name": name}, "spec": body}, namespace="default")

    async def phase(self, name: str) -> str:
        return phase_of(await self.kube.get(PODS, name, namespace="default"))

    async def why(self) -> list[str]:
        events = (await self.kube.list(EVENTS, namespace="default")).items
        return [each["message"] for each in events if each["reason"] == "FailedPrepareDynamicResources"]

    def env(self) -> list[dict[str, str]]:
        return [fields["env"] for event, fields in self.lines if event == "container-started"]

    def held(self) -> list[tuple[str, int]]:
        """(claim, pods) as the checkpoint says."""
        return [(info.name, len(info.pods)) for info in cache_from(self.state.text).claims.values()]

    async def delete(self, name: str, grace_s: int | None = None) -> None:
        await self.kube.delete(PODS, name, namespace="default", options=DeleteOptions(grace_period_s=grace_s))


def play(
    story: Callable[[Node], Awaitable[None]], release: ClusterRelease = STANDARD, fans: Fans | None = None
) -> None:
    async def main() -> None:
        node = Node(release, fans)
        await node.kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
        await node.kube.create(DEVICE_CLASSES, {"metadata": {"name": "k"}, "spec": {}})
        node.start_kubelet()
        await rest(10)
        node.start_driver()
        await rest(5)
        try:
            await story(node)
        finally:
            for name in list(node.tasks):
                await node.stop(name)

    run_virtual(main)
