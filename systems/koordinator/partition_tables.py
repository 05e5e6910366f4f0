"""Which GPUs may be given together by what a Node's labels say, where its Device has no table of its own. Pure.

Servers with eight Hopper GPUs behind NVSwitches are divided by NVIDIA's Fabric Manager into aligned halves, quarters
and eighths; cards of the same chips without switches (PCIe, NVL) are not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from mews.systems.koordinator.devices import GpuPartition, NodeDeviceReport

_SERVER_GPUS = 8
HOPPER = tuple(
    GpuPartition(tuple(range(first, first + size)), 1)
    for size in (1, 2, 4, 8)
    for first in range(0, _SERVER_GPUS, size)
)
_HOPPER_MODELS = ("H100", "H800", "H20")
_WITHOUT_SWITCHES = ("PCIe", "NVL")


def table_of_model(model: str) -> tuple[GpuPartition, ...]:
    """Return the table of a model, by the label ``names.GPU_MODEL``; () for one that has none."""
    words = model.removeprefix("NVIDIA-").split("-")
    switched = words[0] in _HOPPER_MODELS and not any(word in _WITHOUT_SWITCHES for word in words)
    return HOPPER if switched else ()


def with_node_table(report: NodeDeviceReport, table: tuple[GpuPartition, ...], *, honour: bool) -> NodeDeviceReport:
    """Return it with what the Node's labels say of partitions. A Device with a table goes by its own label; else the
    Node's label alone counts, beside the table of its model, as upstream."""
    if report.partitions:
        return report
    return replace(report, partitions=table, honours_partitions=honour)


_WORTH: Mapping[int, int] = MappingProxyType({8: 10_000, 4: 100, 2: 1})


def left_whole(partitions: Sequence[GpuPartition], used: Collection[int], count: int) -> int:
    """Return what partitions of as many GPUs and more none of whose GPUs is used are worth, by size and score: of sets
    of GPUs that would do the one is given that leaves most (upstream v1.6.0, allocator_gpu.go,
    selectPartitionByBinPack).

    Of each size those of the highest score count; upstream means that too, but has the lowest first.
    """
    worth = 0
    for size, each_worth in _WORTH.items():
        of_size = [each for each in partitions if len(each.minors) == size >= count]
        highest = max((each.score for each in of_size), default=0)
        unused = (each for each in of_size if each.score == highest and not any(m in used for m in each.minors))
        worth += sum(each_worth * each.score for each in unused)
    return worth
