"""What the device manager knows: lists, endpoints, who holds what. Written by its parts; nothing here waits."""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from mews.kube.api.objects import key_of
from mews.kube.clock import Pace
from mews.kube.component import record
from mews.kube.deviceplugin.port import Allocation, PluginDevice, PluginOptions
from mews.kube.emulated.kubelet.devices.checkpoint import MISSING, Checkpoint
from mews.kube.emulated.kubelet.devices.checkpoint_store import CheckpointStore
from mews.kube.emulated.kubelet.devices.choice import Need
from mews.kube.emulated.kubelet.devices.endpoint import ResourceEndpoint
from mews.kube.emulated.kubelet.devices.errors import CheckpointError
from mews.kube.emulated.kubelet.devices.holdings import Holding, Holdings, per_numa
from mews.kube.emulated.kubelet.devices.inventory import Inventory
from mews.kube.emulated.kubelet.devices.order import shuffled, union, without
from mews.kube.emulated.kubelet.faults import DEVICES_IN_FLIGHT
from mews.kube.emulated.kubelet.kubelet_journal import KubeletJournal, silent

UNREADABLE = "Continue after failing to read checkpoint file. Device allocation info may NOT be up-to-date"

Pod = Mapping[str, Any]


class DeviceAllocations:
    """Restored from the checkpoint; make it inside the running loop.

    ``holdings`` is what the checkpoint holds; ``allocated`` also counts what is being given out right now.
    ``faults``: those of ``KUBELET_FAULTS`` that it has.
    """

    def __init__(
        self,
        store: CheckpointStore,
        pace: Pace,
        rng: random.Random,
        log: logging.Logger,
        note: KubeletJournal = silent,
        *,
        faults: Collection[str] = (),
    ) -> None:
        self._store = store
        self._note = note
        self._pace = pace
        self._rng = rng
        self._log = log
        self._keeps_in_flight = DEVICES_IN_FLIGHT not in faults
        self._in_flight: dict[str, tuple[str, ...]] = {}
        self._expired: dict[str, None] = {}
        saved = self._load()
        self.holdings = Holdings(saved.holdings)
        self.allocated = self.holdings.allocated()
        self.inventory = Inventory(tuple(saved.registered))
        self.endpoints = {resource: self._stopped(resource) for resource in saved.registered}

    # Plugins.

    def connected(self, endpoint: ResourceEndpoint) -> None:
        """Note that a plugin has registered for a resource."""
        self.endpoints[endpoint.resource] = endpoint
        self._note("registered", resource=endpoint.resource)

    def listed(self, resource: str, devices: tuple[PluginDevice, ...]) -> None:
        """A plugin sent its list; written to the checkpoint."""
        self.inventory.replace(resource, devices)
        self._try_to_save()
        capacity, healthy = self.inventory.numbers(resource)
        record(self._log, "devices-listed", resource=resource, capacity=capacity, healthy=healthy)
        fit = self.inventory.healthy(resource) or ()
        unfit = without(tuple(self.inventory.known(resource)), fit)
        self._note("devices", resource=resource, healthy=sorted(fit), unhealthy=sorted(unfit))

    def gone(self, resource: str) -> None:
        """A plugin's stream has ended: nothing of it is healthy."""
        endpoint = self.endpoints.get(resource)
        if endpoint is None:
            return
        self.inventory.fail(resource)
        endpoint.stop(self._pace.now(), self._rng)
        record(self._log, "plugin-gone", resource=resource)

    def numbers(self) -> dict[str, tuple[int, int]]:
        """Resource -> (capacity, allocatable); forgets resources whose plugin is gone for too long."""
        now_s, known = self._pace.now(), self.inventory.resources()
        late = [name for name in known if name not in self.endpoints or self.endpoints[name].expired(now_s)]
        for resource in late:
            self.inventory.forget(resource)
            self.endpoints.pop(resource, None)
            self._expired[resource] = None
            record(self._log, "resource-forgotten", resource=resource)
        if late:
            self._try_to_save()
        left = {resource: self.inventory.numbers(resource) for resource in self.inventory.resources()}
        return {**dict.fromkeys(self._expired, (0, 0)), **left}

    # Devices.

    def is_device(self, resource: str) -> bool:
        """Return whether a plugin has it, or a container holds some of it."""
        return self.inventory.healthy(resource) is not None or resource in self.allocated

    def need(
        self, pod_uid: str, container: str, resource: str, *, required: int, reusable: Mapping[str, tuple[str, ...]]
    ) -> Need:
        """Return what the choice for one container starts from."""
        held = self.holdings.of_resource(pod_uid, container, resource)
        return Need(
            pod_uid=pod_uid,
            container=container,
            resource=resource,
            required=required,
            held=held.ids if held else None,
            reusable=reusable.get(resource, ()),
            healthy=self.inventory.healthy(resource),
            allocated=self.allocated.get(resource, ()),
        )

    def reserve(self, resource: str, chosen: tuple[str, ...]) -> None:
        """These devices are being given out: they count as allocated until ``give``, ``release`` or ``abandon``."""
        self.allocated[resource] = union(self.allocated.get(resource, ()), chosen)
        self._in_flight = {resource: chosen}

    def release(self) -> None:
        """What was being given out is free again."""
        self._in_flight = {}
        self.allocated = self.holdings.allocated()

    def abandon(self) -> None:
        """Nobody got what was being given out; it stays allocated until the next collection, as upstream leaves it."""
        self._in_flight = {}

    def give(self, pod: Pod, need: Need, chosen: tuple[str, ...], allocation: Allocation) -> None:
        """The container holds these devices now."""
        self._in_flight = {}
        by_numa = per_numa(shuffled(chosen, self._rng), self.inventory.known(need.resource))
        self.holdings.put(Holding(need.pod_uid, need.container, need.resource, by_numa, allocation))
        fields = {"pod": need.pod_uid, "container": need.container, "resource": need.resource, "ids": list(chosen)}
        record(self._log, "devices-allocated", **fields)
        fields = {"container": need.container, "resource": need.resource, "devices": sorted(chosen)}
        self._note("allocated", pod=key_of(pod), uid=need.pod_uid, **fields)

    def collect(self, alive: Iterable[str]) -> None:
        """Free the devices of all pods but these. What an Allocate under way has reserved stays reserved: this is also
        called by List, at any moment."""
        ended = without(self.holdings.pods(), alive)
        if ended:
            self.holdings.forget(ended)
            self.allocated = self.holdings.allocated()
            for resource, chosen in self._in_flight.items() if self._keeps_in_flight else ():
                self.allocated[resource] = union(self.allocated.get(resource, ()), chosen)

    # The checkpoint.

    def save(self) -> None:
        """Write what is held and what is registered into the checkpoint.

        Raises CheckpointError.
        """
        self._store.save(Checkpoint(self.holdings.entries(), self.inventory.registered()))

    def _try_to_save(self) -> None:
        """A list counts, and a resource is forgotten, whether or not that can be written."""
        try:
            self.save()
        except CheckpointError as error:
            self._log.error("Writing checkpoint encountered err=%s", error)

    def _load(self) -> Checkpoint:
        try:
            return self._store.load()
        except CheckpointError as error:
            level = logging.INFO if str(error) == MISSING else logging.ERROR
            self._log.log(level, "%s err=%s", UNREADABLE, error)
            return Checkpoint()

    def _stopped(self, resource: str) -> ResourceEndpoint:
        """Return a resource of the checkpoint: its plugin counts as gone from now on."""
        endpoint = ResourceEndpoint(resource, None, PluginOptions())
        endpoint.stop(self._pace.now(), self._rng)
        return endpoint
