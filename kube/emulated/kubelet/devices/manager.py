"""The kubelet's device manager (contract kubelet.md sections 1 to 9; upstream pkg/kubelet/cm/devicemanager).

Its parts: ``connections`` (registrations and streams), ``admission`` (who gets what), ``ledger`` (all that it knows),
and the pure rules ``choice``, ``holdings``, ``inventory``, ``fit``, ``merge`` and ``checkpoint``.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from mews.kube.api.extended_resources import is_extended_resource
from mews.kube.api.objects import containers_of, init_containers_of, name_of, namespace_of, uid_of
from mews.kube.api.quantities import whole
from mews.kube.clock import Pace
from mews.kube.component import record
from mews.kube.deviceplugin.port import (
    Allocation,
    ContainerDevices,
    DialedPlugin,
    PluginDialer,
    PluginError,
    PluginOptions,
    PodDevices,
)
from mews.kube.emulated.kubelet.devices.admission import Admission, limits_of
from mews.kube.emulated.kubelet.devices.allocations import DeviceAllocations
from mews.kube.emulated.kubelet.devices.checkpoint_store import CheckpointStore
from mews.kube.emulated.kubelet.devices.connections import Connections
from mews.kube.emulated.kubelet.devices.endpoint import ResourceEndpoint
from mews.kube.emulated.kubelet.devices.errors import DeviceAllocationError, PreStartError
from mews.kube.emulated.kubelet.devices.merge import merged
from mews.kube.emulated.kubelet.devices.order import shuffled
from mews.kube.emulated.kubelet.kubelet_journal import KubeletJournal, silent

API_VERSION = "v1beta1"

Pod = Mapping[str, Any]


class DeviceManager:
    """One kubelet process's devices; make it inside the running loop, a new one for each start of the kubelet.

    ``active_pods``: pods of the node that may hold devices now (bound, not rejected, not terminal; none until the
    kubelet has its first list); ``node_allocatable``: ``status.allocatable`` of the Node as the kubelet last saw it;
    ``faults``: those of ``KUBELET_FAULTS`` that it has.
    """

    def __init__(
        self,
        *,
        dialer: PluginDialer,
        checkpoint: CheckpointStore,
        pace: Pace,
        rng: random.Random,
        active_pods: Callable[[], Iterable[Pod]],
        node_allocatable: Callable[[], Mapping[str, Any]] = dict,
        log: logging.Logger | None = None,
        note: KubeletJournal = silent,
        faults: Collection[str] = (),
    ) -> None:
        self._dialer = dialer
        self._rng = rng
        self._log = log or logging.getLogger(__name__)
        self._ledger = DeviceAllocations(checkpoint, pace, rng, self._log, note, faults=faults)
        self._connections = Connections(self._ledger.listed, self._ledger.gone, self._log)
        self._admission = Admission(self._ledger, rng, active_pods=active_pods, node_allocatable=node_allocatable)

    # Registration.

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
        plugin, asked = await self._connect(endpoint)
        await self._connections.open(resource, plugin)
        self._ledger.connected(ResourceEndpoint(resource, plugin, asked))
        record(self._log, "plugin-registered", resource=resource, endpoint=endpoint)

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

    # Pods.

    async def admit(self, pod: Pod, *, running: Collection[str] = ()) -> None:
        """Give every container its devices, init containers first; one pod at a time.

        ``running``: containers that were found running when the kubelet started; they already have theirs.

        Raises AdmissionRejectedError.
        """
        await self._admission.admit(pod, running)

    async def pre_start(self, pod_uid: str, container: str) -> None:
        """Before every start of a container: PreStartContainer where a plugin wants it (sections 3, 4, 8).

        A container whose devices are unknown (lost checkpoint) gets new ones.

        Raises PreStartError.
        """
        pod, spec = self._find(pod_uid, container)
        holdings = self._ledger.holdings
        limits = limits_of(spec) if spec else {held.resource: 1 for held in holdings.of_container(pod_uid, container)}
        lacking = False
        for resource in shuffled(limits, self._rng):
            if self._ledger.is_device(resource) and whole(limits[resource]):
                await self._pre_start_resource(pod_uid, container, resource)
                lacking = lacking or holdings.of_resource(pod_uid, container, resource) is None
        if lacking and pod is not None and spec is not None:
            await self._admission.admit_late(pod, spec)

    async def _pre_start_resource(self, pod_uid: str, container: str, resource: str) -> None:
        endpoint = self._ledger.endpoints.get(resource)
        if endpoint is None:
            raise PreStartError(f"endpoint not found in cache for a registered resource: {resource}")
        if not endpoint.wants_pre_start:
            return
        held = self._ledger.holdings.of_resource(pod_uid, container, resource)
        if held is None:
            raise PreStartError(
                f"no devices found allocated in local cache for pod {pod_uid}, container {container}, "
                f"resource {resource}"
            )
        try:
            await endpoint.pre_start(shuffled(held.ids, self._rng))
        except (PluginError, DeviceAllocationError) as error:
            raise PreStartError(f"device plugin PreStartContainer rpc failed with err: {error}") from error

    def _find(self, pod_uid: str, name: str) -> tuple[Pod | None, Mapping[str, Any] | None]:
        for pod in self._admission.active():
            if uid_of(pod) == pod_uid:
                both = (*init_containers_of(pod), *containers_of(pod))
                return pod, next((container for container in both if container["name"] == name), None)
        return None, None

    # Looking.

    def node_resources(self) -> dict[str, tuple[int, int]]:
        """Resource -> (capacity, allocatable), to be merged over what the node shows (section 2).

        A resource whose plugin is gone for more than five minutes is forgotten here and shown as (0, 0) for as long
        as this kubelet lives.
        """
        return self._ledger.numbers()

    def container_allocation(self, pod_uid: str, container: str) -> Allocation:
        """Return what the container gets, merged over its resources (section 9)."""
        return merged(held.allocation for held in self._ledger.holdings.of_container(pod_uid, container))

    def pod_devices(self, pod: Pod) -> PodDevices:
        """Return the pod's entry in podresources: sidecars and main containers, without init containers (section 7)."""
        sidecars = [c for c in init_containers_of(pod) if c.get("restartPolicy") == "Always"]
        names = [str(container["name"]) for container in (*sidecars, *containers_of(pod))]
        shown = tuple((name, self._container_devices(uid_of(pod), name)) for name in names)
        return PodDevices(name_of(pod), namespace_of(pod), shown)

    @property
    def holdings_version(self) -> int:
        """Another number once any container holds other devices."""
        return self._ledger.holdings.version

    def allocatable_devices(self) -> tuple[ContainerDevices, ...]:
        """Return all healthy devices, given out or not, one entry each."""
        inventory = self._ledger.inventory
        return tuple(
            ContainerDevices(resource, (device,), inventory.known(resource)[device].numa_nodes)
            for resource, healthy in inventory.registered().items()
            for device in healthy
        )

    def collect(self) -> Sequence[Pod]:
        """Free the devices of pods that are not active any more; the active ones. Lazy: at an admission with devices,
        and by List."""
        return self._admission.collect()

    def _container_devices(self, uid: str, container: str) -> tuple[ContainerDevices, ...]:
        held = self._ledger.holdings.of_container(uid, container)
        return tuple(device for holding in held for device in holding.devices())


def _unknown(desc: str) -> PluginError:
    return PluginError("Unknown", desc)
