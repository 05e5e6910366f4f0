"""Which devices a pod holds by its annotation, for the invariants of every run: no kubelet knows it."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object
from mews.kube.system.invariant import Held
from mews.systems.koordinator.allocations import DeviceAllocation, allocations_of
from mews.systems.koordinator.errors import BadDeviceError
from mews.systems.koordinator.names import DOMAIN, GPU, MEMORY, NVIDIA


def held_by_annotation(pod: Object) -> Iterator[Held]:
    """Yield them by type: what it has alone, and what it has a part of. Each container of a pod has all of it."""
    try:
        given = allocations_of(pod)
    except BadDeviceError:
        return
    for kind in sorted({each.type for each in given}):
        mine = [each for each in given if each.type == kind]
        yield Held(
            container="",
            resource=DOMAIN + kind,
            devices=tuple(_name(each) for each in mine if _is_whole(each)),
            parts_of=tuple(_name(each) for each in mine if not _is_whole(each)),
            instead_of=(NVIDIA,) if kind == GPU else (),  # the hook sets its variable over the device plugin's
        )


def _name(each: DeviceAllocation) -> str:
    return each.id or f"{each.type}/{each.minor}"


def _is_whole(each: DeviceAllocation) -> bool:
    shares = [value for name, value in each.resources.items() if name != MEMORY]
    return bool(shares) and min(shares) >= 100
