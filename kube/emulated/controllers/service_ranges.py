"""Marks each ServiceCIDR as ready, and keeps it while addresses are taken from it (pkg/controller/servicecidrs)."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, condition_of, is_deleting, key_of, labels_of, name_of, timestamp
from mews.kube.api.resources import IP_ADDRESSES, SERVICE_CIDRS
from mews.kube.client.port import Patch
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.syncing import MANAGER, SyncLoop

FINALIZER = "networking.k8s.io/service-cidr-finalizer"
_MANAGED_BY, _ALLOCATOR = "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"
_READY = {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes Service CIDR is ready"}
_TAKEN = {
    "type": "Ready",
    "status": "False",
    "reason": "Terminating",
    "message": "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new "
    "ServiceCIDR",
}


class ServiceRanges:
    """Component: one for a cluster."""

    def __init__(self, context: Context, *, informers: Informers) -> None:
        self._context = context
        self._kube = context.kube
        self._ranges = informers.of(SERVICE_CIDRS)
        self._addresses = informers.of(IP_ADDRESSES)
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._ranges.synced()
        await self._addresses.synced()
        self._ranges.on_change(self._range_changed)
        self._addresses.on_change(self._address_changed)
        await self._loop.run()

    def _range_changed(self, old: Object | None, new: Object | None) -> None:
        self._loop.add_changed(old, new)
        if old is None:
            self._look_at_deleted()  # the new one may hold the addresses of one that waits to go

    def _address_changed(self, _old: Object | None, new: Object | None) -> None:
        if new is None:
            self._look_at_deleted()

    def _look_at_deleted(self) -> None:
        for service_range in self._ranges.items():
            if is_deleting(service_range):
                self._loop.add(key_of(service_range))

    async def _sync(self, key: str) -> None:
        service_range = self._ranges.at(key)
        if service_range is None:
            return
        finalizers = service_range["metadata"].get("finalizers") or []
        if not is_deleting(service_range):
            if FINALIZER not in finalizers:
                await self._patch(service_range, {"metadata": {"finalizers": [*finalizers, FINALIZER]}})
            if condition_of(service_range, "Ready") is None:
                await self._note(service_range, _READY)
            return
        if FINALIZER not in finalizers:
            return
        if any(self._only_here(service_range)):
            await self._note(service_range, _TAKEN)
        else:
            left = [name for name in finalizers if name != FINALIZER]
            await self._patch(service_range, {"metadata": {"finalizers": left or None}})

    def _only_here(self, service_range: Object) -> Iterator[bool]:
        """Yield those of each address in the range that is the allocator's, that no other range holds it."""
        others = [each for each in self._ranges.items() if each is not service_range and not is_deleting(each)]
        for address in self._addresses.items():
            if labels_of(address).get(_MANAGED_BY) == _ALLOCATOR and _holds(service_range, name_of(address)):
                yield not any(_holds(other, name_of(address)) for other in others)

    async def _note(self, service_range: Object, condition: dict[str, Any]) -> None:
        known = condition_of(service_range, "Ready") or {}
        if known.get("status") == condition["status"]:
            return
        conditions = [{**condition, "lastTransitionTime": timestamp(self._context.clock.now())}]
        await self._patch(service_range, {"status": {"conditions": conditions}}, subresource="status")

    async def _patch(self, service_range: Object, body: dict[str, Any], subresource: str = "") -> None:
        try:
            await self._kube.patch(
                SERVICE_CIDRS, name_of(service_range), body, kind=Patch.MERGE, subresource=subresource,
                field_manager=MANAGER,
            )  # fmt: skip
        except NotFoundError:
            return


def _holds(service_range: Object, address: str) -> bool:
    place = ip_address(address)
    return any(place in ip_network(text) for text in (service_range.get("spec") or {}).get("cidrs") or ())
