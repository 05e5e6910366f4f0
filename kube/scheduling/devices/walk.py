"""In which order a request tries the devices of the pools that a node can use."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from mews.kube.scheduling.devices.inventory import OfferedDevice, Pool, refuse_invalid

Place = tuple[int, Pool, OfferedDevice]
"""A device with its pool and its number, counted from 1 on over all pools."""


class DeviceWalk:
    """The order of devices in one attempt. ``settled``: pools are judged as from 1.36 on."""

    def __init__(self, pools: Sequence[Pool], *, settled: bool) -> None:
        self._pools = pools
        self._settled = settled
        self._places: list[Place] | None = None

    def after(self, start: int) -> Iterable[Place]:
        """Return the devices behind the first ``start`` of all pools that are not passed over.

        Raises AllocationError for an invalid pool before 1.36, as it is reached.
        """
        if not self._settled:
            return itertools.islice(self._numbered(), start, None)
        if self._places is None:
            self._places = list(self._numbered())
        return self._places[start:] if start else self._places

    def _numbered(self) -> Iterator[Place]:
        place = 0
        for pool in self._pools:
            if is_passed_over(pool, settled=self._settled):
                continue
            for device in devices_of(pool):
                place += 1
                yield place, pool, device


def is_passed_over(pool: Pool, *, settled: bool) -> bool:
    """Return whether nothing of it can be had.

    Raises AllocationError for an invalid pool before 1.36.
    """
    if settled:
        return pool.incomplete or bool(pool.invalid)
    refuse_invalid(pool)
    return False


def devices_of(pool: Pool) -> Iterator[OfferedDevice]:
    """Yield all of its devices, slice by slice."""
    for each in pool.slices:
        yield from each.devices
