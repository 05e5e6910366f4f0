"""The five phases of a reconfiguration, timed where they happen (paper section V-B), and counts of what was done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Protocol


class Phase(StrEnum):
    """The paper's phases: node selection, detection and binding are the scheduler's, the rest Reconfig-Mgr's."""

    NODE_SELECTION = "node_selection"
    AVAILABILITY_UPDATE = "availability_update"
    ALLOCATION_RETRIEVAL = "allocation_retrieval"
    REALLOCATION = "reallocation"
    DETECTION_BINDING = "detection_binding"


class KubeCompCounter(StrEnum):
    """What is counted."""

    RECONFIGURATIONS = "reconfigurations"
    """Reconfigurations that moved at least one device."""
    MOVED = "moved_gpus"
    """Devices attached to another node than before, or attached at all."""
    RETRIES = "retries"
    """Attach and detach operations beyond the first try."""
    ABANDONED = "abandoned"
    """Moves given up: consent lost, another editor, a device that never came."""
    REFUSED = "refused_removals"
    """Devices that a host did not give up: a holder, persistence mode, a removal that blocks."""
    RECOVERED = "recovered"
    """Moves of an earlier incarnation that were brought to an end."""


class KubeCompMetrics(Protocol):
    """Where the components put their numbers."""

    def observe(self, phase: Phase, duration_s: float) -> None:
        """One duration of a phase, seconds."""
        ...

    def count(self, what: KubeCompCounter, by: int = 1) -> None:
        """So many more."""
        ...


class KubeCompMemoryMetrics:
    """Metrics in plain Python: every duration, every count."""

    def __init__(self) -> None:
        self.durations: dict[Phase, list[float]] = {phase: [] for phase in Phase}
        self.counts: dict[KubeCompCounter, int] = dict.fromkeys(KubeCompCounter, 0)

    def observe(self, phase: Phase, duration_s: float) -> None:
        """One duration of a phase, seconds."""
        self.durations[phase].append(duration_s)

    def count(self, what: KubeCompCounter, by: int = 1) -> None:
        """So many more."""
        self.counts[what] += by

    def phase_seconds(self) -> dict[str, float]:
        """Phase -> sum of its durations (``phase_seconds`` of a run's result)."""
        return {phase.value: sum(values) for phase, values in self.durations.items()}


def loop_time() -> float:
    """Seconds of the running loop: what the phases are measured in unless a benchmark brings its own clock."""
    return asyncio.get_running_loop().time()


@contextmanager
def timed(metrics: KubeCompMetrics, phase: Phase, now: Callable[[], float] = loop_time) -> Iterator[None]:
    """Observe how long the block took, also when it fails."""
    begun_s = now()
    try:
        yield
    finally:
        metrics.observe(phase, now() - begun_s)
