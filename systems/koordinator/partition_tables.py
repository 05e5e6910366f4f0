"""Which GPUs may be given together by what a Node's labels say, where its Device has no table of its own. Pure.

Servers with eight Hopper GPUs behind NVSwitches are divided by NVIDIA's Fabric Manager into aligned halves, quarters
and eighths; cards of the same chips without switches (PCIe, NVL) are not.
"""

from __future__ import annotations

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
    """The table of a model, by the label ``names.GPU_MODEL``; () for one that has none."""
    words = model.removeprefix("NVIDIA-").split("-")
    switched = words[0] in _HOPPER_MODELS and not any(word in _WITHOUT_SWITCHES for word in words)
    return HOPPER if switched else ()


def with_node_table(report: NodeDeviceReport, table: tuple[GpuPartition, ...], *, honour: bool) -> NodeDeviceReport:
    """With what the Node's labels say of partitions; what the Device says itself comes first."""
    if report.partitions:
        return report
    return replace(report, partitions=table, honours_partitions=report.honours_partitions or honour)
