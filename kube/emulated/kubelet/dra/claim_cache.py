"""What a kubelet knows of prepared claims, and the file in which that survives it (contract: ``dra_manager_state``).

Source: pkg/kubelet/cm/dra/claiminfo.go and state/checkpoint.go of Kubernetes 1.34.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mews.kube.dra.port import PreparedDevice
from mews.kube.emulated.kubelet.dra.errors import DraCheckpointError

FILE_NAME = "dra_manager_state"
_KIND = {"kind": "DRACheckpoint", "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1"}


@dataclass(slots=True)
class ClaimInfo:
    """One claim: which pods use it here, and what each driver prepared. ``prepared`` is not kept over a restart;
    ``going``: its last pod is done, and no other may join. ``shared``: its devices (driver/pool/device) that other
    claims may have too."""

    uid: str
    name: str
    namespace: str
    pods: dict[str, None] = field(default_factory=dict)
    drivers: dict[str, tuple[PreparedDevice, ...] | None] = field(default_factory=dict)
    prepared: bool = False
    going: bool = False
    shared: frozenset[str] = frozenset()


class ClaimCache:
    """Claims by namespace and name."""

    def __init__(self) -> None:
        self.claims: dict[tuple[str, str], ClaimInfo] = {}

    def get(self, namespace: str, name: str) -> ClaimInfo | None:
        """Return the claim, None where it is not known."""
        return self.claims.get((namespace, name))

    def of_pod(self, pod_uid: str) -> list[ClaimInfo]:
        """Return the claims that a pod uses, in the order in which they came."""
        return [info for info in self.claims.values() if pod_uid in info.pods]

    def add(self, info: ClaimInfo) -> None:
        """Know a claim from now on."""
        self.claims[info.namespace, info.name] = info

    def drop(self, info: ClaimInfo) -> None:
        """Know it no longer."""
        self.claims.pop((info.namespace, info.name), None)

    def text(self) -> str:
        """Return the file's content."""
        entries = [_entry(info) for info in self.claims.values()]
        return checkpoint_text(entries)


def checkpoint_text(entries: list[dict[str, Any]] | None) -> str:
    """``entries``: None for the first start, before there was any claim."""
    data = json.dumps({**_KIND, "ClaimInfoStateList": entries}, separators=(",", ":"), ensure_ascii=False)
    whole = {"Data": data, "Checksum": zlib.crc32(data.encode())}
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False)


def cache_from(text: str) -> ClaimCache:
    """Return the cache that a file holds; nothing counts as prepared.

    Raises DraCheckpointError.
    """
    cache = ClaimCache()
    if not text:
        return cache
    try:
        whole = json.loads(text)
        data = str(whole["Data"])
        if zlib.crc32(data.encode()) != whole["Checksum"]:
            raise DraCheckpointError("create ResourceClaim cache: checkpoint is corrupted")
        content = json.loads(data)
        if {key: content.get(key) for key in _KIND} != _KIND:
            raise DraCheckpointError("create ResourceClaim cache: unknown checkpoint type")
        for entry in content["ClaimInfoStateList"] or ():
            cache.add(_info(entry))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DraCheckpointError(f"create ResourceClaim cache: {error}") from error
    return cache


def _entry(info: ClaimInfo) -> dict[str, Any]:
    states = {
        driver: {"Devices": None if devices is None else [_written(each) for each in devices]}
        for driver, devices in sorted(info.drivers.items())
    }
    return {
        "ClaimUID": info.uid,
        "ClaimName": info.name,
        "Namespace": info.namespace,
        "PodUIDs": {uid: {} for uid in sorted(info.pods)},
        "DriverState": states,
    }


def _written(device: PreparedDevice) -> dict[str, Any]:
    return {
        "PoolName": device.pool,
        "DeviceName": device.device,
        "RequestNames": list(device.requests) or None,
        "CDIDeviceIDs": list(device.cdi_ids) or None,
    }


def _info(entry: Mapping[str, Any]) -> ClaimInfo:
    info = ClaimInfo(str(entry["ClaimUID"]), str(entry["ClaimName"]), str(entry["Namespace"]))
    info.pods = dict.fromkeys(entry["PodUIDs"] or ())
    for driver, state in (entry["DriverState"] or {}).items():
        devices = state["Devices"]
        info.drivers[driver] = None if devices is None else tuple(_device(each) for each in devices)
    return info


def _device(entry: Mapping[str, Any]) -> PreparedDevice:
    requests, ids = tuple(entry["RequestNames"] or ()), tuple(entry["CDIDeviceIDs"] or ())
    return PreparedDevice(str(entry["PoolName"]), str(entry["DeviceName"]), requests, ids)
