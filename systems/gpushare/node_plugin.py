"""The device plugin of one node: announces its GPUs' memory, and gives it as the extender decided."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, annotations_of
from mews.kube.api.resources import CONFIGMAPS, NODES, PODS
from mews.kube.client.informer import Informer
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.kube.deviceplugin.port import Allocation
from mews.kube.deviceplugin.registration import RegisteredPlugin, stay_registered
from mews.kube.deviceplugin.release import holder_annotation, may_ask
from mews.kube.divided_gpus import DividedGpus
from mews.kube.events import EventRecorder, node_reference
from mews.kube.pulse import Pulse
from mews.kube.system.nvml import ListedGpu, NvmlError
from mews.kube.system.ports import NodeAccess
from mews.systems.gpushare import names
from mews.systems.gpushare.allocations import NodeAllocations
from mews.systems.gpushare.config import AUTO, HOLDER, UNITS, GpuShareConfig
from mews.systems.gpushare.device_plugin import OPTIONS, SlicePlugin
from mews.systems.gpushare.errors import GpuShareConfigError
from mews.systems.gpushare.health import NodeHealth
from mews.systems.gpushare.ledger import NodeLedgers
from mews.systems.gpushare.over_use import MemoryUse
from mews.systems.gpushare.policy import SharedGpu, without
from mews.systems.gpushare.records import gpus_text
from mews.systems.gpushare.releases import GpuReleases, users_of
from mews.systems.gpushare.slices import LIST_LIMIT, choose_unit, list_bytes, slices, units_of

LIST_TOO_LONG, UNIT_CHOSEN = "DeviceListTooLong", "MemoryUnit"
"""Reasons of events about the node."""


class GpuShareNodePlugin:
    """One incarnation. What it must know again is in NVML, the kubelet and the API."""

    def __init__(self, context: Context, config: GpuShareConfig, node: NodeAccess) -> None:
        if node.nvml is None:
            raise NvmlError(f"node {node.name}: has no NVML")
        self._context = context
        self._config = config
        self._node = node
        self._nvml = node.nvml
        self._unit = ""
        self._listed: Sequence[ListedGpu] | None = None
        self._gpus: tuple[SharedGpu, ...] = ()
        self._announced: tuple[SharedGpu, ...] | None = None
        self._ready = asyncio.Event()
        own = f"metadata.name={node.name}"
        unhealthy = f"metadata.name={names.UNHEALTHY_PREFIX}{node.name}"
        self._nodes = Informer(context.kube, NODES, field_selector=own)
        self._pods = Informer(context.kube, PODS, field_selector=f"spec.nodeName={node.name}")
        self._marks = Informer(context.kube, CONFIGMAPS, namespace=config.namespace, field_selector=unhealthy)
        self._health = NodeHealth(context.kube, config.namespace, node.name)
        self._marks.on_change(lambda old, new: self._health.marked(new))
        ledgers = NodeLedgers(context.kube, config.namespace)
        self._allocations = NodeAllocations(context, config, node, ledgers, self._pods, lambda: self._gpus)
        self._releases = GpuReleases(context, config, node, ledgers, lambda: self._gpus, self._nvml.close)
        self._events = EventRecorder(context, "gpushare-device-plugin", node.name)
        self._divided = DividedGpus(self._events, node.name)
        self._use = MemoryUse(context, config, self._events, node)
        self._left_out: frozenset[str] = frozenset()
        self._asked = Pulse()
        self._nodes.on_change(self._node_changed)
        self._plugin = SlicePlugin(self._allocations.prefer, self._allocate)

    async def run(self) -> None:
        """Look, announce, serve and settle, until cancelled.

        Raises GpuShareConfigError where the list of the GPUs there are is longer than a kubelet takes.
        """
        try:
            async with asyncio.TaskGroup() as group:
                informers = (self._nodes, self._pods, self._marks)
                for informer in informers:
                    group.create_task(informer.run())
                for informer in informers:
                    await informer.synced()
                group.create_task(self._events.run())
                group.create_task(self._look_on())
                group.create_task(self._serve())
                group.create_task(self._allocations.settle_on())
        finally:
            await self._nvml.close()

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        before = self._releases.requests
        self._releases.look_at(new)
        self._health.remedied(new)
        if self._releases.requests != before:
            self._asked.beat()

    # GPUs

    async def _look_on(self) -> None:
        while True:
            try:
                await self._look()
            except NvmlError as error:
                record(self._context.log, "nvml-failed", node=self._node.name, error=str(error))
            except (ApiError, UnavailableError) as error:
                record(self._context.log, "node-not-written", node=self._node.name, error=str(error))
            if may_ask(self._nodes.get(self._node.name), HOLDER):
                await self._asked.wait(self._config.poll_s)
            else:
                await rest(self._config.poll_s)

    async def _look(self) -> None:
        if await self._releases.may_open(self._node.files):
            reading = await self._nvml.read()
            self._listed = reading.gpus
            self._health.observe(reading)
            self._divided.look(reading.gpus)
        if self._listed is None:
            return  # A GPU is on its way out, and nobody remembers which others there are.
        if not self._unit:
            self._unit = await self._chosen_unit(self._listed)
        self._allocations.unit = self._unit
        await self._announce(self._listed)
        self._ready.set()
        if may_ask(self._nodes.get(self._node.name), HOLDER):
            try:
                await self._releases.tend()
            finally:
                await self._announce(self._listed)
        await self._use.look(self._listed, self._unit, self._pods.items())
        await self._health.write(self._listed)
        await self._patch_node()

    async def _chosen_unit(self, listed: Sequence[ListedGpu]) -> str:
        """Return the unit, for as long as this incarnation lives. What users cannot guess is an event on the node: that
        none will do, and that it is not the MiB of the design.

        Raises GpuShareConfigError.
        """
        try:
            unit = choose_unit(self._config.unit, listed)
        except GpuShareConfigError as error:
            self._report("Warning", LIST_TOO_LONG, f"GPU memory is not announced: {error}")
            await self._events.post()
            raise
        if self._config.unit == AUTO:
            record(self._context.log, "unit", node=self._node.name, unit=unit)
        if self._config.unit == AUTO and UNITS[unit] > 1:
            finer = f"in MiB the device list of {len(listed)} GPUs is longer than the {LIST_LIMIT} bytes of a kubelet"
            self._report("Normal", UNIT_CHOSEN, f"{self._config.memory_resource} counts units of {unit}: {finer}")
        return unit

    def _report(self, kind: str, reason: str, message: str) -> None:
        self._events.event(node_reference(self._node.name), kind, reason, message)

    async def _announce(self, listed: Sequence[ListedGpu]) -> None:
        self._gpus = tuple(without(self._fitting(listed), self._releases.withheld))
        if self._gpus != self._announced:
            # Only then: a list has tens of thousands of devices in MiB.
            await self._plugin.publish(tuple(slice for gpu in self._gpus for slice in slices(gpu)))
            self._announced = self._gpus
            shown = {gpu.uuid: gpu.memory if gpu.usable else 0 for gpu in self._gpus}
            record(self._context.log, "announced", node=self._node.name, memory=shown)

    def _fitting(self, listed: Sequence[ListedGpu]) -> tuple[SharedGpu, ...]:
        """Return the GPUs as they are announced: one that was plugged in last stays out if the list would be too
        long."""
        found, left_out = list[SharedGpu](), list[str]()
        known = {gpu.uuid for gpu in self._gpus}
        for gpu in sorted(listed, key=lambda each: (each.uuid not in known, each.index)):
            shared = SharedGpu(gpu.index, gpu.uuid, units_of(gpu.memory_mib, self._unit), self._health.usable(gpu))
            if list_bytes((each.uuid, each.memory) for each in (*found, shared)) > LIST_LIMIT:
                record(self._context.log, "list-too-long", node=self._node.name, gpu=gpu.uuid)
                left_out.append(gpu.uuid)
                continue
            found.append(shared)
        if not self._left_out.issuperset(left_out):
            text = (
                f"GPU {', '.join(left_out)} is not announced: with it the device list in {self._unit} is longer than "
            )
            self._report("Warning", LIST_TOO_LONG, f"{text}the {LIST_LIMIT} bytes of a kubelet")
        self._left_out = frozenset(left_out)
        return tuple(sorted(found, key=lambda gpu: gpu.index))

    async def _patch_node(self) -> None:
        """What the extender reads, and the number of GPUs: again whenever somebody has changed it, as a kubelet does
        that starts anew."""
        node = self._nodes.get(self._node.name)
        if node is None:
            return
        kube, name = self._context.kube, self._node.name
        wanted = {names.NODE_GPUS: gpus_text(self._gpus)}
        if may_ask(node, HOLDER):
            users = users_of(self._pods.items(), self._gpus)
            wanted |= holder_annotation(HOLDER, self._releases.record(users))
        there = annotations_of(node)
        if changed := {key: text for key, text in wanted.items() if there.get(key) != text}:
            await kube.patch(NODES, name, {"metadata": {"annotations": changed}})
        count, status = str(len(self._gpus)), node.get("status") or {}
        resource = self._config.count_resource
        if any(str((status.get(part) or {}).get(resource)) != count for part in ("capacity", "allocatable")):
            body = {"status": {part: {resource: count} for part in ("capacity", "allocatable")}}
            await kube.patch(NODES, name, body, subresource="status")

    # The kubelet

    async def _serve(self) -> None:
        await self._ready.wait()
        name, resource = self._config.plugin_socket, self._config.memory_resource
        registered = RegisteredPlugin(self._plugin, name, resource, OPTIONS)
        await stay_registered(self._context, self._node.link, registered, self._restarted)

    def _restarted(self) -> None:
        record(self._context.log, "kubelet-restarted", node=self._node.name)

    async def _allocate(self, ids: Sequence[str]) -> Allocation:
        extras = self._node.extras
        given = await self._allocations.allocate(ids)
        return Allocation({**extras.envs, **given}, extras.mounts)
