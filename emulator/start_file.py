"""Start files of KubeComp's published simulator: ``devid,hostport`` per line (contract chassis.md 3).

They name no hosts, UUIDs or serials: host port p is cabled to ``host-<p>``, and UUIDs are derived from the device IDs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from mews.emulator.chassis.errors import HardwareError


def read_start_file(text: str, source: str) -> Mapping[str, Any]:
    """Return the document of a hardware file (``parse_hardware``) with one chassis A; an empty host port is a free
    device.

    Raises HardwareError, one line.
    """
    devices = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 2:
            raise HardwareError(f"{source}: line {number}: {line[:60]!r}: must be devid,hostport")
        device, port = parts
        devices.append({"id": device, "uuid": _uuid(device), "port": port or None})
    ports = sorted({str(device["port"]) for device in devices if device["port"]}, key=lambda port: (len(port), port))
    return {
        "apiVersion": "mews/v1",
        "kind": "Hardware",
        "metadata": {"name": "start-file"},
        "hosts": [{"name": f"host-{port}"} for port in ports],
        "chassis": [{"name": "A", "ports": {port: f"host-{port}" for port in ports}, "devices": devices}],
    }


def _uuid(device: str) -> str:
    digits = hashlib.sha256(device.encode()).hexdigest()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"
