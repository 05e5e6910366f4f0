"""A node's device manager with plugins in process, for tests."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from mews.harness.ports.deviceplugin import LocalKubeletFolder
from mews.kube.clock import Pace
from mews.kube.deviceplugin.port import Allocation, DevicePluginLink, Endpoint, PluginDevice, PluginOptions
from mews.kube.emulated.kubelet.devices import (
    CheckpointStore,
    DeviceManager,
    KubeletFolder,
    ManagerPodResources,
    MemoryCheckpoint,
)

R = "example.com/res"
BOTH = PluginOptions(pre_start_required=True, preferred_allocation_available=True)


class FakePlugin:
    """Answers the lowest free IDs, tells of every call, and does as its attributes say."""

    def __init__(self, devices: Sequence[str | PluginDevice], options: PluginOptions = BOTH) -> None:
        self.devices = tuple(d if isinstance(d, PluginDevice) else PluginDevice(d) for d in devices)
        self.plugin_options = options
        self.calls: list[tuple[Any, ...]] = []
        self.errors: dict[str, Exception] = {}
        self.hang_s = 0.0
        self.answer: tuple[Allocation, ...] | None = None
        self.prefer: tuple[str, ...] | None = None
        self.streams = 0
        self._change = asyncio.Event()

    def show(self, devices: Sequence[str | PluginDevice]) -> None:
        self.devices = tuple(d if isinstance(d, PluginDevice) else PluginDevice(d) for d in devices)
        change, self._change = self._change, asyncio.Event()
        change.set()

    async def options(self) -> PluginOptions:
        self._note("options")
        return self.plugin_options

    async def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        self.streams += 1
        try:
            if "list" in self.errors:
                raise self.errors["list"]
            while True:
                change = self._change
                yield self.devices
                await change.wait()
        finally:
            self.streams -= 1

    async def preferred_allocation(
        self, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        self._note("P", tuple(available), tuple(must_include), size)
        if self.prefer is not None:
            return self.prefer
        rest = sorted(set(available) - set(must_include))
        return (*sorted(must_include), *rest)[:size]

    async def allocate(self, requests: Sequence[Sequence[str]]) -> tuple[Allocation, ...]:
        self._note("A", tuple(requests[0]))
        if self.hang_s:
            await asyncio.sleep(self.hang_s)
        if self.answer is not None:
            return self.answer
        return (Allocation(envs={"DEVICES": ",".join(sorted(requests[0]))}),)

    async def pre_start(self, devices: Sequence[str]) -> None:
        self._note("S", tuple(devices))
        if self.hang_s:
            await asyncio.sleep(self.hang_s)

    def _note(self, call: str, *what: Any) -> None:
        self.calls.append((call, *what))
        if call in self.errors:
            raise self.errors[call]

    def summary(self) -> list[str]:
        """The calls since the registration, in the contract's short form, IDs sorted."""
        found = []
        for call, *what in self.calls:
            if call == "P":
                found.append(f"P({len(what[0])}, {sorted(what[1])}, {what[2]})")
            elif call in ("A", "S"):
                found.append(f"{call}({' '.join(sorted(what[0]))})")
        return found


class Stand:
    """One node: folder, checkpoint, the current kubelet's device manager and the node's pods."""

    def __init__(
        self,
        checkpoint: CheckpointStore | None = None,
        seed: int = 1,
        speed: float = 1.0,
        folder: KubeletFolder | None = None,
        new_link: Callable[[], DevicePluginLink] | None = None,
        faults: Sequence[str] = (),
    ) -> None:
        self.faults = faults
        local = LocalKubeletFolder()
        self.folder: Any = folder or local
        self.new_link = new_link or self.folder.link
        self.checkpoint = checkpoint or MemoryCheckpoint()
        self.endpoints: list[Endpoint] = []
        self.pods: dict[str, dict[str, Any]] = {}
        self.node: dict[str, Any] = {}
        self.rng = random.Random(seed)
        self.pace = Pace(speed)

    async def start(self) -> Stand:
        """Start a kubelet."""
        self.manager = DeviceManager(
            dialer=self.folder,
            checkpoint=self.checkpoint,
            pace=self.pace,
            rng=self.rng,
            active_pods=lambda: list(self.pods.values()),
            node_allocatable=lambda: self.node,
            log=logging.getLogger("test"),
            faults=self.faults,
        )
        self.resources = ManagerPodResources(
            self.manager,
            find_pod=lambda namespace, name: self.pods.get(name) if namespace == "default" else None,
        )
        await self.folder.start(self.manager, self.resources)
        return self

    async def stop(self) -> None:
        """Stop the kubelet."""
        await self.folder.stop()
        await self.manager.close()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def plug(
        self, plugin: FakePlugin, resource: str = R, endpoint: str = "", link: DevicePluginLink | None = None
    ) -> Endpoint:
        """Serve and register a plugin and wait until its list is known."""
        link = link or self.new_link()
        endpoint = endpoint or resource.replace("/", "-") + ".sock"
        served = await link.serve(endpoint, plugin)
        self.endpoints.append(served)
        await link.register(endpoint, resource, plugin.plugin_options)
        total = len(plugin.devices)
        await until(lambda: "list" in plugin.errors or self.manager.node_resources().get(resource, (-1,))[0] == total)
        return served

    async def run(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Admit the pod and keep it."""
        await self.manager.admit(pod)
        self.pods[pod["metadata"]["name"]] = pod
        return pod

    def held(self, name: str) -> dict[str, list[str]]:
        """Container -> device IDs of a kept pod."""
        shown = self.manager.pod_devices(self.pods[name])
        return {container: sorted(i for d in devices for i in d.device_ids) for container, devices in shown.containers}


async def until(condition: Callable[[], bool], deadline_s: float = 60.0) -> None:
    """Wait on the loop, virtual or not, until it holds."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + deadline_s
    await settle()
    while not condition():
        assert loop.time() < end_s, f"not so within {deadline_s} s"
        await asyncio.sleep(0.01)


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(20):
        await asyncio.sleep(0)


def container(name: str, count: int, resource: str = R, **more: Any) -> dict[str, Any]:
    limits = {resource: str(count)} if count else {}
    return {"name": name, "resources": {"limits": limits, "requests": limits}, **more}


def sidecar(name: str, count: int) -> dict[str, Any]:
    return container(name, count, restartPolicy="Always")


def a_pod(name: str, *containers: dict[str, Any], inits: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": list(containers), "initContainers": list(inits)},
        "status": {"phase": "Running"},
    }


def eight() -> list[str]:
    return [f"d{i}" for i in range(8)]
