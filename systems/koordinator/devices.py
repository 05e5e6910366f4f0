"""A node's Device object, read once and written: frozen values (contract koordinator.md section 1).

Links between devices are an annotation of the Device (``names.LINKS``): upstream's definition of the kind drops fields
that it does not know. They read::

    {"gpu": [{"minors": [0, 1], "link": "NV2", "bandwidth": 51560}]}

``bandwidth`` is in MB/s, whole. A pair that is not named has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, annotations_of, labels_of, name_of
from mews.kube.api.quantities import canonical, whole
from mews.systems.koordinator.errors import BadDeviceError
from mews.systems.koordinator.names import (
    CHECKPOINTS,
    DEVICES,
    FOUND,
    LINKS,
    MEMORY,
    OLD_CHECKPOINTS,
    PARTITION_POLICY,
    PARTITIONS,
    WELL_PLANNED,
    first_of,
    today,
)

Amounts = Mapping[str, int]
"""Resource, by its name of today -> amount: hundredths of a device, bytes of memory."""


class DevicePlace(Struct, frozen=True):
    """Where a device is on its node: socket, NUMA node (below 0: unknown), the PCIe switch that it is below, its bus
    address. "" where it is not known."""

    socket: int = -1
    numa: int = -1
    pcie: str = ""
    bus: str = ""

    def may_be_near(self, other: DevicePlace) -> bool:
        """Return whether both are below one switch, for all that is known: a place that is not known may be any."""
        return self.pcie == other.pcie or not (self.pcie and other.pcie)


@dataclass(frozen=True, slots=True)
class NodeVirtualFunction:
    """One virtual function of a device, with the labels of its group."""

    minor: int
    bus: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class NodeDevice:
    """One device of a node. ``resources`` is all that it has, by today's names; ``id`` is its UUID."""

    type: str
    minor: int = 0
    id: str = ""
    health: bool = False
    resources: Amounts = field(default_factory=dict, hash=False)
    place: DevicePlace = DevicePlace()  # noqa: RUF009 a frozen value
    functions: tuple[NodeVirtualFunction, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)


class DeviceLink(Struct, frozen=True):
    """How fast two devices of one type reach each other: MB/s. ``word`` as ``nvidia-smi topo -m`` has it."""

    type: str
    minors: tuple[int, int]
    bandwidth: int
    word: str = ""


class GpuPartition(Struct, frozen=True):
    """GPUs that may be given together; the higher the ``score`` the sooner."""

    minors: tuple[int, ...]
    score: int = 0
    bandwidth: int = 0
    """Of the ring in bytes/s; 0 where it is not said."""


class CheckpointEntry(Struct, frozen=True):
    """Devices that a container holds without our scheduler, by the kubelet's checkpoint or by its environment."""

    pod_uid: str
    container: str
    resource: str
    ids: tuple[str, ...]
    response: str = ""
    """``allocResp`` in base64, "" where it is not known."""


class NodeDeviceReport(Struct, frozen=True):
    """All that a node's Device object says."""

    node: str
    devices: tuple[NodeDevice, ...] = ()
    links: tuple[DeviceLink, ...] = ()
    partitions: tuple[GpuPartition, ...] = ()
    honours_partitions: bool = False
    """Whether nothing but partitions may be given (label ``gpu-partition-policy: Honor``)."""
    held: tuple[CheckpointEntry, ...] = ()
    found: tuple[CheckpointEntry, ...] = ()
    well_planned: bool = False
    """Whether a node is chosen by the first type alone of types that belong together (``names.WELL_PLANNED``)."""

    def of_type(self, kind: str) -> tuple[NodeDevice, ...]:
        """Return the devices of one type, by their minors."""
        return tuple(sorted((d for d in self.devices if d.type == kind), key=lambda d: d.minor))


# ------------------------------------------------------------------------------------------------------------- reading


