"""Counters that the devices of a pool share: a partition is free only while its counters suffice.

Source: checkAvailableCounters. Before 1.35 a counter set belongs to the slice with its devices, later to the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal

from mews.kube.api.quantities import parse
from mews.kube.scheduling.devices.inventory import DeviceId, OfferedDevice, Pool, PoolSlice

_Key = tuple[str, str]
_Ledger = dict[_Key, Decimal]


class Counters:
    """What is left of all counters, and what this attempt takes; ``is_taken`` knows earlier allocations."""

    def __init__(self, *, by_pool: bool, is_taken: Callable[[DeviceId], bool]) -> None:
        self._by_pool = by_pool
        self._is_taken = is_taken
        self._left: dict[object, _Ledger] = {}

    def take(self, device: OfferedDevice, pool: Pool) -> bool:
        """Return whether the device's counters suffice; then they are taken."""
        left = self._ledger(device, pool)
        wanted = _wanted(device)
        if any(left[key] < amount for key, amount in wanted.items() if key in left):
            return False
        for key, amount in wanted.items():
            if key in left:
                left[key] -= amount
        return True

    def give_back(self, device: OfferedDevice, pool: Pool) -> None:
        """Undo ``take``."""
        left = self._ledger(device, pool)
        for key, amount in _wanted(device).items():
            if key in left:
                left[key] += amount

    def _ledger(self, device: OfferedDevice, pool: Pool) -> _Ledger:
        scope: object = pool.id if self._by_pool else device.slice.name
        if scope not in self._left:
            slices: Iterable[PoolSlice] = (*pool.slices, *pool.others) if self._by_pool else (device.slice,)
            self._left[scope] = self._counted(list(slices))
        return self._left[scope]

    def _counted(self, slices: list[PoolSlice]) -> _Ledger:
        left = {
            (str(counter_set["name"]), str(name)): parse(counter["value"])
            for each in slices
            for counter_set in each.counter_sets
            for name, counter in (counter_set.get("counters") or {}).items()
        }
        for each in slices:
            for device in each.devices:
                if device.counters and self._is_taken(device.id):
                    for key, amount in _wanted(device).items():
                        if key in left:
                            left[key] -= amount
        return left


def _wanted(device: OfferedDevice) -> _Ledger:
    wanted: _Ledger = {}
    for taken in device.counters:
        for name, counter in (taken.get("counters") or {}).items():
            key = (str(taken["counterSet"]), str(name))
            wanted[key] = wanted.get(key, Decimal(0)) + parse(counter["value"])
    return wanted
