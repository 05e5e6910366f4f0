"""What pods use, as a kubelet reports it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from mews.kube.api.objects import Object


class ContainerUsage(Struct, frozen=True):
    """Billionths of a core, and bytes."""

    cpu_nano: int
    memory: int


class PodUsage(Struct, frozen=True):
    """A pod's running containers, over the last ``window_s``."""

    pod: Object
    containers: Mapping[str, ContainerUsage]
    window_s: float