def parse(obj: Object) -> NodeDeviceReport:
    """Return what a Device object says, the seed's spellings included.

    Raises BadDeviceError.
    """
    where = f"Device {name_of(obj)}"
    notes = annotations_of(obj)
    listed = a_list(an_object(obj.get("spec"), f"{where}: spec").get("devices"), f"{where}: spec.devices")
    devices = tuple(_device(each, f"{where}: spec.devices[{i}]") for i, each in enumerate(listed))
    seen: set[tuple[str, int]] = set()
    for i, device in enumerate(devices):
        if (device.type, device.minor) in seen:
            raise BadDeviceError(f"{where}: spec.devices[{i}].minor: {device.minor}: of another {device.type} already")
        seen.add((device.type, device.minor))
    entries = {key: parse_checkpoints(notes.get(key, ""), f"{where}: {key}") for key in _CHECKPOINT_NOTES}
    return NodeDeviceReport(
        node=name_of(obj),
        devices=devices,
        links=_links(notes.get(LINKS, ""), f"{where}: {LINKS}"),
        partitions=_partitions(notes.get(PARTITIONS, ""), f"{where}: {PARTITIONS}"),
        honours_partitions=partition_policy(obj, where),
        held=tuple(dict.fromkeys((*entries[CHECKPOINTS], *entries[OLD_CHECKPOINTS]))),
        found=entries[FOUND],
        well_planned=labels_of(obj).get(WELL_PLANNED) == "true",
    )


def partition_policy(obj: Object, where: str) -> bool:
    """Return whether nothing but partitions may be given, by the labels of a Device or Node.

    Raises BadDeviceError.
    """
    policy = labels_of(obj).get(PARTITION_POLICY, "")
    if policy not in ("", "Honor", "Prefer"):
        raise BadDeviceError(f"{where}: {PARTITION_POLICY}: {policy!r}: must be Honor or Prefer")
    return policy == "Honor"


_CHECKPOINT_NOTES = (CHECKPOINTS, OLD_CHECKPOINTS, FOUND)


def amounts(quantities: Mapping[str, Any] | None, where: str) -> dict[str, int]:
    """Quantities by today's names.

    Raises BadDeviceError for one that is none, or is below 0.
    """
    found = {}
    for name, quantity in an_object(quantities, where).items():
        try:
            value = whole(quantity)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise BadDeviceError(f"{where}.{name}: {error}") from None
        if value < 0:
            raise BadDeviceError(f"{where}.{name}: {quantity}: must not be below 0")
        found[today(name)] = value
    return found


def quantities(given: Amounts) -> dict[str, str]:
    """Amounts as the API writes them: memory with the largest binary suffix that loses nothing."""
    return {
        name: canonical(f"{value // 1024}Ki") if name == MEMORY and value and value % 1024 == 0 else str(value)
        for name, value in given.items()
    }


def _device(value: Any, where: str) -> NodeDevice:
    listed = an_object(value, where)
    kind = first_of(listed, "type", "deviceType")
    if not isinstance(kind, str) or not kind:
        raise BadDeviceError(f"{where}.type: {_short(kind)}: must be a type of device")
    minor = a_number(listed.get("minor") or 0, f"{where}.minor")
    if minor < 0:
        raise BadDeviceError(f"{where}.minor: {minor}: must not be below 0")
    place = an_object(listed.get("topology"), f"{where}.topology")
    resources = first_of(listed, "resources", "resource", "resouurces")
    return NodeDevice(
        type=kind,
        minor=minor,
        id=str(listed.get("id") or ""),
        health=listed.get("health") is True,
        resources=amounts(resources, f"{where}.resources"),
        place=DevicePlace(
            a_number(place.get("socketID", -1), f"{where}.topology.socketID"),
            a_number(place.get("nodeID", -1), f"{where}.topology.nodeID"),
            "" if place.get("pcieID") is None else str(place["pcieID"]),
            str(place.get("busID") or ""),
        ),
        functions=tuple(
            NodeVirtualFunction(
                a_number(each.get("minor") or 0, f"{where}.vfGroups.vfs.minor"),
                str(each.get("busID") or ""),
                _labels(group.get("labels"), f"{where}.vfGroups.labels"),
            )
            for group in _objects(listed.get("vfGroups"), f"{where}.vfGroups")
            for each in _objects(group.get("vfs"), f"{where}.vfGroups.vfs")
        ),
        labels=_labels(listed.get("labels"), f"{where}.labels"),
    )


