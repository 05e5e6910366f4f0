"""Whether a node still offers what was chosen, by its Device as the API server has it now."""

from __future__ import annotations

from mews.kube.api.errors import NotFoundError
from mews.kube.client.port import KubeApi
from mews.systems.koordinator.allocations import Allocations
from mews.systems.koordinator.cache import NodeDeviceCache
from mews.systems.koordinator.devices import parse
from mews.systems.koordinator.errors import BadDeviceError
from mews.systems.koordinator.names import DEVICES
from mews.systems.koordinator.usage import NodeUse


async def still_offered(kube: KubeApi, node: str, allocations: Allocations, cache: NodeDeviceCache) -> bool:
    """Return whether all of these are listed, healthy and held by nobody that another scheduler placed; False for a
    Device that is gone or cannot be read. ``cache`` knows which pods are ours, and which have ended.

    Raises ApiError, UnavailableError.
    """
    try:
        report = parse(await kube.get(DEVICES, node))
    except (NotFoundError, BadDeviceError):
        return False
    use = NodeUse.of(report)
    if not use.offers(allocations):
        return False
    held = {use.slot_of(each) for pod in cache.held_by_others(report) for each in pod.allocations}
    return all(use.slot_of(each) not in held for each in allocations)
