"""What a cluster of real nodes is asked for and has little to do about: Kubernetes and the pods do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.harness.journal import LINES_KEPT, Journal


class IdlePart:
    """Of ``RealCluster``."""

    journal: Journal
    records: Journal

    def metrics(self) -> Mapping[str, Any]:
        """What components measure of themselves stays with them here."""
        return {}

    def exposing(self) -> Sequence[str]:
        """None: each component serves its own, in its pod."""
        return ()

    async def exposition(self, system: str) -> bytes:
        """Of none. Raises ValueError."""
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
