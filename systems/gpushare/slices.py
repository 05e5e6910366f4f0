"""Memory as devices: each unit of a GPU's memory is a device ``<UUID>-_-<j>`` of the kubelet's list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mews.kube.deviceplugin.port import HEALTHY, UNHEALTHY, PluginDevice
from mews.kube.system.nvml import ListedGpu
from mews.systems.gpushare.config import AUTO, UNITS
from mews.systems.gpushare.errors import GpuShareConfigError
from mews.systems.gpushare.policy import SharedGpu

MARK = "-_-"
LIST_LIMIT = 4 * 1024 * 1024
"""The longest message that a kubelet takes: gRPC's default (google.golang.org/grpc MaxCallRecvMsgSize)."""
_HEALTH = 2 + len(UNHEALTHY)
"""Bytes of a device's health on the wire, at its longest: all GPUs may break."""


def slice_id(uuid: str, number: int) -> str:
    """Return the ID of one unit of a GPU."""
    return f"{uuid}{MARK}{number}"


def gpu_of_slice(device: str) -> str:
    """Return the UUID of the GPU that a device is a part of; "" for a device of others."""
    uuid, mark, number = device.rpartition(MARK)
    return uuid if mark and number.isdigit() else ""


def slices(gpu: SharedGpu) -> list[PluginDevice]:
    """Return all units of a GPU, without topology hints: they would make long lists longer still."""
    health = HEALTHY if gpu.usable else UNHEALTHY
    return [PluginDevice(slice_id(gpu.uuid, number), health) for number in range(gpu.memory)]


def units_of(memory_mib: int, unit: str) -> int:
    """Whole units in that much memory."""
    return memory_mib // UNITS[unit]


def list_bytes(gpus: Iterable[tuple[str, int]]) -> int:
    """Return how long a ListAndWatchResponse is on the wire, given UUID and units of each GPU."""
    total = 0
    for uuid, units in gpus:
        done, digits = 0, 1
        while done < units:
            upto = min(units, 10**digits)
            body = _field(len(uuid) + len(MARK) + digits) + _HEALTH
            total += (upto - done) * _field(body)
            done, digits = upto, digits + 1
    return total


def _field(length: int) -> int:
    """Return a length-delimited field: tag, varint of its length, and itself."""
    return 1 + max((length.bit_length() + 6) // 7, 1) + length


def choose_unit(wanted: str, gpus: Sequence[ListedGpu]) -> str:
    """Return the unit to announce: the one that is wanted, or with ``auto`` the finest whose list a kubelet takes.

    Raises GpuShareConfigError, one line, where none will do.
    """
    sizes = {unit: _size(gpus, unit) for unit in (UNITS if wanted == AUTO else (wanted,))}
    for unit, size in sizes.items():
        if size <= LIST_LIMIT:
            return unit
    finer = min(sizes.values())
    fitting = [unit for unit in UNITS if _size(gpus, unit) <= LIST_LIMIT]
    raise GpuShareConfigError(
        f"unit {wanted}: the device list of {len(gpus)} GPUs has {finer} bytes, and a kubelet takes {LIST_LIMIT}; "
        f"must be {' or '.join((*fitting, AUTO)) if fitting else 'fewer GPUs'}"
    )


def _size(gpus: Sequence[ListedGpu], unit: str) -> int:
    return list_bytes((gpu.uuid, units_of(gpu.memory_mib, unit)) for gpu in gpus)
