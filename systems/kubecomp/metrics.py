"""The five phases of a reconfiguration, timed where they happen (paper section V-B), and counts of what was done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct


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


class ReconfigurationTiming(Struct, frozen=True):
    """One reconfiguration as Reconfig-Mgr served it: for which pod, how many devices it moved, seconds by phase."""

    pod: str
    moved: int
    seconds: Mapping[Phase, float]

    def as_dict(self) -> dict[str, Any]:
        """Return them as it stands among a run's metrics."""
        return {"pod": self.pod, "moved_gpus": self.moved, **{phase.value: s for phase, s in self.seconds.items()}}


class KubeCompMetrics(Protocol):
    """Where the components put their numbers."""

    def observe(self, phase: Phase, duration_s: float, pod: str = "") -> None:
        """One duration of a phase, seconds; of which pod's reconfiguration, where one is meant."""
        ...

    def reconfigured(self, timing: ReconfigurationTiming) -> None:
        """A reconfiguration that moved devices has ended; its phases were observed one by one."""
        ...

    def count(self, what: KubeCompCounter, by: int = 1) -> None:
        """So many more."""
        ...


class KubeCompMemoryMetrics:
    """Metrics in plain Python: every duration, every count."""

    def __init__(self) -> None:
        self.durations: dict[Phase, list[float]] = {phase: [] for phase in Phase}
        self.counts: dict[KubeCompCounter, int] = dict.fromkeys(KubeCompCounter, 0)
        self.reconfigurations: list[ReconfigurationTiming] = []
        self._of_pod: dict[str, dict[Phase, float]] = {}

    def observe(self, phase: Phase, duration_s: float, pod: str = "") -> None:
        """One duration of a phase, seconds; a pod's last one belongs to its next reconfiguration."""
        self.durations[phase].append(duration_s)
        if pod:
            self._of_pod.setdefault(pod, {})[phase] = duration_s

    def reconfigured(self, timing: ReconfigurationTiming) -> None:
        """A reconfiguration has ended: kept with what was observed of its pod meanwhile."""
        seconds = {**self._of_pod.get(timing.pod, {}), **timing.seconds}
        self.reconfigurations.append(ReconfigurationTiming(timing.pod, timing.moved, seconds))

    def count(self, what: KubeCompCounter, by: int = 1) -> None:
        """So many more."""
        self.counts[what] += by

    def phase_seconds(self) -> dict[str, float]:
        """Phase -> sum of its durations (``phase_seconds`` of a run's result)."""
        return {phase.value: sum(values) for phase, values in self.durations.items()}


def loop_time() -> float:
    """Return seconds of the running loop: what the phases are measured in unless a benchmark brings its own clock."""
    return asyncio.get_running_loop().time()


@contextmanager
def timed(
    metrics: KubeCompMetrics, phase: Phase, spent: dict[Phase, float], now: Callable[[], float] = loop_time
) -> Iterator[None]:
    """Observe how long the block took, also when it fails, and add it to what was ``spent``."""
    begun_s = now()
    try:
        yield
    finally:
        duration_s = now() - begun_s
        spent[phase] = spent.get(phase, 0.0) + duration_s
        metrics.observe(phase, duration_s)
