"""What a cluster of real nodes is asked for and has little to do about: Kubernetes and the pods do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.emulator.nvml import library
from mews.harness.journal import LINES_KEPT, Journal


class IdlePart:
    """Of ``RealCluster``."""

    name: str
    journal: Journal
    records: Journal

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

    def exposing(self) -> Sequence[str]:
        """Return None: each component serves its own, in its pod."""
        return ()

    async def exposition(self, system: str) -> bytes:
        """Return that of none. Raises ValueError."""
        raise ValueError(f"metrics of {system!r}: are served by its pods, not here")

    def stalled(self, since_line: int) -> bool:
        """Never, in wall-clock time."""
        return False

    def keep_alive(self) -> None:
        """The kubelets start what crashes; of journal and records the latest are remembered."""
        for journal in (self.journal, self.records):
            journal.keep_latest(LINES_KEPT)

    async def announced(self) -> None:
        """They were when it was opened."""
