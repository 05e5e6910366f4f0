"""UUIDs of machines, resources and the rest: all follow from names of the hardware file, so that a restart, another
chassis and another machine give the same (RFC 9562, version 5)."""

from __future__ import annotations

from typing import Final
from uuid import UUID, uuid5

NAMESPACE: Final = UUID("6a1f5c1e-2f0c-5b8e-9d53-0f3c6b7a4e10")
"""Names below it are ``<kind>/<name>``, such as ``machine/host-1``."""


def identity(kind: str, *names: str) -> str:
    """Return the UUID of ``kind/name/…``, lower case."""
    return str(uuid5(NAMESPACE, "/".join((kind, *names))))


TENANT: Final = identity("tenant", "mews")
"""The tenant where nothing else is said: 502b3a5f-0b05-568c-8519-d71aeea4f8f3; ``MEWS_FM_TENANT`` names another."""
CLUSTER: Final = identity("cluster", "mews")
"""The one cluster of the cluster manager."""


def machine_uuid(host: str) -> str:
    """Return the machine of a host, the same on every chassis that it is cabled to."""
    return identity("machine", host)


def resource_uuid(chassis: str, device: str) -> str:
    """Return the fabric's own UUID of a device, which is not the GPU's: that is its serial number (cohdi.md 3)."""
    return identity("resource", chassis, device)
