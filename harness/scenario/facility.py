"""What a scenario's hardware is to the systems installed on it: chassis, nodes and cables."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mews.dialects import DEFAULT
from mews.emulator.dialects.identities import TENANT, machine_uuid
from mews.emulator.hardware.inventory import Hardware
from mews.kube.system.facility import ChassisAddress, Facility, NodeCabling

NO_ENDPOINTS: Mapping[str, str] = {}


def facility_of(
    hardware: Hardware,
    *,
    dialect: str = DEFAULT,
    endpoints: Mapping[str, str] = NO_ENDPOINTS,
    ca_file: str = "",
    speed: float = 1.0,
) -> Facility:
    """Return the inventory as an administrator would write it down; ``endpoints``: chassis -> base URL (none in
    process), ``ca_file``: whose certificates to trust where that is https."""
    ports: dict[str, dict[str, str]] = {host.name: {} for host in hardware.hosts}
    pools: dict[str, str] = {}
    for spec in hardware.chassis:
        for port, host in spec.ports.items():
            if host is not None:
                ports.setdefault(host, {})[spec.name] = port
                pools[host] = spec.pool
    at = {spec.name: endpoints.get(spec.name, "") for spec in hardware.chassis}
    trusted = {name: ca_file if url.startswith("https:") else "" for name, url in at.items()}
    tenant = os.environ.get("MEWS_FM_TENANT") or TENANT
    chassis = tuple(
        ChassisAddress(
            spec.name,
            spec.index,
            spec.pool,
            at[spec.name],
            dialect,
            trusted[spec.name],
            prefixed=spec.prefixed,
            models=tuple(dict.fromkeys(device.model for device in spec.devices if device.kind == "GPU")),
            tenant=tenant,
        )
        for spec in hardware.chassis
    )
    nodes = tuple(
        NodeCabling(host, ports[host], pools.get(host, ""), machine=machine_uuid(host)) for host in sorted(ports)
    )
    return Facility(chassis, nodes, speed=speed)
