"""The hardware file of a recording: what the chassis and the nodes showed, and comments for what is made up."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from msgspec import structs

from mews.emulator.hardware.inventory import ID
from mews.emulator.inventory.reading import parse_hardware
from mews.emulator.yaml_document import Place
from mews.harness.recording.cabling import Cabling
from mews.harness.recording.causes import RecordedView
from mews.harness.recording.histories import NodeHistory
from mews.harness.recording.observations import SeenDevice
from mews.harness.recording.tables import ChassisHistory
from mews.kube.api.quantities import whole

Comments = dict[Place, list[str]]
"""Places in a document -> the lines of comment before them."""

_MADE_UP = "made up: {what} was not recorded"
_UNNAMED = re.compile(r"[^A-Za-z0-9._:-]")


def hardware_of_recording(view: RecordedView, name: str) -> tuple[dict[str, Any], Comments]:
    """Return the document, and its comments by place. Without a chassis, one is made up from what the nodes offer.

    Raises HardwareError where no emulated hardware can be like that.
    """
    comments: Comments = {}
    hosts = [node for node in view.nodes if is_host(view, node)]
    document: dict[str, Any] = {
        "apiVersion": "mews/v1",
        "kind": "Hardware",
        "metadata": {"name": _name(name)},
        "profile": "instant",
        "hosts": [_host(node) for node in hosts],
        "chassis": [],
    }
    comments["profile",] = ["not known: how long this chassis takes; instant: no time at all"]
    if view.is_made_up:
        comments["chassis",] = [_MADE_UP.format(what="the chassis"), "its ports and devices follow what nodes offered"]
    for index, box in enumerate(view.chassis):
        spec, its = _chassis(view, box, index)
        document["chassis"].append(spec)
        comments |= {("chassis", index, *place): lines for place, lines in its.items()}
    known = {host["name"] for host in document["hosts"]}
    for number, box_spec in enumerate(document["chassis"]):
        for port, host in box_spec["ports"].items():
            if host is not None and host not in known:
                known.add(host)
                document["hosts"].append({"name": host})
                comments["chassis", number, "ports", port] = [_MADE_UP.format(what="which host this port is cabled to")]
    parse_hardware(document, "recording")
    return document, comments


def is_host(view: RecordedView, node: NodeHistory) -> bool:
    """Return whether the node has devices, is cabled, or runs one of the recorded pods; a control plane's own does
    not."""
    used = any(pod.node == node.name for pod in view.pods)
    return bool(node.offered.get(view.resource)) or used or bool(view.cabling.ports_of(node.name))


def _host(node: NodeHistory) -> dict[str, Any]:
    capacity = (node.obj.get("status") or {}).get("capacity") or {}
    found: dict[str, Any] = {"name": node.name}
    with_cpus = str(capacity.get("cpu", ""))
    if with_cpus.isdecimal() and 1 <= int(with_cpus) <= 4096:
        found["cpus"] = int(with_cpus)
    if capacity.get("memory"):
        found["memory_mib"] = max(1, whole(capacity["memory"]) >> 20)
    return found


def _chassis(view: RecordedView, box: ChassisHistory, index: int) -> tuple[dict[str, Any], Comments]:
    comments: Comments = {}
    if not view.cabling.certain:
        comments["ports",] = ["not certain: which host is at which port; several assignments explain the counts"]
    ports: dict[str, Any] = {}
    for port in box.ports:
        host = view.cabling.host(box.name, port)
        occupied = any(device.port == port for device in box.devices.values())
        ports[port] = host if host is not None else f"host-of-port-{port}-{box.name.lower()}" if occupied else None
    devices = [_device(row, number, view) for number, row in enumerate(box.devices.values())]
    comments["devices",] = ["not known: models and serial numbers; the default model is assumed"]
    for number, row in enumerate(box.devices.values()):
        if not row.uuid:
            comments["devices", number] = [_MADE_UP.format(what="the UUID of this device")]
        elif row.uuid and not ID.fullmatch(row.uuid):
            comments["devices", number] = ["the UUID holds characters that a hardware file does not take"]
    if not box.ports:
        comments["ports",] = ["not known: this dialect lists no ports, and no device was on one"]
    return {"name": box.name, "index": index, "ports": ports, "devices": devices}, comments


def _device(row: SeenDevice, number: int, view: RecordedView) -> dict[str, Any]:
    uuid = _UNNAMED.sub("-", row.uuid) or made_uuid(f"{number}-{row.device}")
    return {"id": row.device, "uuid": uuid, "kind": row.kind, "port": row.port}


def made_uuid(seed: str) -> str:
    """Return a GPU's UUID, always the same for the same text."""
    digits = hashlib.sha256(seed.encode()).hexdigest()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"


def with_made_up_chassis(view: RecordedView) -> RecordedView:
    """Return the same with a chassis that has a port for each host, and on it what the host's node offered at the
    start."""
    hosts = [node for node in view.nodes if is_host(view, node)]
    places = [str(place + 1) for place, node in enumerate(hosts) for _ in range(node.offers(view.resource, view.began))]
    rows = {
        f"{number << 8:06X}": SeenDevice(f"{number << 8:06X}", made_uuid(str(number)), port)
        for number, port in enumerate(places, start=1)
    }
    ports = tuple(str(place + 1) for place in range(len(hosts)))
    box = ChassisHistory("A", rows, ports, (), rows, dated=False)
    cables = {("A", port): node.name for port, node in zip(ports, hosts, strict=True)}
    return structs.replace(view, chassis=[box], cabling=Cabling(cables), is_made_up=True)


def _name(text: str) -> str:
    return re.sub(r"[^-a-z0-9.]", "-", text.lower()).strip("-.") or "recorded"
