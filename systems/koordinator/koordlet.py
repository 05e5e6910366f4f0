"""koordlet's part in devices, one on each node: the report, the adoption of what others gave, and the runtime hook."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, annotations_of, is_terminal, key_of, labels_of, name_of, uid_of
from mews.kube.api.quantities import parse as parse_quantity
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.informer import Informer
from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.kube.deviceplugin.release import holder_annotation, may_ask
from mews.kube.divided_gpus import DividedGpus
from mews.kube.events import EventRecorder
from mews.kube.pulse import Pulse
from mews.kube.runtimehook.port import HOOKS_SERVED, HookedContainer, HookError, HookRequest
from mews.kube.system.nvml import NvmlDescription, NvmlError, NvmlReading
from mews.kube.system.ports import NodeAccess
from mews.systems.koordinator.adoption import Adoption
from mews.systems.koordinator.device_objects import device_patch, live_allocations, status_allocations, wanted_object
from mews.systems.koordinator.devices import NodeDeviceReport, parse
from mews.systems.koordinator.errors import BadDeviceError
from mews.systems.koordinator.gpu_health import GpuHealth
from mews.systems.koordinator.hook import HookedNode, answer
from mews.systems.koordinator.host_devices import PCI, HostDevice, HostDevices, by_bus
from mews.systems.koordinator.koordlet_config import KoordletConfig
from mews.systems.koordinator.names import DEVICES, GPU
from mews.systems.koordinator.reporter import NodeReading, Occupancy, node_amounts, node_labels, node_resources, report
from mews.systems.koordinator.visible import IndexedGpu
from mews.systems.koordinator.withdrawals import HOLDER, GpuWithdrawals

_SERVE_RETRY_S = 1.0


class Koordlet:
    """One incarnation. What it must know again is in NVML, sysfs, the kubelet's checkpoint, its container runtime and
    its node's Device object."""

    def __init__(self, context: Context, config: KoordletConfig, node: NodeAccess) -> None:
        self._context = context
        self._config = config
        self._node = node
        own = f"metadata.name={node.name}"
        self._nodes = Informer(context.kube, NODES, field_selector=own)
        self._devices = Informer(context.kube, DEVICES, field_selector=own)
        self._pods = Informer(context.kube, PODS, field_selector=f"spec.nodeName={node.name}")
        self._host = None if node.files is None else HostDevices(node.files)
        self._adoption = Adoption(context, config, node)
        self._report = NodeDeviceReport(node.name)
        self._health = GpuHealth()
        self._events = EventRecorder(context, "koordlet", node.name)
        self._divided = DividedGpus(self._events, node.name)
        self._nvml: NvmlReading | None = None
        self._described = NvmlDescription()
        self._gpus: tuple[IndexedGpu, ...] = ()
        self._functions: tuple[HostDevice, ...] = ()
        self._seen: tuple[object, ...] = ()
        self._withdrawals = GpuWithdrawals(context, self, self._close_nvml)
        self._looked, self._known, self._answers = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._wake = Pulse()
        self._nodes.on_change(self._node_changed)
        self._devices.on_change(self._device_changed)

    async def run(self) -> None:
        """Look, report and answer hooks, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                informers = (self._nodes, self._pods, self._devices)
                for informer in informers:
                    group.create_task(informer.run())
                for informer in informers:
                    await informer.synced()
                self._recall()
                group.create_task(self._events.run())
                group.create_task(self._look_on())
                if self._node.hooks is None:
                    self._answers.set()
                else:
                    group.create_task(self._serve())
        finally:
            await self._close_nvml()

    def _recall(self) -> None:
        """What the incarnation before reported: minors, and which GPUs were broken."""
        there = self._devices.get(self._node.name)
        if there is None:
            return
        try:
            self._report = parse(there)
        except BadDeviceError as error:
            record(self._context.log, "device-unreadable", node=self._node.name, error=str(error))
            return
        self._health = GpuHealth(self._report.devices)
        self._health.remedied(self._nodes.get(self._node.name))
        self._adoption.recall(self._report)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        before = self._withdrawals.requests
        self._withdrawals.look_at(new)
        remedied = self._health.remedied(new)
        again = new is not None and (old is None or uid_of(old) != uid_of(new) or bool(self._lacks(new)))
        if again or remedied or self._withdrawals.requests != before:
            self._wake.beat()

    def _device_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._wake.beat()

    # Looking

    async def _look_on(self) -> None:
        due_s = 0.0
        loop = asyncio.get_running_loop()
        while True:
            changed = await self._read()
            try:
                changed |= await self._tend()
                if changed or loop.time() >= due_s:
                    await self._look()
                    due_s = loop.time() + self._config.report_s
                    self._looked.set()
            except (ApiError, UnavailableError) as error:
                record(self._context.log, "not-reported", node=self._node.name, error=str(error))
            if await self._wake.wait(min(self._config.poll_s, self._config.report_s)):
                due_s = 0.0

    async def _read(self) -> bool:
        """Look at NVML and the bus; whether devices came, went or broke since."""
        xids: tuple[object, ...] = ()
        if self._node.nvml is not None and not await self._withdrawals.may_open(self._node.files):
            self._nvml = None  # a GPU is on its way out: who has NVML open keeps it here
        elif self._node.nvml is not None:
            try:
                self._nvml = await self._node.nvml.read()
                self._health.observe(self._nvml)
                self._divided.look(self._nvml.gpus)
                self._gpus = tuple(IndexedGpu(gpu.index, gpu.minor, gpu.uuid) for gpu in self._nvml.gpus)
                xids = self._nvml.xids
            except NvmlError as error:
                self._nvml = None
                record(self._context.log, "nvml-failed", node=self._node.name, error=str(error))
        names: tuple[str, ...] = ()
        if self._node.files is not None:
            try:
                names = tuple(await self._node.files.names(PCI))
            except OSError:
                names = ()
        gpus = (
            () if self._nvml is None else tuple((g.index, g.uuid, g.minor, g.lost, g.divided) for g in self._nvml.gpus)
        )
        seen = (gpus, names)
        changed, self._seen = seen != self._seen, seen
        return changed or bool(xids)

    async def _tend(self) -> bool:
        """Answer whoever wants GPUs of this node whole; whether what may be given has changed by that."""
        node = self._nodes.get(self._node.name)
        if node is None or not may_ask(node, HOLDER):
            return False
        before = self._withdrawals.withheld
        await self._withdrawals.tend()
        users = dict.fromkeys((device.id for device in self._report.devices if device.type == GPU), 0)
        for uuid in users:
            users[uuid] = len(self._held_by(uuid, self._pods.items()))
        note = holder_annotation(HOLDER, self._withdrawals.record(users))
        there = annotations_of(node)
        if any(there.get(key) != text for key, text in note.items()):
            await self._context.kube.patch(NODES, self._node.name, {"metadata": {"annotations": note}})
        return self._withdrawals.withheld != before

    async def holders(self, uuid: str) -> list[str]:
        """Return the pods that hold a GPU, asked of the API server itself. Raises ApiError, UnavailableError."""
        listed = await self._context.kube.list(PODS, field_selector=f"spec.nodeName={self._node.name}")
        return self._held_by(uuid, listed.items)

    async def claims(self, uuid: str) -> list[str]:
        """Return the Device while it offers a GPU (whatever this koordlet's watch shows), else pods without a node
        whose annotation names it: their binding may be on its way. Raises ApiError, UnavailableError."""
        try:
            there = parse(await self._context.kube.get(DEVICES, self._node.name))
        except (NotFoundError, BadDeviceError):
            return [f"{DEVICES.kind}/{self._node.name}"]  # it is written anew before anything leaves
        if any(device.id == uuid and device.health for device in there.devices):
            return [f"{DEVICES.kind}/{self._node.name}"]
        listed = await self._context.kube.list(PODS, field_selector="spec.nodeName=")
        ours = [pod for pod in listed.items if pod["spec"].get("schedulerName") == self._config.scheduler]
        given = live_allocations(ours)
        return [key_of(pod) for pod, allocations in given.values() if any(each.id == uuid for each in allocations)]

    def _held_by(self, uuid: str, pods: Iterable[Object]) -> list[str]:
        minors = {device.minor for device in self._report.devices if device.type == GPU and device.id == uuid}
        adopted = {entry.pod_uid for entry in (*self._report.held, *self._report.found) if uuid in entry.ids}
        live = [pod for pod in pods if not is_terminal(pod)]
        given = live_allocations(live)
        found = []
        for pod in live:
            _, allocations = given.get(uid_of(pod), (pod, ()))
            if uid_of(pod) in adopted or any(
                each.type == GPU and (each.id == uuid or (not each.id and each.minor in minors)) for each in allocations
            ):
                found.append(key_of(pod))
        return found

    async def _close_nvml(self) -> None:
        if self._node.nvml is not None:
            await self._node.nvml.close()

    async def _describe(self) -> None:
        assert self._nvml is not None and self._node.nvml is not None
        if tuple(gpu.uuid for gpu in self._described.gpus) != tuple(gpu.uuid for gpu in self._nvml.gpus):
            try:
                self._described = await self._node.nvml.describe()
            except NvmlError as error:
                record(self._context.log, "nvml-failed", node=self._node.name, error=str(error))

    async def _look(self) -> None:
        if self._nvml is not None:
            await self._describe()
        if self._host is not None:
            try:
                self._functions = await self._host.read()
            except OSError as error:
                record(self._context.log, "sysfs-failed", node=self._node.name, error=str(error))
        pods = list(self._pods.items())
        given = live_allocations(pods)
        held, found = await self._adoption.entries(pods, self._gpus)
        ids = {each.id for _, allocations in given.values() for each in allocations if each.id}
        ids |= {one for entry in (*held, *found) for one in entry.ids}
        self._report = report(
            self._report,
            NodeReading(self._nvml, self._described, self._functions, self._withdrawals.withheld),
            self._health,
            kinds=self._config.kinds,
            occupancy=Occupancy(frozenset(ids), held, found),
        )
        self._known.set()
        await self._answers.wait()  # nothing is offered that containers would not get
        by_uid = {uid_of(pod): pod for pod in pods}
        allocations = status_allocations(given, (*held, *found), self._report.devices, by_uid)
        node = self._nodes.get(self._node.name)
        if node is None:
            return
        await self._write_device(node, allocations)
        self._withdrawals.shown([device.id for device in self._report.devices if not device.health])
        await self._write_node(node)

    # Writing

    async def _write_device(self, node: Object, allocations: list[dict[str, object]]) -> None:
        kube = self._context.kube
        wanted = wanted_object(self._report, node, labels=node_labels(self._described), allocations=allocations)
        there = self._devices.get(name_of(node))
        if there is None:
            await kube.create(DEVICES, wanted)
        elif body := device_patch(there, wanted):
            await kube.patch(DEVICES, name_of(node), body)
        else:
            return
        health = {f"{device.type}/{device.minor}": device.health for device in self._report.devices}
        record(self._context.log, "reported", node=self._node.name, devices=health)

    async def _write_node(self, node: Object) -> None:
        kube, name = self._context.kube, name_of(node)
        labels = {key: text for key, text in node_labels(self._described).items() if labels_of(node).get(key) != text}
        if labels:
            await kube.patch(NODES, name, {"metadata": {"labels": labels}})
        if lacking := self._lacks(node):
            await kube.patch(NODES, name, {"status": lacking}, subresource="status")

    def _lacks(self, node: Object) -> dict[str, dict[str, str]]:
        """Return what the node's status does not show as reported: after a kubelet's restart, or when devices came or
        went."""
        if not self._looked.is_set() and not self._report.devices:
            return {}
        status, amounts = node.get("status") or {}, node_amounts(self._report.devices, self._config.kinds)
        found = {}
        for part in ("capacity", "allocatable"):
            there = status.get(part) or {}
            wanted = node_resources(amounts, there, self._config.kinds, seed_names=self._config.seed_names)
            differing = {name: value for name, value in wanted.items() if not _same(there.get(name), value)}
            if differing:
                found[part] = differing
        return found

    # Hooks

    async def _serve(self) -> None:
        assert self._node.hooks is not None
        await self._known.wait()
        while True:
            try:
                endpoint = await self._node.hooks.serve(self)
                break
            except OSError as error:
                record(self._context.log, "hooks-not-served", node=self._node.name, error=str(error))
                await rest(_SERVE_RETRY_S)
        record(self._context.log, HOOKS_SERVED, node=self._node.name)
        self._answers.set()
        try:
            await asyncio.Event().wait()
        finally:
            await endpoint.close()

    async def pre_create(self, request: HookRequest) -> HookedContainer:
        """Give the container the devices of its pod's annotation. Raises HookError."""
        return self._answer("pre-create", request)

    async def pre_update(self, request: HookRequest) -> HookedContainer:
        """Return the same for one that runs. Raises HookError."""
        return self._answer("pre-update", request)

    def _answer(self, call: str, request: HookRequest) -> HookedContainer:
        try:
            given = answer(request, self._hooked_node())
        except HookError as error:
            record(self._context.log, "hook-refused", call=call, pod=request.pod, error=str(error))
            raise
        self._adoption.seen(request, given.env)
        return given

    def _hooked_node(self) -> HookedNode:
        there = by_bus(self._functions)
        others = {(d.type, d.minor): there[d.place.bus] for d in self._report.devices if d.place.bus in there}
        return HookedNode(self._gpus, others, self._node.extras, self._node.device_folder)


def _same(there: object, wanted: str) -> bool:
    return there is not None and parse_quantity(str(there)) == parse_quantity(wanted)
