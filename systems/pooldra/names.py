"""The words that pool driver, node drivers and users share."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache

DOMAIN = "pooldra.mews.dev"
ATTACHED = f"{DOMAIN}/Attached"
"""The binding condition of a pool's device: its host shows it."""
ATTACH_FAILED = f"{DOMAIN}/AttachFailed"
"""A failure condition: it cannot be had; the claim is allocated anew."""
REALLOCATE = f"{DOMAIN}/Reallocate"
"""A failure condition: it belongs to its node's driver now, and the claim is allocated anew, from the node's slice."""
REPORT = f"{DOMAIN}/report"
"""The annotation of a node in which its driver reports (``records.PoolNodeReport``)."""
REQUESTS = f"{DOMAIN}/requests"
"""The annotation of a node in which the pool driver asks it for devices (``records.NodeRequests``)."""
HOSTNAME = "kubernetes.io/hostname"


class HandOver(StrEnum):
    """What becomes of the claim once its device is on the node."""

    REALLOCATE = "reallocate"
    IN_PLACE = "in-place"
    MOVE = "move"


def pool_name(index: int) -> str:
    """Return the pool of the chassis with that index: chassis' names need not be DNS labels."""
    return f"chassis-{index}"


@lru_cache(maxsize=4096)
def device_name(uuid: str) -> str:
    """Return the pool's device with that UUID. The name alone tells a node's driver which GPU of NVML it is."""
    return uuid.lower()
