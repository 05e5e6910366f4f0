"""What pods use, as a kubelet reports it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from mews.kube.api.objects import Object


class ContainerUsage(Struct, frozen=True):
    """Billionths of a core, and bytes; ``cpu_s`` of a core since it ``started_at`` (unix seconds)."""

    cpu_nano: int
    memory: int
    cpu_s: float = 0.0
    started_at: float = 0.0


class PodUsage(Struct, frozen=True):
    """A pod's running containers, over the last ``window_s``."""

    pod: Object
    containers: Mapping[str, ContainerUsage]
    window_s: float
