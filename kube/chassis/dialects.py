"""Clients of chassis in every wire language, by the dialect's name."""

from __future__ import annotations

from collections.abc import Callable

from mews.dialects import part_of
from mews.kube.chassis.port import ChassisApi, RedfishCredentials, Transport

Connect = Callable[[Transport, RedfishCredentials | None, float], ChassisApi]


def client_of(
    dialect: str, transport: Transport, account: RedfishCredentials | None = None, *, patience_s: float = 120.0
) -> ChassisApi:
    """Return a chassis in a dialect. ``account`` is for those that want a login, else the environment's; ``patience_s``
    for those that have operations followed up.

    Raises NotRegisteredError, a ValueError.
    """
    connect: Connect = part_of(dialect, "client")
    return connect(transport, account, patience_s)
