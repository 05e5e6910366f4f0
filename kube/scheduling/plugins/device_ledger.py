"""Which devices are taken, by what is written, assumed and in flight (upstream allocateddevices.go, dra_manager.go).

An allocation in flight counts from Reserve until the API's answer is in the cache, from 1.37 on until PreBind has
succeeded or the pod is given up, so that no other pod's cycle gets the same device. It counts even if the claim is
deleted meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from mews.kube.api.objects import Object, key_of, uid_of, version_of
from mews.kube.api.quantities import parse
from mews.kube.api.resource_claims import DELETE_PROTECTION, results_of
from mews.kube.client.informer import Informer
from mews.kube.scheduling.devices.allocator import Taken
from mews.kube.scheduling.devices.inventory import DeviceId, PoolId
from mews.kube.scheduling.plugins.assumed_objects import AssumedObjects

_Held = list[tuple[DeviceId, Mapping[str, Decimal] | None]]


class DeviceLedger:
    """The claims of a cluster with what is in flight; ``shares``: whether devices may be held in part."""

    def __init__(self, claims: Informer, *, shares: bool) -> None:
        self._assumed = AssumedObjects(claims)
        self._informer = claims
        self._shares = shares
        self._in_flight: dict[str, Object] = {}
        self._held: dict[str, _Held] = {}
        self._users: dict[DeviceId, int] = {}
        self._shared: dict[DeviceId, list[Mapping[str, Decimal]]] = {}
        self._sums: dict[DeviceId, dict[str, Decimal]] = {}
        self._changes: dict[PoolId, int] = {}
        claims.on_change(self._changed)

    def claim(self, key: str) -> Object | None:
        """Return the claim as it is once what was written has been seen."""
        return self._assumed.get(key)

    def is_in_flight(self, uid: str) -> bool:
        """Return whether another pod's cycle is allocating the claim."""
        return uid in self._in_flight

    def begin(self, claim: Object, allocation: Mapping[str, Any]) -> None:
        """Count this allocation of the claim from now on."""
        metadata = dict(claim["metadata"])
        metadata["finalizers"] = [*metadata.get("finalizers", ()), DELETE_PROTECTION]
        status = {**(claim.get("status") or {}), "allocation": allocation}
        allocated = {**claim, "metadata": metadata, "status": status}
        self._in_flight[uid_of(claim)] = allocated
        self._count(uid_of(claim), allocated)

    def has_seen(self, claim: Object) -> bool:
        """Return whether the cache has the claim, in whatever state."""
        known = self._informer.at(key_of(claim))
        return known is not None and uid_of(known) == uid_of(claim)

    def claims(self) -> list[Object]:
        """Return all claims, each as ``claim`` has it."""
        return self._assumed.items()

    def end(self, claim: Object, written: Object | None) -> None:
        """The allocation is written, or given up. What was made for it meanwhile has a uid of its own."""
        self._in_flight.pop(uid_of(claim), None)
        if written is not None:
            self.wrote(written)
            if uid_of(written) != uid_of(claim):
                self._count(uid_of(claim), None)
        else:
            self._count(uid_of(claim), self._current(key_of(claim), uid_of(claim)))

    def wrote(self, claim: Object) -> None:
        """Take the answer to a write for the claim until the watch has it."""
        known = self._informer.at(key_of(claim))
        if known is not None and uid_of(known) == uid_of(claim) and version_of(known) < version_of(claim):
            self._assumed.assume(claim)
        if uid_of(claim) not in self._in_flight:
            self._count(uid_of(claim), self._current(key_of(claim), uid_of(claim)))

    def taken(self) -> Taken:
        """Return what nobody else may have."""
        for device in self._shared.keys() - self._sums.keys():
            sums: dict[str, Decimal] = {}
            for amounts in self._shared[device]:
                for name, amount in amounts.items():
                    sums[name] = sums.get(name, Decimal(0)) + amount
            self._sums[device] = sums
        return Taken(self._users.keys(), self._sums)

    def changes_of(self, pool: PoolId) -> int:
        """Return how often what is taken of the pool has changed."""
        return self._changes.get(pool, 0)

    def _current(self, key: str, uid: str) -> Object | None:
        claim = self._assumed.get(key)
        return claim if claim is not None and uid_of(claim) == uid else None

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and (new is None or uid_of(new) != uid_of(old)) and uid_of(old) not in self._in_flight:
            self._count(uid_of(old), None)
        if new is not None and uid_of(new) not in self._in_flight:
            self._count(uid_of(new), self._current(key_of(new), uid_of(new)))

    def _count(self, uid: str, claim: Object | None) -> None:
        held = list(self._holds(claim)) if claim is not None else []
        before = self._held.get(uid, [])
        if held == before:
            return
        for device, amounts in before:
            self._changed_devices(device)
            if amounts is not None:
                self._shared[device].remove(amounts)
                if not self._shared[device]:
                    del self._shared[device]
                continue
            self._users[device] -= 1
            if not self._users[device]:
                del self._users[device]
        for device, amounts in held:
            self._changed_devices(device)
            if amounts is not None:
                self._shared.setdefault(device, []).append(amounts)
            else:
                self._users[device] = self._users.get(device, 0) + 1
        self._held.pop(uid, None)
        if held:
            self._held[uid] = held

    def _changed_devices(self, device: DeviceId) -> None:
        pool = PoolId(device.driver, device.pool)
        self._changes[pool] = self._changes.get(pool, 0) + 1
        self._sums.pop(device, None)

    def _holds(self, claim: Object) -> _Held:
        """Return the devices of a claim, each with None for the whole of it; administrators' access takes nothing."""
        held: _Held = []
        for result in results_of(claim):
            if result.get("adminAccess"):
                continue
            amounts: Mapping[str, Decimal] | None = None
            if self._shares and result.get("shareID"):
                consumed = result.get("consumedCapacity") or {}
                amounts = {name: parse(amount) for name, amount in consumed.items()}
            held.append((DeviceId(result["driver"], result["pool"], result["device"]), amounts))
        return held
