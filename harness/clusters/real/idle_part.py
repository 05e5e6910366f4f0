"""What a cluster of real nodes is asked for and has little to do about: Kubernetes and the pods do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.emulator.nvml import library
from mews.harness.journal import LINES_KEPT, Journal


class PodMeasures:
    """What components measure of themselves, where each serves its own in its pod: nothing of it is known here."""

    def exposing(self) -> Sequence[str]:
        """Return no system."""
        return ()

    async def exposition(self, system: str) -> bytes:
        """Raise ValueError for every system."""
        raise ValueError(f"metrics of {system!r}: are served by its pods, not here")


class IdlePart:
    """Answers for ``RealCluster`` what Kubernetes and its pods do by themselves."""

    name: str
    journal: Journal
    records: Journal
    measures = PodMeasures()

    def lacks(self, requirement: str) -> str | None:
        """Logs, exec and kill are there; root and FUSE are not asked of anybody's nodes."""
        if requirement in ("logs", "exec", "kill", "wall"):
            return None
        if requirement == "virtual":
            return "this run is in wall time"
        if requirement == "cut":
            return "what runs in pods is killed some 0.1 s after the line, not at it"
        if requirement == "nvml":
            return None if library.available() else "there is no C compiler for libnvidia-ml.so.1"
        return f"--cluster {self.name} has no {requirement}"

    def metrics(self) -> Mapping[str, Any]:
        """Return what components measure of themselves stays with them here."""
        return {}

    def stalled(self, since_line: int) -> bool:
        """Never, in wall-clock time."""
        return False

    def keep_alive(self) -> None:
        """The kubelets start what crashes; of journal and records the latest are remembered."""
        for journal in (self.journal, self.records):
            journal.keep_latest(LINES_KEPT)

    async def announced(self) -> None:
        """They were when it was opened."""
