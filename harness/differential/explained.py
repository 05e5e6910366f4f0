"""Differences between our clusters that are known, and why they are. Data; the first row that fits speaks."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """Differences in stories whose thing, stream and item match these patterns (whole texts) are explained by
    ``why``. ``clusters``: of those pairs' other side; empty: all."""

    thing: str
    stream: str
    item: str
    why: str
    clusters: tuple[str, ...] = ()

    def fits(self, cluster: str, thing: str, stream: str, item: str) -> bool:
        """Whether it explains that item."""
        if self.clusters and cluster not in self.clusters:
            return False
        pairs = ((self.thing, thing), (self.stream, stream), (self.item, item))
        return all(re.fullmatch(pattern, text) for pattern, text in pairs)


REASONS: tuple[Reason, ...] = ()
