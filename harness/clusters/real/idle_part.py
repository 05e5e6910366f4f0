"""What a cluster of real nodes is asked for and has nothing to do about: Kubernetes and the pods do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class IdlePart:
    """Of ``RealCluster``."""

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
        """Nothing to do: the kubelets start what crashes."""

    async def announced(self) -> None:
        """They were when it was opened."""
