"""What pods use, as a kubelet reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mews.kube.api.objects import Object


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    """Billionths of a core, and bytes."""

    cpu_nano: int
    memory: int


@dataclass(frozen=True, slots=True)
class PodUsage:
    """A pod's running containers, over the last ``window_s``."""

    pod: Object
    containers: Mapping[str, ContainerUsage]
    window_s: float
