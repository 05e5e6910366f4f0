"""What the parts of Koordinator are told."""

from __future__ import annotations

from dataclasses import dataclass

from mews.systems.koordinator.names import NAMESPACE, SCHEDULER
from mews.systems.koordinator.policy import Choice


@dataclass(frozen=True, slots=True)
class KoordinatorConfig:
    """``device_choice``: how one of several sets of devices is chosen. ``gang_wait_s``: how long pods of a gang wait
    for each other at Permit, seconds of the API's time."""

    scheduler_name: str = SCHEDULER
    namespace: str = NAMESPACE
    device_choice: Choice = "auto"
    gang_wait_s: float = 60.0
