"""How long what must happen may take: data of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from mews.systems.kubecomp.config import RESOURCE, SCHEDULER


@dataclass(frozen=True, slots=True)
class Bounds:
    """All in seconds of the journal; None switches an invariant's clock off.

    ``unattached_s``: how long a device that was attached at the start may stay free with no operation pending (5).
    ``scheduled_s``: how long a pod that fits may stay unbound (8). Above the longest Permit wait of 15 minutes
    (contract kubecomp.md section 2) plus a back-off.
    ``progress_s``: how long training jobs may hold resources while none of them trains (9).
    ``settle_s``: how long watches may lag behind a list when the run ends (7), and pod resources behind the pods (6).
    ``lag_s``: how late hardware lines may come after what follows from them (6): 0 in process, the way of an event over
    HTTP in wall-clock time.
    ``allocatable_s``: how long a node may offer more than NVML shows (4): DevMgr's look, the plugin's list, the
    kubelet's status.
    ``pooled_resource``, ``pooled_kind``, ``pooling_scheduler``: what is counted per pool instead of per node, and by
    whom.
    """

    unattached_s: float | None = 300.0
    scheduled_s: float | None = 1200.0
    progress_s: float | None = 300.0
    settle_s: float = 5.0
    lag_s: float = 0.0
    allocatable_s: float = 30.0
    pooled_resource: str = RESOURCE
    pooled_kind: str = "GPU"
    pooling_scheduler: str = SCHEDULER

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Bounds:
        """Bounds with some values given by a scenario.

        Raises ValueError for a name that is none.
        """
        allowed = [field.name for field in fields(cls)]
        for name in given:
            if name not in allowed:
                raise ValueError(f"bounds.{name}: no such bound; allowed are {', '.join(allowed)}")
        return cls(**given)
