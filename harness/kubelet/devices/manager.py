"""The kubelet's device manager (contract kubelet.md sections 1 to 9; upstream pkg/kubelet/cm/devicemanager).

Deciding lives beside this file in pure functions (``choice``, ``holdings``, ``inventory``, ``fit``, ``merge``,
``checkpoint``); here are the calls to plugins, the lock that makes admission serial, and the checkpoint's writes.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from mews.harness.clock import Pace
from mews.harness.kubelet.devices.checkpoint import MISSING, Checkpoint
from mews.harness.kubelet.devices.checkpoint_store import CheckpointStore
from mews.harness.kubelet.devices.choice import Choice, Need, begin, complete
from mews.harness.kubelet.devices.connections import Connections
from mews.harness.kubelet.devices.endpoint import ResourceEndpoint
from mews.harness.kubelet.devices.errors import AdmissionRejected, AllocationFailed, CheckpointError, PreStartFailed
from mews.harness.kubelet.devices.fit import check_fit
from mews.harness.kubelet.devices.holdings import Holding, Holdings, kept_from_reuse, left_for_reuse, per_numa
from mews.harness.kubelet.devices.inventory import Inventory
from mews.harness.kubelet.devices.merge import merged
from mews.harness.kubelet.devices.naming import is_extended_resource
from mews.harness.kubelet.devices.order import shuffled, union, without
from mews.harness.kubelet.note import Note, silent
from mews.kube.api.objects import containers_of, init_containers_of, is_terminal, key_of, name_of, namespace_of, uid_of
from mews.kube.api.quantities import whole
from mews.kube.component import record
from mews.kube.deviceplugin.port import (
    Allocation,
    ContainerDevices,
    DialedPlugin,
    PluginDevice,
    PluginDialer,
    PluginError,
    PluginOptions,
    PodDevices,
)

API_VERSION = "v1beta1"

UNREADABLE = "Continue after failing to read checkpoint file. Device allocation info may NOT be up-to-date"

Pod = Mapping[str, Any]
PodList = Callable[[], Iterable[Pod]]


class DeviceManager:
    """One kubelet process's devices; make it inside the running loop, a new one for each start of the kubelet.

    ``active_pods``: pods of the node that may hold devices now (bound, admitted, not terminal); ``node_allocatable``:
    ``status.allocatable`` of the Node object as the kubelet last saw it; ``note`` hears what the journal keeps.
    """

    def __init__(
        self,
        *,
        dialer: PluginDialer,
        checkpoint: CheckpointStore,
        pace: Pace,
        rng: random.Random,
        active_pods: PodList,
        node_allocatable: Callable[[], Mapping[str, Any]] = dict,
        log: logging.Logger | None = None,
        note: Note = silent,
    ) -> None:
        self._dialer = dialer
        self._store = checkpoint
        self._pace = pace
        self._rng = rng
        self._active_pods = active_pods
        self._node_allocatable = node_allocatable
        self._log = log or logging.getLogger(__name__)
        self._note = note
        self._connections = Connections(self._listed, self._gone, self._log)
        self._admission = asyncio.Lock()
        self._admitting = ""
        self._reusable: dict[str, tuple[str, ...]] = {}
        self._expired: dict[str, None] = {}
        saved = self._load()
        self._holdings = Holdings(saved.holdings)
        self._allocated = self._holdings.allocated()
        self._inventory = Inventory(tuple(saved.registered))
        self._endpoints = {resource: self._stopped(resource) for resource in saved.registered}

    # Registration and the plugins' lists.

    async def register(
        self, endpoint: str, resource: str, options: PluginOptions | None = None, *, version: str = API_VERSION
    ) -> None:
        """Registration/Register: dial, ask for options, answer, then read the lists. ``options`` are ignored.

        Raises PluginError with the texts of section 1.
        """
        if version != API_VERSION:
            raise _unknown(
                f'requested API version "{version}" is not supported by kubelet. Supported version is ["{API_VERSION}"]'
            )
        if not is_extended_resource(resource):
            raise _unknown(f'the ResourceName "{resource}" is invalid')
        connection = self._connections.open(resource)
        try:
            plugin, asked = await self._connect(endpoint)
        except PluginError:
            self._connections.abandon(resource)
            raise
        self._endpoints[resource] = ResourceEndpoint(resource, plugin, asked)
        self._expired.pop(resource, None)
        record(self._log, "plugin-registered", resource=resource, endpoint=endpoint)
        self._note("registered", resource=resource)
        self._connections.watch(connection, plugin)

    async def close(self) -> None:
        """The kubelet ends, in whatever way: its connections to plugins close. The checkpoint stays as it is."""
        await self._connections.close()

    async def _connect(self, endpoint: str) -> tuple[DialedPlugin, PluginOptions]:
        try:
            plugin = await self._dialer.dial(endpoint)
        except PluginError as error:
            raise _unknown(f"failed to dial device plugin: {error.desc}") from error
        try:
            return plugin, await plugin.options()
        except PluginError as error:
            await plugin.close()
            raise _unknown(f"failed to get device plugin options: {error}") from error

    def _listed(self, resource: str, devices: tuple[PluginDevice, ...]) -> None:
        self._inventory.replace(resource, devices)
        self._save()
        capacity, healthy = self._inventory.numbers(resource)
        record(self._log, "devices-listed", resource=resource, capacity=capacity, healthy=healthy)
        fit = self._inventory.healthy(resource) or ()
        unfit = without(tuple(self._inventory.known(resource)), fit)
        self._note("devices", resource=resource, healthy=sorted(fit), unhealthy=sorted(unfit))

    def _gone(self, resource: str) -> None:
        endpoint = self._endpoints.get(resource)
        if endpoint is None:
            return
        self._inventory.fail(resource)
        endpoint.stop(self._pace.now(), self._rng)
        record(self._log, "plugin-gone", resource=resource)

    # Numbers for the node's status.

    def node_resources(self) -> dict[str, tuple[int, int]]:
        """Resource -> (capacity, allocatable), to be merged over what the node shows (section 2).

        A resource whose plugin is gone for more than five minutes is forgotten here and shown as (0, 0) for as long
        as this kubelet lives.
        """
        now_s = self._pace.now()
        late = [
            name
            for name in self._inventory.resources()
            if name not in self._endpoints or self._endpoints[name].expired(now_s)
        ]
        for resource in late:
            self._inventory.forget(resource)
            self._endpoints.pop(resource, None)
            self._expired[resource] = None
            record(self._log, "resource-forgotten", resource=resource)
        if late:
            self._save()
        numbers = {resource: self._inventory.numbers(resource) for resource in self._inventory.resources()}
        return {**dict.fromkeys(self._expired, (0, 0)), **numbers}

    # Admission.

    async def admit(self, pod: Pod, *, running: Collection[str] = ()) -> None:
        """Give every container its devices, init containers first; one pod at a time.

        ``running``: containers that were found running when the kubelet started; they already have theirs.

        Raises AdmissionRejected.
        """
        async with self._admission:
            try:
                for container in (*init_containers_of(pod), *containers_of(pod)):
                    await self._admit_container(pod, container, running)
            except (AllocationFailed, PluginError) as error:
                text = f"Allocate failed due to {error}, which is unexpected"
                raise AdmissionRejected("UnexpectedAdmissionError", text) from error
            held = self._allocated if uid_of(pod) in self._holdings.pods() else {}
            check_fit(pod, self._active(), self._node_allocatable(), held)

    async def _admit_container(self, pod: Pod, container: Mapping[str, Any], running: Collection[str]) -> None:
        uid, name = uid_of(pod), str(container["name"])
        if self._admitting != uid:
            self._admitting, self._reusable = uid, {}
        await self._allocate_container(pod, container, running)
        held = self._holdings.of_container(uid, name)
        plain_init = container.get("restartPolicy") != "Always" and any(
            c["name"] == name for c in init_containers_of(pod)
        )
        self._reusable = (left_for_reuse if plain_init else kept_from_reuse)(self._reusable, held)

    async def _allocate_container(self, pod: Pod, container: Mapping[str, Any], running: Collection[str]) -> None:
        uid, name, limits = uid_of(pod), str(container["name"]), _limits_of(container)
        collected = given = False
        for resource in shuffled(limits, self._rng):
            if not self._is_device(resource):
                continue
            if not collected:
                self.collect()
                collected = True
            if name in running:
                continue
            chosen = await self._choose(self._need(uid, name, resource, whole(limits[resource])))
            if chosen:
                await self._give(uid, name, resource, chosen)
                held = {"resource": resource, "devices": sorted(chosen)}
                self._note("allocated", pod=key_of(pod), uid=uid, container=name, **held)
                given = True
        if given:
            self._save()

    def _need(self, uid: str, container: str, resource: str, required: int) -> Need:
        held = self._holdings.of_resource(uid, container, resource)
        return Need(
            pod_uid=uid,
            container=container,
            resource=resource,
            required=required,
            held=held.ids if held else None,
            reusable=self._reusable.get(resource, ()),
            healthy=self._inventory.healthy(resource),
            allocated=self._allocated.get(resource, ()),
        )

    async def _choose(self, need: Need) -> tuple[str, ...]:
        choice = begin(need, self._rng)
        if choice is None:
            return ()
        if choice.missing:
            choice = complete(choice, await self._preferred(need.resource, choice), self._rng)
        return choice.chosen

    async def _preferred(self, resource: str, choice: Choice) -> tuple[str, ...]:
        endpoint = self._endpoints.get(resource)
        if endpoint is None:
            raise AllocationFailed(f"endpoint not found in cache for a registered resource: {resource}")
        if not endpoint.wants_preference:
            return ()
        offered, fixed = shuffled(choice.available, self._rng), shuffled(choice.chosen, self._rng)
        return await endpoint.prefer(offered, fixed, choice.required)

    async def _give(self, uid: str, container: str, resource: str, chosen: tuple[str, ...]) -> None:
        """Allocate: one call, one container. A failed call gives back what was chosen for it."""
        self._allocated[resource] = union(self._allocated.get(resource, ()), chosen)
        try:
            endpoint = self._endpoints.get(resource)
            if endpoint is None:
                raise AllocationFailed(f"unknown Device Plugin {resource}")
            responses = await endpoint.allocate(shuffled(chosen, self._rng))
        except (PluginError, AllocationFailed):
            self._allocated = self._holdings.allocated()
            raise
        if not responses:
            raise AllocationFailed("no containers return in allocation response ")
        by_numa = per_numa(shuffled(chosen, self._rng), self._inventory.known(resource))
        self._holdings.put(Holding(uid, container, resource, by_numa, responses[0]))
        record(self._log, "devices-allocated", pod=uid, container=container, resource=resource, ids=",".join(chosen))

    # Container starts.

    async def pre_start(self, pod_uid: str, container: str) -> None:
        """Before every start of a container: PreStartContainer where a plugin wants it (sections 3, 4, 8).

        A container whose devices are unknown (lost checkpoint) gets new ones.

        Raises PreStartFailed.
        """
        pod, spec = self._active_container(pod_uid, container)
        limits = _limits_of(spec) if spec else {h.resource: 1 for h in self._holdings.of_container(pod_uid, container)}
        lacking = False
        for resource in shuffled(limits, self._rng):
            if not self._is_device(resource) or not whole(limits[resource]):
                continue
            await self._pre_start_resource(pod_uid, container, resource)
            lacking = lacking or self._holdings.of_resource(pod_uid, container, resource) is None
        if lacking and pod is not None and spec is not None:
            await self._allocate_late(pod, spec)

    async def _pre_start_resource(self, pod_uid: str, container: str, resource: str) -> None:
        endpoint = self._endpoints.get(resource)
        if endpoint is None:
            raise PreStartFailed(f"endpoint not found in cache for a registered resource: {resource}")
        if not endpoint.wants_pre_start:
            return
        held = self._holdings.of_resource(pod_uid, container, resource)
        if held is None:
            raise PreStartFailed(
                f"no devices found allocated in local cache for pod {pod_uid}, container {container}, "
                f"resource {resource}"
            )
        try:
            await endpoint.pre_start(shuffled(held.ids, self._rng))
        except (PluginError, AllocationFailed) as error:
            raise PreStartFailed(f"device plugin PreStartContainer rpc failed with err: {error}") from error

    async def _allocate_late(self, pod: Pod, container: Mapping[str, Any]) -> None:
        async with self._admission:
            try:
                await self._admit_container(pod, container, ())
            except (AllocationFailed, PluginError) as error:
                raise PreStartFailed(str(error)) from error

    # Looking.

    def container_allocation(self, pod_uid: str, container: str) -> Allocation:
        """What the container gets, merged over its resources (section 9)."""
        return merged(holding.allocation for holding in self._holdings.of_container(pod_uid, container))

    def pod_devices(self, pod: Pod) -> PodDevices:
        """The pod's entry in podresources: sidecars and main containers, without init containers (section 7)."""
        sidecars = [c for c in init_containers_of(pod) if c.get("restartPolicy") == "Always"]
        names = [str(container["name"]) for container in (*sidecars, *containers_of(pod))]
        return PodDevices(
            name_of(pod),
            namespace_of(pod),
            tuple((name, self._container_devices(uid_of(pod), name)) for name in names),
        )

    def allocatable_devices(self) -> tuple[ContainerDevices, ...]:
        """All healthy devices, given out or not, one entry each."""
        return tuple(
            ContainerDevices(resource, (device,), self._inventory.known(resource)[device].numa_nodes)
            for resource, healthy in self._inventory.registered().items()
            for device in healthy
        )

    def collect(self) -> None:
        """Free the devices of pods that are not active any more. Lazy: at an admission with devices, and by List."""
        alive = [uid_of(pod) for pod in self._active()]
        ended = without(self._holdings.pods(), (*alive, self._admitting))
        if ended:
            self._holdings.forget(ended)
            self._allocated = self._holdings.allocated()

    def _container_devices(self, uid: str, container: str) -> tuple[ContainerDevices, ...]:
        return tuple(device for holding in self._holdings.of_container(uid, container) for device in holding.devices())

    def _active(self) -> list[Pod]:
        return [pod for pod in self._active_pods() if not is_terminal(pod)]

    def _active_container(self, pod_uid: str, name: str) -> tuple[Pod | None, Mapping[str, Any] | None]:
        for pod in self._active():
            if uid_of(pod) == pod_uid:
                both = (*init_containers_of(pod), *containers_of(pod))
                return pod, next((c for c in both if c["name"] == name), None)
        return None, None

    def _is_device(self, resource: str) -> bool:
        return self._inventory.healthy(resource) is not None or resource in self._allocated

    # The checkpoint.

    def _load(self) -> Checkpoint:
        try:
            return self._store.load()
        except CheckpointError as error:
            level = logging.INFO if str(error) == MISSING else logging.ERROR
            self._log.log(level, "%s err=%s", UNREADABLE, error)
            return Checkpoint()

    def _stopped(self, resource: str) -> ResourceEndpoint:
        """A resource of the checkpoint: its plugin counts as gone from now on."""
        endpoint = ResourceEndpoint(resource, None, None)
        endpoint.stop(self._pace.now(), self._rng)
        return endpoint

    def _save(self) -> None:
        self._store.save(Checkpoint(self._holdings.entries(), self._inventory.registered()))


def _unknown(desc: str) -> PluginError:
    return PluginError("Unknown", desc)


def _limits_of(container: Mapping[str, Any]) -> Mapping[str, Any]:
    return (container.get("resources") or {}).get("limits") or {}
