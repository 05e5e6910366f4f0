"""A device plugin of whole GPUs, as NVIDIA's is one: what Koordinator lives beside where a cluster has it already.

``nvidia.com/gpu`` by UUID, ``NVIDIA_VISIBLE_DEVICES`` in the environment (k8s-device-plugin's strategy ``envvar``). It
knows nothing of Koordinator, and Koordinator's nothing of it but what stands in the kubelet's checkpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.kube.deviceplugin.port import (
    HEALTHY,
    UNHEALTHY,
    Allocation,
    PluginDevice,
    PluginError,
    PluginOptions,
)
from mews.kube.deviceplugin.registration import AnnouncedDevices, RegisteredPlugin, first_by_id, stay_registered
from mews.kube.system.facility import ContainerExtras
from mews.kube.system.nvml import NvmlError
from mews.kube.system.ports import NodeAccess
from mews.systems.koordinator.gpu_health import GpuHealth
from mews.systems.koordinator.names import NVIDIA, VISIBLE

SOCKET = "nvidia-gpu.sock"
_POLL_S = 1.0
_OPTIONS = PluginOptions()


class WholeGpuPlugin:
    """A DevicePlugin of GPUs by their UUIDs."""

    def __init__(self, extras: ContainerExtras) -> None:
        self._extras = extras
        self._list = AnnouncedDevices()
        self.publish = self._list.publish
        self.list_and_watch = self._list.stream

    async def options(self) -> PluginOptions:
        """It wants no further calls."""
        return _OPTIONS

    async def preferred_allocation(
        self, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        """Not offered; the first by UUID for a kubelet that asks all the same."""
        return first_by_id(available, must_include, size)

    async def allocate(self, requests: Sequence[Sequence[str]]) -> tuple[Allocation, ...]:
        """Return the UUIDs, for each container. Raises PluginError for one that is not announced as healthy."""
        healthy = {device.id for device in self._list.current or () if device.health == HEALTHY}
        for uuid in (uuid for ids in requests for uuid in ids):
            if uuid not in healthy:
                raise PluginError("Unknown", f"invalid allocation request for {NVIDIA!r}: unknown device: {uuid}")
        extras = self._extras
        return tuple(Allocation({**extras.envs, VISIBLE: ",".join(ids)}, extras.mounts) for ids in requests)

    async def pre_start(self, devices: Sequence[str]) -> None:
        """Nothing is to be done."""


class GpuDevicePlugin:
    """The plugin's process on one node. NVML is closed between two looks: it holds no GPU."""

    def __init__(self, context: Context, node: NodeAccess) -> None:
        if node.nvml is None:
            raise NvmlError(f"node {node.name}: has no NVML")
        self._context = context
        self._node = node
        self._nvml = node.nvml
        self._health = GpuHealth()
        self._plugin = WholeGpuPlugin(node.extras)

    async def run(self) -> None:
        """Look, announce and serve until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look_on())
            group.create_task(self._serve())

    async def _look_on(self) -> None:
        while True:
            try:
                reading = await self._nvml.read()
                self._health.observe(reading)
                listed = tuple(
                    PluginDevice(gpu.uuid, HEALTHY if self._health.healthy(gpu) else UNHEALTHY) for gpu in reading.gpus
                )
                if self._plugin.publish(listed):
                    shown = {device.id: device.health for device in listed}
                    record(self._context.log, "announced", node=self._node.name, gpus=shown)
            except NvmlError as error:
                record(self._context.log, "nvml-failed", node=self._node.name, error=str(error))
            finally:
                await self._nvml.close()
            await rest(_POLL_S)

    async def _serve(self) -> None:
        registered = RegisteredPlugin(self._plugin, SOCKET, NVIDIA, _OPTIONS)
        await stay_registered(self._context, self._node.link, registered, lambda: None)
