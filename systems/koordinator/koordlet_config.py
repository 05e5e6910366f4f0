"""What koordlet is told."""

from __future__ import annotations

from msgspec import Struct

from mews.systems.koordinator.device_kinds import KINDS, DeviceKind
from mews.systems.koordinator.names import NVIDIA, SCHEDULER


class KoordletConfig(Struct, frozen=True):
    """``report_s``: the period of the report; GPUs that come or go are seen within ``poll_s``. ``seed_names``: the
    seed's names of resources are on the node beside today's. ``adopt``: the resources of device plugins whose devices
    are taken from the kubelet's checkpoint, names or with ``*`` at the end what they begin with; ``adopt_env``: so are
    those that containers without an annotation name in their environment."""

    report_s: float = 10.0
    poll_s: float = 1.0
    seed_names: bool = False
    scheduler: str = SCHEDULER
    kinds: tuple[DeviceKind, ...] = KINDS
    adopt: tuple[str, ...] = (NVIDIA,)
    adopt_env: bool = True
