"""Finds that nothing can happen any more in virtual time."""

from __future__ import annotations

import asyncio

from mews.harness.clock import VirtualLoop
from mews.harness.journal import Journal


class StallWatch:
    """Remembers since which journal line there were only rests, and when all of them have gone round."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._quiet: tuple[int, float] = (-1, 0.0)

    def stalled(self, since_line: int) -> bool:
        """Return whether only rests are pending, and all that were when the journal last grew have gone round since."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualLoop) or len(self._journal) > since_line:
            return False
        horizon = loop.idle_until()
        if horizon is None:
            self._quiet = (-1, 0.0)
            return False
        if self._quiet[0] != since_line:
            self._quiet = (since_line, horizon)
        return loop.time() > self._quiet[1]
