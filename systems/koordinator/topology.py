"""Where GPUs are found on a node by its tree of NUMA nodes and PCIe switches, partly used parts first. Pure.

Upstream's allocator (v1.6.0, pkg/scheduler/plugins/deviceshare/allocator_gpu.go, allocateFromScope): the smallest scope
that has enough GPUs; of scopes of one size the one of which more of the scopes around it are partly used; then the one
with the lowest id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from mews.systems.koordinator.devices import DevicePlace, NodeDevice
from mews.systems.koordinator.hints import Scope

LEVELS: Mapping[Scope, int] = {"": 0, "Node": 1, "NUMANode": 2, "PCIe": 3, "Device": 3}
"""How narrow a scope is. Upstream has Device as 4, which no scope of its tree reaches: the GPU alone is meant."""


class GpuScope(Struct, frozen=True):
    """A part of a node's GPUs: all of them, those of a NUMA node or those below a switch; minors in order."""

    level: int
    minors: tuple[int, ...]
    parts: tuple[GpuScope, ...] = ()


class GpuNeed(Struct, frozen=True):
    """How many GPUs, whether a part of one, and the narrowest level that must hold them."""

    count: int
    shared: bool = False
    level: int = 0


class _Found(Struct, frozen=True):
    minors: tuple[int, ...]
    depth: int
    partly_used: int


def tree_of(gpus: Collection[NodeDevice]) -> GpuScope | None:
    """Return the tree of all GPUs of a node, ill ones as well; None where the place of any is not known."""
    if not gpus or any(gpu.place == DevicePlace() for gpu in gpus):
        return None
    nodes = []
    for numa in sorted({gpu.place.numa for gpu in gpus}):
        near = [gpu for gpu in gpus if gpu.place.numa == numa]
        below = [
            GpuScope(LEVELS["PCIe"], _minors(gpu for gpu in near if gpu.place.pcie == pcie))
            for pcie in sorted({gpu.place.pcie for gpu in near})
        ]
        nodes.append(GpuScope(LEVELS["NUMANode"], _minors(near), tuple(below)))
    return GpuScope(LEVELS["Node"], _minors(gpus), tuple(nodes))


def _minors(gpus: Iterable[NodeDevice]) -> tuple[int, ...]:
    return tuple(sorted(gpu.minor for gpu in gpus))


def minors_in(tree: GpuScope, need: GpuNeed, *, fitting: Collection[int], used: Collection[int]) -> tuple[int, ...]:
    """Return the minors that the pod gets; () where no scope has enough of those that fit."""
    found = _search(tree, need, frozenset(fitting), frozenset(used), 0, 0)
    return found.minors if found is not None else ()


def _search(
    scope: GpuScope, need: GpuNeed, fitting: frozenset[int], used: frozenset[int], depth: int, partly_used: int
) -> _Found | None:
    if len(scope.minors) < need.count:
        return None
    depth += 1
    partly_used += not used.isdisjoint(scope.minors)
    best: _Found | None = None
    for part in scope.parts:
        found = _search(part, need, fitting, used, depth, partly_used)
        if found is not None and (best is None or _rank(found) > _rank(best)):
            best = found
    if best is not None:
        return best
    if need.level > scope.level:
        return None
    minors = [minor for minor in scope.minors if minor in fitting]
    if len(minors) < need.count:
        return None
    # A part of a GPU goes to the last that fits: upstream compares the scores of GPUs with one that never changes.
    return _Found(tuple(minors[-1:] if need.shared else minors[: need.count]), depth, partly_used)


def _rank(found: _Found) -> tuple[int, int]:
    return found.depth, found.partly_used
