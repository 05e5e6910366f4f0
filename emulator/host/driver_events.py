"""What the driver reports to NVML's event sets: XIDs, memory errors, being bound and unbound."""

from __future__ import annotations

from collections import deque

from mews.emulator.nvml.state import EVENT_RING, EventKind, NvmlEvent


class DriverEvents:
    """The last ones, oldest first, numbered from 1 over the host's life."""

    def __init__(self) -> None:
        self._kept: deque[NvmlEvent] = deque(maxlen=EVENT_RING)
        self._total = 0

    def add(self, kind: EventKind, bdf: str, data: int = 0, *, instance: tuple[int, int] = (-1, -1)) -> None:
        """One more; ``data`` is the number of an XID, ``instance`` the IDs of the MIG device on which it happened."""
        self._total += 1
        self._kept.append(NvmlEvent(self._total, kind, bdf, data, *instance))

    def last(self) -> tuple[NvmlEvent, ...]:
        """Return the events that are kept, the oldest first."""
        return tuple(self._kept)
