"""Hardware files of any size for the benchmarks."""

from __future__ import annotations

import json


def hardware(*, hosts: int, chassis: int = 1, gpus_per_host: int = 4, profile: str = "instant", cpus: int = 64) -> str:
    """Return every host cabled to every chassis of one pool, GPUs spread evenly over the hosts and chassis, as JSON."""
    ports = {str(n): f"host-{n}" for n in range(1, hosts + 1)}
    total = hosts * gpus_per_host
    devices: list[list[dict[str, str]]] = [[] for _ in range(chassis)]
    for number in range(total):
        device = {
            "id": f"{number:06X}",
            "uuid": f"GPU-{number:08x}-0000-4000-8000-{number:012x}",
            "port": str(number % hosts + 1),
        }
        devices[number // hosts % chassis].append(device)
    return json.dumps(
        {
            "apiVersion": "mews/v1",
            "kind": "Hardware",
            "metadata": {"name": f"bench-{hosts}"},
            "profile": profile,
            "hosts": [{"name": host, "cpus": cpus, "memory_mib": 262144} for host in ports.values()],
            "chassis": [
                {"name": f"C{n}", "index": n, "slots": max(1, len(rows)), "ports": ports, "devices": rows}
                for n, rows in enumerate(devices)
            ],
        }
    )