def _objects(value: Any, where: str) -> Iterable[Mapping[str, Any]]:
    return (an_object(each, where) for each in a_list(value, where))


def _labels(value: Any, where: str) -> dict[str, str]:
    return {str(key): str(text) for key, text in an_object(value, where).items()}


def parsed_json(text: str, where: str) -> Any:
    """Return a JSON text.

    Raises BadDeviceError where it is none.
    """
    try:
        return json.loads(text)
    except (ValueError, TypeError) as error:
        raise BadDeviceError(f"{where}: {error}: must be JSON") from None
    except RecursionError:
        raise BadDeviceError(f"{where}: is nested too deeply: must be JSON") from None


def an_object(value: Any, where: str) -> Mapping[str, Any]:
    """Return an object, or {} for what is not there.

    Raises BadDeviceError.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadDeviceError(f"{where}: {_short(value)}: must be an object")
    return value


def a_list(value: Any, where: str) -> Sequence[Any]:
    """Return a list, or () for what is not there.

    Raises BadDeviceError.
    """
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)):
        raise BadDeviceError(f"{where}: {_short(value)}: must be a list")
    return value


def a_number(value: Any, where: str) -> int:
    """Return a whole number.

    Raises BadDeviceError.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadDeviceError(f"{where}: {_short(value)}: must be a whole number")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _links(text: str, where: str) -> tuple[DeviceLink, ...]:
    if not text:
        return ()
    found: list[DeviceLink] = []
    by_type = parsed_json(text, where)
    try:
        for kind, links in by_type.items():
            for link in links:
                low, high = sorted(link["minors"])
                bandwidth = a_number(link["bandwidth"], f"{where}.bandwidth")
                found.append(DeviceLink(kind, (low, high), bandwidth, str(link.get("link") or "")))
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, BadDeviceError):
            raise
        raise BadDeviceError(f"{where}: must be {{type: [{{minors: [a, b], bandwidth: MB/s}}]}}") from None
    return tuple(found)


def _partitions(text: str, where: str) -> tuple[GpuPartition, ...]:
    if not text:
        return ()
    found: list[GpuPartition] = []
    by_count = parsed_json(text, where)
    try:
        for count, partitions in by_count.items():
            for each in partitions:
                minors = tuple(sorted(a_number(minor, f"{where}.minors") for minor in each["minors"]))
                if len(minors) != int(count):
                    raise BadDeviceError(f"{where}: {list(minors)}: must be {count} GPUs")
                ring = whole(each.get("ringBusBandwidth") or 0)
                score = a_number(each.get("allocationScore") or 0, f"{where}.allocationScore")
                found.append(GpuPartition(minors, score, ring))
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, BadDeviceError):
            raise
        raise BadDeviceError(f"{where}: must be {{count: [{{minors: […], allocationScore: n}}]}}") from None
    return tuple(found)


def parse_checkpoints(text: str, where: str = CHECKPOINTS) -> tuple[CheckpointEntry, ...]:
    """Entries of an annotation of ``PodDevicesEntry``.

    Raises BadDeviceError.
    """
    if not text:
        return ()
    listed = parsed_json(text, where)
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise BadDeviceError(f"{where}: must be a list of entries")
    return tuple(
        CheckpointEntry(
            str(each.get("podUID") or ""),
            str(each.get("containerName") or ""),
            str(each.get("resourceName") or ""),
            tuple(str(one) for one in a_list(each.get("deviceIDs"), f"{where}[{index}].deviceIDs")),
            str(each.get("allocResp") or ""),
        )
        for index, each in enumerate(listed)
    )


