"""What koordlet reports of a node: its Device object, resources, labels. Pure (contract koordinator.md section 2)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.system.nvml import NvmlDescription, NvmlReading
from mews.systems.koordinator.device_kinds import DeviceKind, kind_of
from mews.systems.koordinator.devices import (
    Amounts,
    CheckpointEntry,
    DevicePlace,
    NodeDevice,
    NodeDeviceReport,
    quantities,
)
from mews.systems.koordinator.gpu_health import GpuHealth
from mews.systems.koordinator.host_devices import HostDevice, by_bus, sysfs_address
from mews.systems.koordinator.links import gpu_links
from mews.systems.koordinator.names import (
    CORE,
    DOMAIN,
    GPU,
    GPU_DRIVER_VERSION,
    GPU_MODEL,
    GPU_PRODUCT,
    GPU_VENDOR,
    MEMORY,
    RATIO,
    SEED_NAMES,
    SHARED,
    WHOLE,
)

NOTHING_DESCRIBED = NvmlDescription()
FULL = 100
"""A whole device."""
_MIB = 1024 * 1024


class NodeReading(Struct, frozen=True):
    """What a look at the node found. ``nvml`` is None where NVML could not be read, or there is none."""

    nvml: NvmlReading | None = None
    described: NvmlDescription = NOTHING_DESCRIBED
    devices: tuple[HostDevice, ...] = ()
    withheld: frozenset[str] = frozenset()
    """UUIDs that are on their way out: unhealthy, whatever NVML says."""


class Occupancy(Struct, frozen=True):
    """What is held on the node: the ids in annotations of its pods, and the entries that go into the Device object."""

    ids: frozenset[str] = frozenset()
    held: tuple[CheckpointEntry, ...] = ()
    found: tuple[CheckpointEntry, ...] = ()


UNHELD = Occupancy()


def report(
    before: NodeDeviceReport,
    reading: NodeReading,
    health: GpuHealth,
    *,
    kinds: Sequence[DeviceKind],
    occupancy: Occupancy = UNHELD,
) -> NodeDeviceReport:
    """Return the next report after ``before``: minors stay, and what is gone is unhealthy first, and then, once nobody
    holds it, no longer there. While NVML does not answer, the GPUs stay as they were."""
    places = by_bus(reading.devices)
    if reading.nvml is None:
        gpus = [device for device in before.devices if device.type == GPU]
    else:
        gpus = _gpus(reading, health, places)
    others = _others(reading.devices, kinds, before.devices)
    gpus = [dataclasses.replace(gpu, health=gpu.health and gpu.id not in reading.withheld) for gpu in gpus]
    there = _unique((*gpus, *others))
    devices = (*there, *_departed(before.devices, there, occupancy.ids))
    minors = {device.id: device.minor for device in there if device.type == GPU}
    links = before.links if reading.nvml is None else gpu_links(reading.described, minors)
    return replace(
        before,
        devices=tuple(sorted(devices, key=lambda device: (device.type, device.minor))),
        links=links,
        held=occupancy.held,
        found=occupancy.found,
    )


def _gpus(reading: NodeReading, health: GpuHealth, places: Mapping[str, HostDevice]) -> list[NodeDevice]:
    assert reading.nvml is not None
    found = []
    for gpu in reading.nvml.gpus:
        bus = sysfs_address(gpu.bus_id)
        place = places[bus].place if bus in places else DevicePlace(bus=bus)
        found.append(
            NodeDevice(
                type=GPU,
                minor=gpu.minor,
                id=gpu.uuid,
                health=health.healthy(gpu),
                resources={CORE: FULL, MEMORY: gpu.memory_mib * _MIB, RATIO: FULL},
                place=place,
                labels=health.labels(gpu.uuid),
            )
        )
    return found


def _others(
    devices: Iterable[HostDevice], kinds: Sequence[DeviceKind], before: Sequence[NodeDevice]
) -> list[NodeDevice]:
    """Devices without a minor number of their own keep the one that they were first given: the lowest free."""
    known = {(device.type, device.id): device.minor for device in before}
    matched = [(device, kind) for device in devices if (kind := kind_of(device, kinds)) is not None]
    taken = {
        (kind.type, known[kind.type, _id(device)]) for device, kind in matched if (kind.type, _id(device)) in known
    }
    found = []
    for device, kind in matched:
        minor = known.get((kind.type, _id(device)))
        if minor is None:
            minor = next(n for n in range(len(matched) + len(taken) + 1) if (kind.type, n) not in taken)
            taken.add((kind.type, minor))
        found.append(
            NodeDevice(
                type=kind.type,
                minor=minor,
                id=_id(device),
                health=device.alive,
                resources={kind.resource_name: FULL},
                place=device.place,
                functions=device.functions,
            )
        )
    return found


def _id(device: HostDevice) -> str:
    return device.id or device.bus


def _unique(devices: Iterable[NodeDevice]) -> tuple[NodeDevice, ...]:
    """Return one device for each minor: of a lost GPU and its successor, whose driver gave it the number, the
    successor."""
    found: dict[tuple[str, int], NodeDevice] = {}
    for device in devices:
        key = (device.type, device.minor)
        if key not in found or not found[key].health:
            found[key] = device
    return tuple(found.values())


def _departed(
    before: Iterable[NodeDevice], there: Sequence[NodeDevice], held: Collection[str]
) -> tuple[NodeDevice, ...]:
    ids = {(device.type, device.id) for device in there}
    minors = {(device.type, device.minor) for device in there}
    return tuple(
        dataclasses.replace(device, health=False)
        for device in before
        if (device.type, device.id) not in ids
        and (device.type, device.minor) not in minors
        and (device.health or device.id in held)
    )


# ------------------------------------------------------------------------------------------------------------ the node


def node_amounts(devices: Iterable[NodeDevice], kinds: Iterable[DeviceKind] = ()) -> Amounts:
    """Return what the node has of each resource: the sums over its healthy devices, 0 of a kind whose devices are all
    broken; kinds of which it has no device are left out. ``koordinator.sh/gpu`` and ``koordinator.sh/gpu.shared`` are
    100 for each GPU (v1.6.0, pkg/slo-controller/noderesource/plugins/gpudeviceresource/plugin.go, calculate)."""
    names = {kind.resource_name for kind in kinds}
    found: dict[str, int] = {}
    for device in devices:
        if device.type == GPU:
            for name in (WHOLE, SHARED):
                found[name] = found.get(name, 0) + (FULL if device.health else 0)
        for name, amount in device.resources.items():
            if device.type == GPU or name in names or name.startswith(DOMAIN):
                found[name] = found.get(name, 0) + (amount if device.health else 0)
    return found


def node_resources(
    wanted: Amounts, there: Iterable[str], kinds: Iterable[DeviceKind], *, seed_names: bool
) -> dict[str, str]:
    """Return the node's resources as its status has them; those of ours that it shows (``there``) and has no more are
    0."""
    ours = {*SEED_NAMES, SHARED, *(kind.resource_name for kind in kinds)}
    given = quantities({**{name: 0 for name in there if name in ours and name not in wanted}, **wanted})
    if seed_names:
        given |= {SEED_NAMES[name]: value for name, value in list(given.items()) if name in SEED_NAMES}
    return given


def node_labels(described: NvmlDescription) -> dict[str, str]:
    """Return the node's labels: model and driver of its GPUs; none where it has no GPUs, no model where it has
    several."""
    if not described.gpus:
        return {}
    labels = {GPU_VENDOR: "nvidia"}
    if described.driver_version:
        labels[GPU_DRIVER_VERSION] = described.driver_version
    names = {gpu.name for gpu in described.gpus}
    if len(names) == 1 and (name := names.pop()):
        labels[GPU_MODEL] = name.removeprefix("NVIDIA ").replace(" ", "-")
        labels[GPU_PRODUCT] = name.replace(" ", "-")
    return labels
