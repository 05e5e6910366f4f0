"""Whether a node still offers what was chosen, by its Device as the API server has it now."""

from __future__ import annotations

from mews.kube.api.errors import NotFound
from mews.kube.client.port import KubeApi
from mews.systems.koordinator.allocations import Allocations
from mews.systems.koordinator.devices import parse
from mews.systems.koordinator.errors import BadDeviceObject
from mews.systems.koordinator.names import DEVICES
from mews.systems.koordinator.usage import NodeUse


async def still_offered(kube: KubeApi, node: str, allocations: Allocations) -> bool:
    """Whether all of these are listed and healthy; False for a Device that is gone or cannot be read.

    Raises ApiError, Unavailable.
    """
    try:
        report = parse(await kube.get(DEVICES, node))
    except (NotFound, BadDeviceObject):
        return False
    return NodeUse.of(report).offers(allocations)
