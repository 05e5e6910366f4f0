"""The text of ``kubelet_internal_checkpoint`` (contract kubelet.md section 6; upstream devicemanager/checkpoint).

The checksum is FNV-32a of the data printed in the form of Go's spew; verified on the real files in
``kubelet-1.34/``.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from mews.kube.emulated.kubelet.devices.errors import CheckpointError
from mews.kube.emulated.kubelet.devices.holdings import Holding
from mews.kube.emulated.kubelet.devices.wire import decode, encode

CORRUPTED = "checkpoint is corrupted"
MISSING = "checkpoint is not found"
NO_TEXT = "unexpected end of JSON input"


class Checkpoint(Struct, frozen=True):
    """All that survives a kubelet: who holds what, and the healthy IDs of each registered resource."""

    holdings: tuple[Holding, ...] = ()
    registered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def to_text(checkpoint: Checkpoint) -> str:
    """Return the file's content: one line of JSON without a newline at its end."""
    entries = [_entry(holding) for holding in checkpoint.holdings]
    registered = {name: list(ids) for name, ids in sorted(checkpoint.registered.items())}
    data = {"PodDeviceEntries": entries or None, "RegisteredDevices": registered}
    return json.dumps({"Data": data, "Checksum": checksum(data)}, separators=(",", ":"), ensure_ascii=False)


def from_text(text: str) -> Checkpoint:
    """Read a checkpoint from the file's content.

    Raises CheckpointError: a JSON error, or "checkpoint is corrupted" for a wrong checksum or shape.
    """
    if not text.strip():
        raise CheckpointError(NO_TEXT)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise CheckpointError(f"{error.msg} at character {error.pos}") from error
    try:
        data = content["Data"]
        if checksum(data) != content["Checksum"]:
            raise CheckpointError(CORRUPTED)
        holdings = tuple(_holding(entry) for entry in data["PodDeviceEntries"] or ())
        registered = {name: tuple(ids or ()) for name, ids in (data["RegisteredDevices"] or {}).items()}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(CORRUPTED) from error
    return Checkpoint(holdings, registered)


def checksum(data: Mapping[str, Any]) -> int:
    """Return the ``Checksum`` of a file's ``Data``."""
    return fnv32a(spew(data).encode())


def fnv32a(data: bytes) -> int:
    """Hash bytes with FNV-1a, 32 bits, as the kubelet's checksums are made."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def spew(data: Mapping[str, Any]) -> str:
    """Return the data as Go's spew prints it for hashing: one line, types named, maps sorted by key."""
    entries = data["PodDeviceEntries"]
    registered = data["RegisteredDevices"]
    listed = "<nil>" if entries is None else _listed(map(_spew_entry, entries))
    known = "<nil>" if registered is None else _mapped((name, registered[name]) for name in sorted(registered))
    return (
        f"(checkpoint.checkpointData){{PodDeviceEntries:([]checkpoint.PodDevicesEntry){listed} "
        f"RegisteredDevices:(map[string][]string){known}}}"
    )


def _spew_entry(entry: Mapping[str, Any]) -> str:
    by_numa = entry["DeviceIDs"]
    pairs = "<nil>" if by_numa is None else _mapped((node, by_numa[node]) for node in sorted(by_numa, key=int))
    response = entry["AllocResp"]
    answered = "<nil>" if response is None else _listed(map(str, base64.b64decode(response, validate=True)))
    return (
        f"{{PodUID:(string){entry['PodUID']} ContainerName:(string){entry['ContainerName']} "
        f"ResourceName:(string){entry['ResourceName']} DeviceIDs:(checkpoint.DevicesPerNUMA){pairs} "
        f"AllocResp:([]uint8){answered}}}"
    )


def _mapped(pairs: Iterable[tuple[str, Iterable[str] | None]]) -> str:
    return "map" + _listed(f"{key}:{'<nil>' if ids is None else _listed(ids)}" for key, ids in pairs)


def _listed(items: Iterable[str]) -> str:
    return "[" + " ".join(items) + "]"


def _entry(holding: Holding) -> dict[str, Any]:
    return {
        "PodUID": holding.pod_uid,
        "ContainerName": holding.container,
        "ResourceName": holding.resource,
        "DeviceIDs": {str(node): list(ids) for node, ids in sorted(holding.by_numa.items())},
        "AllocResp": base64.b64encode(encode(holding.allocation)).decode(),
    }


def _holding(entry: Mapping[str, Any]) -> Holding:
    by_numa = {int(node): tuple(ids or ()) for node, ids in (entry["DeviceIDs"] or {}).items()}
    try:
        answered = base64.b64decode(entry["AllocResp"] or "", validate=True)
    except binascii.Error as error:
        raise CheckpointError(CORRUPTED) from error
    return Holding(entry["PodUID"], entry["ContainerName"], entry["ResourceName"], by_numa, decode(answered))