# ------------------------------------------------------------------------------------------------------------- writing


def as_object(report: NodeDeviceReport) -> Object:
    """Return the Device object that says this, in today's names; a resourceVersion and status are not its business."""
    notes: dict[str, str] = {}
    if report.links:
        notes[LINKS] = links_text(report.links)
    if report.partitions:
        notes[PARTITIONS] = _partitions_text(report.partitions)
    if report.held:
        notes[CHECKPOINTS] = checkpoints_text(report.held)
    if report.found:
        notes[FOUND] = checkpoints_text(report.found)
    metadata: dict[str, Any] = {"name": report.node}
    labels = {PARTITION_POLICY: "Honor"} if report.honours_partitions else {}
    if report.well_planned:
        labels[WELL_PLANNED] = "true"
    if labels:
        metadata["labels"] = labels
    if notes:
        metadata["annotations"] = notes
    return {
        "apiVersion": DEVICES.api_version,
        "kind": DEVICES.kind,
        "metadata": metadata,
        "spec": {"devices": [device_object(device) for device in report.devices]},
    }


def device_object(device: NodeDevice) -> dict[str, Any]:
    """Return one entry of ``spec.devices``."""
    found: dict[str, Any] = {"type": device.type, "minor": device.minor, "health": device.health}
    if device.id:
        found["id"] = device.id
    if device.labels:
        found["labels"] = dict(device.labels)
    if device.resources:
        found["resources"] = quantities(device.resources)
    place = device.place
    if place != DevicePlace():
        found["topology"] = {"socketID": place.socket, "nodeID": place.numa, "pcieID": place.pcie}
        if place.bus:
            found["topology"]["busID"] = place.bus
    if device.functions:
        found["vfGroups"] = _groups(device.functions)
    return found


def _groups(functions: Iterable[NodeVirtualFunction]) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    for each in functions:
        labels = dict(each.labels)
        group = next((g for g in groups if g.get("labels", {}) == labels), None)
        if group is None:
            group = {"labels": labels, "vfs": []} if labels else {"vfs": []}
            groups.append(group)
        group["vfs"].append({"minor": each.minor, "busID": each.bus} if each.bus else {"minor": each.minor})
    return groups


def links_text(links: Sequence[DeviceLink]) -> str:
    """Return the annotation ``names.LINKS``."""
    by_type: dict[str, list[dict[str, Any]]] = {}
    for link in sorted(links, key=lambda link: (link.type, link.minors)):
        entry: dict[str, Any] = {"minors": list(link.minors), "bandwidth": link.bandwidth}
        if link.word:
            entry["link"] = link.word
        by_type.setdefault(link.type, []).append(entry)
    return _json(by_type)


def _partitions_text(partitions: Sequence[GpuPartition]) -> str:
    by_count: dict[str, list[dict[str, Any]]] = {}
    for each in partitions:
        entry: dict[str, Any] = {"minors": list(each.minors), "allocationScore": each.score}
        if each.bandwidth:
            entry["ringBusBandwidth"] = str(each.bandwidth)
        by_count.setdefault(str(len(each.minors)), []).append(entry)
    return _json(by_count)


def checkpoints_text(entries: Iterable[CheckpointEntry]) -> str:
    """Return the annotation ``names.CHECKPOINTS``."""
    listed = []
    for each in entries:
        entry: dict[str, Any] = {
            "podUID": each.pod_uid,
            "containerName": each.container,
            "resourceName": each.resource,
            "deviceIDs": list(each.ids),
        }
        if each.response:
            entry["allocResp"] = each.response
        listed.append(entry)
    return _json(listed)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
