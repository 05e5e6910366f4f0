"""Which GPU of a node a pod's memory comes from: pure decisions (contract gpushare.md sections 2 and 3).

Amounts are in the units that the device plugin announces (MiB, 256 MiB or GiB): the same everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

TOO_FULL = "Insufficient GPU Memory in one device"


def not_shared(node: str) -> str:
    """Return why a node without shared GPUs is left out."""
    return f"The node {node} is not for GPU share, need skip"


class SharedGpu(Struct, frozen=True):
    """One GPU of a node as its device plugin reports it; ``usable``: healthy, and nobody has asked for it back."""

    index: int
    uuid: str
    memory: int
    usable: bool = True


class GpuUse(Struct, frozen=True):
    """Part of a GPU that a live pod was given. ``uuid`` is "" where only the index is known, as the public extender
    leaves it."""

    pod: str
    index: int
    uuid: str
    memory: int


def without(gpus: Sequence[SharedGpu], withheld: Collection[str]) -> Sequence[SharedGpu]:
    """Return the same GPUs, of which those of these UUIDs are not usable."""
    return tuple(replace(gpu, usable=False) if gpu.uuid in withheld else gpu for gpu in gpus) if withheld else gpus


def gpu_of(use: GpuUse, gpus: Sequence[SharedGpu]) -> SharedGpu | None:
    """Return the GPU that a pod uses: by UUID, since indices change with the cards; None for one that is not there."""
    if use.uuid:
        return next((gpu for gpu in gpus if gpu.uuid == use.uuid), None)
    return next((gpu for gpu in gpus if gpu.index == use.index), None)


def used_memory(gpus: Sequence[SharedGpu], uses: Iterable[GpuUse]) -> dict[str, int]:
    """UUID -> memory that live pods were given of it."""
    used = dict.fromkeys((gpu.uuid for gpu in gpus), 0)
    for use in uses:
        gpu = gpu_of(use, gpus)
        if gpu is not None:
            used[gpu.uuid] += use.memory
    return used


def free_memory(gpus: Sequence[SharedGpu], used: Mapping[str, int]) -> dict[str, int]:
    """UUID -> memory that may still be given: none of a GPU that is not usable, and never less than none."""
    return {gpu.uuid: max(gpu.memory - used.get(gpu.uuid, 0), 0) if gpu.usable else 0 for gpu in gpus}


def best_fit(request: int, gpus: Sequence[SharedGpu], free: Mapping[str, int]) -> SharedGpu | None:
    """Return the GPU with the least free memory that is enough; of equals the one of the lowest index. None where none
    is."""
    fitting = [gpu for gpu in gpus if gpu.usable and free[gpu.uuid] >= request]
    return min(fitting, key=lambda gpu: (free[gpu.uuid], gpu.index), default=None)


def largest_free(gpus: Sequence[SharedGpu], uses: Iterable[GpuUse]) -> int | None:
    """Return the most memory that can still be had of one GPU; None on a node that shares none."""
    return max(free_memory(gpus, used_memory(gpus, uses)).values(), default=None)


def refusal(node: str, request: int, largest: int | None) -> str:
    """Return why a node is filtered out, given the most that one of its GPUs has free; "" where that is enough."""
    if largest is None:
        return not_shared(node)
    return "" if largest >= request else TOO_FULL
