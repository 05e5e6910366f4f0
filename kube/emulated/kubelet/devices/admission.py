"""Giving devices to the containers of one pod after the other (contract kubelet.md sections 3 and 4)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from mews.kube.api.objects import containers_of, init_containers_of, is_terminal, uid_of
from mews.kube.api.quantities import whole
from mews.kube.api.resource_claims import extended_mappings
from mews.kube.deviceplugin.port import PluginError
from mews.kube.emulated.kubelet.devices.allocations import DeviceAllocations
from mews.kube.emulated.kubelet.devices.choice import Choice, Need, begin, complete
from mews.kube.emulated.kubelet.devices.errors import (
    AdmissionRejectedError,
    CheckpointError,
    DeviceAllocationError,
    PreStartError,
)
from mews.kube.emulated.kubelet.devices.fit import check_fit
from mews.kube.emulated.kubelet.devices.holdings import kept_from_reuse, left_for_reuse
from mews.kube.emulated.kubelet.devices.order import shuffled

Pod = Mapping[str, Any]
Container = Mapping[str, Any]


class Admission:
    """Serial: one pod at a time, also pods without devices."""

    def __init__(
        self,
        ledger: DeviceAllocations,
        rng: random.Random,
        *,
        active_pods: Callable[[], Iterable[Pod]],
        node_allocatable: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._ledger = ledger
        self._rng = rng
        self._active_pods = active_pods
        self._node_allocatable = node_allocatable
        self._lock = asyncio.Lock()
        self._current = ""
        self._admitted: dict[str, None] = {}
        self._reusable: dict[str, tuple[str, ...]] = {}
        self._sees_pods = False

    async def admit(self, pod: Pod, running: Collection[str]) -> None:
        """All containers, init containers first.

        Raises AdmissionRejectedError.
        """
        async with self._lock:
            self._begin(pod)
            try:
                for container in (*init_containers_of(pod), *containers_of(pod)):
                    await self._admit_container(pod, container, running)
            except (DeviceAllocationError, CheckpointError, PluginError) as error:
                text = f"Allocate failed due to {error}, which is unexpected"
                raise AdmissionRejectedError("UnexpectedAdmissionError", text) from error
            finally:
                self._current = ""
            self._check_fit(pod)
            self._admitted[uid_of(pod)] = None

    async def admit_late(self, pod: Pod, container: Container) -> None:
        """A container of a running pod whose devices are unknown gets new ones.

        Raises PreStartError.
        """
        async with self._lock:
            self._begin(pod)
            try:
                await self._admit_container(pod, container, ())
            except (DeviceAllocationError, CheckpointError, PluginError) as error:
                raise PreStartError(str(error)) from error
            finally:
                self._current = ""

    def collect(self) -> list[Pod]:
        """Free the devices of pods that are not active any more; the active ones.

        Does nothing until this kubelet has seen a pod: right after its start it knows none, and all would seem ended.
        """
        active = self.active()
        self._sees_pods = self._sees_pods or bool(active) or bool(self._current)
        if self._sees_pods:
            self._ledger.collect((*map(uid_of, active), self._current))
        return active

    def active(self) -> list[Pod]:
        """Pods that may hold devices now."""
        return [pod for pod in self._active_pods() if not is_terminal(pod)]

    def _begin(self, pod: Pod) -> None:
        self._current, self._reusable = uid_of(pod), {}

    def _check_fit(self, pod: Pod) -> None:
        others = [other for other in self.active() if uid_of(other) in self._admitted]
        self._admitted = dict.fromkeys(uid_of(other) for other in others)
        ledger = self._ledger
        held = ledger.allocated if uid_of(pod) in ledger.holdings.pods() else {}
        check_fit(pod, others, self._node_allocatable(), held)

    async def _admit_container(self, pod: Pod, container: Container, running: Collection[str]) -> None:
        uid, name = uid_of(pod), str(container["name"])
        await self._allocate(pod, container, running)
        held = self._ledger.holdings.of_container(uid, name)
        is_init = any(init["name"] == name for init in init_containers_of(pod))
        reuse = left_for_reuse if is_init and container.get("restartPolicy") != "Always" else kept_from_reuse
        self._reusable = reuse(self._reusable, held)

    async def _allocate(self, pod: Pod, container: Container, running: Collection[str]) -> None:
        uid, name, limits = uid_of(pod), str(container["name"]), limits_of(container)
        of_claims = _of_claims(pod, name)
        collected = given = False
        for resource in shuffled(limits, self._rng):
            if not self._ledger.is_device(resource) or resource in of_claims:
                continue
            if not collected:
                self.collect()
                collected = True
            if name in running:
                continue
            required = whole(limits[resource])
            need = self._ledger.need(uid, name, resource, required=required, reusable=self._reusable)
            given = await self._serve(pod, need) or given
        if given:
            self._ledger.save()

    async def _serve(self, pod: Pod, need: Need) -> bool:
        """Choose and Allocate; whether anything was given."""
        choice = begin(need, self._rng)
        if choice is None:
            return False
        if choice.missing:
            choice = complete(choice, await self._preferred(need.resource, choice), self._rng)
        await self._give(pod, need, choice.chosen)
        return True

    async def _preferred(self, resource: str, choice: Choice) -> tuple[str, ...]:
        endpoint = self._ledger.endpoints.get(resource)
        if endpoint is None:
            raise DeviceAllocationError(f"endpoint not found in cache for a registered resource: {resource}")
        if not endpoint.wants_preference:
            return ()
        offered, fixed = shuffled(choice.available, self._rng), shuffled(choice.chosen, self._rng)
        return await endpoint.prefer(offered, fixed, choice.required)

    async def _give(self, pod: Pod, need: Need, chosen: tuple[str, ...]) -> None:
        """One call, one container. A failed call gives back what was chosen for it; an empty answer does not."""
        self._ledger.reserve(need.resource, chosen)
        try:
            endpoint = self._ledger.endpoints.get(need.resource)
            if endpoint is None:
                raise DeviceAllocationError(f"unknown Device Plugin {need.resource}")
            responses = await endpoint.allocate(shuffled(chosen, self._rng))
        except (PluginError, DeviceAllocationError):
            self._ledger.release()
            raise
        if not responses:
            self._ledger.abandon()
            raise DeviceAllocationError("no containers return in allocation response ")
        self._ledger.give(pod, need, chosen, responses[0])


def _of_claims(pod: Pod, container: str) -> set[str]:
    """Return the resources that the container has by a claim, though a plugin may have had them here before
    (isDRAExtendedResource of pkg/kubelet/cm/devicemanager/manager.go, from 1.35 on)."""
    return {each["resourceName"] for each in extended_mappings(pod) if each["containerName"] == container}


def limits_of(container: Container) -> Mapping[str, Any]:
    """Return a container's ``resources.limits``, empty when absent."""
    return (container.get("resources") or {}).get("limits") or {}
