"""A node of a shipped hardware file with its koordlet, in virtual time: its Device object and Node are real ones."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mews.emulator.inventory_file import load_hardware
from mews.harness.clock import virtual_clock
from mews.harness.clusters.embedded.checkpoints import StoredCheckpoint
from mews.harness.clusters.embedded.hook_sockets import NodeHookSocket
from mews.harness.ports.deviceplugin import LocalKubeletFolder
from mews.harness.ports.fence import Fence
from mews.harness.ports.hosts import LocalHosts
from mews.harness.ports.nvml import LocalNvml
from mews.harness.ports.runtime_hooks import LocalHooks
from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, uid_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.clock import Pace, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.kubelet.devices import MemoryCheckpoint
from mews.kube.runtimehook.port import HookedContainer, HookRequest, RunningEnvironment
from mews.kube.system.kinds import install_kind
from mews.kube.system.ports import NodeAccess
from mews.systems.koordinator.device_crd import device_definition
from mews.systems.koordinator.devices import NodeDeviceReport, parse
from mews.systems.koordinator.koordlet import Koordlet
from mews.systems.koordinator.koordlet_config import KoordletConfig
from mews.systems.koordinator.names import ALLOCATED, DEVICES

HARDWARE = Path(__file__).parents[3] / "fixtures" / "hardware" / "seed-004.yaml"


class NodeBench:
    """One node. ``running()`` is an incarnation of its koordlet, killed at the end."""

    def __init__(self, host: str = "four", config: KoordletConfig | None = None, hardware: Path = HARDWARE) -> None:
        self.name = host
        self.config = config or KoordletConfig()
        self.clock, pace = virtual_clock(), Pace()
        self.store = fresh_store(self.clock.now, stream(1, "store"))
        self.kube = InProcessKube(self.store)
        self.hosts = LocalHosts(load_hardware(hardware), pace=pace, seed=1, listener=lambda event: None)
        self.hosts.begin()
        self.checkpoint = MemoryCheckpoint()
        self.hooks = LocalHooks()
        self.environments: list[RunningEnvironment] = []
        self.folder = LocalKubeletFolder()
        self.pods = 0

    async def begin(self) -> None:
        await install_kind(self.kube, device_definition())
        await self.node()

    async def node(self) -> None:
        status = {part: {"cpu": "8", "memory": "64Gi", "pods": "110"} for part in ("capacity", "allocatable")}
        await self.kube.create(NODES, {"metadata": {"name": self.name}, "status": status})
        await self.kube.patch(NODES, self.name, {"status": status}, subresource="status")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        if not self.pods:
            await self._once()
        fence = Fence()
        nvml = LocalNvml(self.hosts, self.name, "koordlet")

        async def serve(hooks: Any) -> Any:
            return self.hooks.serve(hooks)

        socket = NodeHookSocket(serve, lambda: tuple(self.environments))
        access = NodeAccess(
            self.name,
            link=self.folder.link(),
            pod_resources=self.folder.pod_resources(),
            files=fence.around(self.hosts.tree(self.name)),
            nvml=fence.around(nvml),
            checkpoint=fence.around(StoredCheckpoint(self.checkpoint)),
            hooks=fence.around(socket),
        )
        context = Context(fence.around(self.kube), self.clock, stream(1, "koordlet"), logging.getLogger("koordlet"))
        task = asyncio.create_task(Koordlet(context, self.config, access).run())
        try:
            yield
        finally:
            assert not task.done() or task.exception() is None, task.exception()
            fence.cut()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await socket.kill()
            nvml.release()

    async def _once(self) -> None:
        try:
            await self.kube.get(NODES, self.name)
        except NotFoundError:
            await self.begin()

    async def pod(
        self,
        name: str,
        *,
        allocated: Mapping[str, Any] | None = None,
        scheduler: str = "default-scheduler",
        **metadata: Any,
    ) -> Object:
        """A pod that runs on the node."""
        self.pods += 1
        container = {"name": "main", "image": "busybox"}
        spec = {"containers": [container], "nodeName": self.name, "schedulerName": scheduler}
        annotations = {} if allocated is None else {ALLOCATED: json.dumps(allocated)}
        body = {"metadata": {"name": name, "annotations": annotations, **metadata}, "spec": spec}
        made = await self.kube.create(PODS, body, namespace="default")
        return await self.phase(made, "Running")

    async def phase(self, pod: Object, phase: str) -> Object:
        name, body = pod["metadata"]["name"], {"status": {"phase": phase}}
        return await self.kube.patch(PODS, name, body, namespace="default", subresource="status")

    def runs(self, pod: Object, **env: str) -> None:
        self.environments.append(RunningEnvironment(uid_of(pod), "main", env))

    async def ask(self, pod: Object, **env: str) -> HookedContainer:
        metadata = pod["metadata"]
        return await self.hooks.pre_create(
            HookRequest(
                "default", metadata["name"], uid_of(pod), "main",
                pod_annotations=metadata.get("annotations") or {},
                pod_labels=metadata.get("labels") or {},
                asked=HookedContainer(env=env),
            )
        )  # fmt: skip

    async def device(self) -> Object:
        return copy.deepcopy(await self.kube.get(DEVICES, self.name))

    async def report(self) -> NodeDeviceReport:
        return parse(await self.device())

    async def resources(self, part: str = "allocatable") -> dict[str, str]:
        found = (await self.kube.get(NODES, self.name))["status"][part]
        return {name: value for name, value in found.items() if "/" in name}

    async def operate(self, **action: Any) -> None:
        await self.hosts.operate(self.name, action)

    def bdf(self, uuid: str) -> str:
        return next(f.bdf for f in self.hosts.hosts.host(self.name).bus.functions() if f.device.uuid == uuid)
