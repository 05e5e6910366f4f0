"""The wire languages of chassis, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mews.kube.chassis.h3api import H3Api
from mews.kube.chassis.port import ChassisApi, Transport
from mews.kube.chassis.redfish import Account, Redfish
from mews.kube.chassis.resource_pool import ResourcePool

DIALECTS: Mapping[str, Callable[[Transport], ChassisApi]] = {
    "h3api": H3Api,
    "resource-pool": ResourcePool,
    "redfish": Redfish,
}


def speak(
    dialect: str, transport: Transport, account: Account | None = None, *, patience_s: float = 120.0
) -> ChassisApi:
    """A chassis in a dialect. ``account`` is for the one that wants a login, else the environment's; ``patience_s``
    for the one that has operations followed up."""
    if dialect == "redfish":
        return Redfish(transport, account, patience_s=patience_s)
    return DIALECTS[dialect](transport)
