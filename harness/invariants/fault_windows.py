"""Which invariants a fault may break, and for how long after it struck: the windows that it opens in a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mews.harness.journal import Line

FOREVER = math.inf

EDITED: Mapping[int, float] = {2: FOREVER, 5: FOREVER, 6: FOREVER}
"""What becomes of a device that another editor moved, or of all when the hardware is reset under the running cluster,
is that editor's doing: invariant -> seconds."""

ABSENCE: Mapping[int, str] = {4: "nobody tells the API", 5: "nobody repairs", 8: "nobody schedules"}
"""What need not happen while a component or a chassis is down."""


@dataclass(slots=True)
class _Window:
    invariant: int
    device: str | None
    since: float
    until: float


class FaultWindows:
    """The windows of one run. A reducer over lines; ask only about the time up to the last line heard."""

    def __init__(self) -> None:
        self._windows: list[_Window] = []
        self._down: dict[str, float] = {}
        self._tables: set[str] = set()

    def take(self, line: Line) -> None:
        """Open and close windows."""
        if line.layer == "fault":
            self._fault(line)
        elif line.layer == "chassis" and line.event in ("edited", "removed"):
            self._open(EDITED, line)
        elif line.layer == "chassis" and line.event == "table":
            if line.actor in self._tables:
                self._open(EDITED, line)
            self._tables.add(line.actor)
        elif line.event in ("killed", "crashed", "down"):
            self._down.setdefault(line.actor, line.t)
        elif line.event in ("started", "up") and line.actor in self._down:
            since = self._down.pop(line.actor)
            self._windows += [_Window(number, None, since, line.t) for number in ABSENCE]

    def excused(self, invariant: int, t: float, device: str | None = None) -> bool:
        """Whether a breach seen at that time may be a fault's doing."""
        if invariant in ABSENCE and self._down:
            return True
        return any(window.since <= t <= window.until for window in self._of(invariant, device))

    def clock_from(self, invariant: int, since: float, device: str | None = None) -> float:
        """When the clock of a bound starts that would start at ``since``: at the end of the last excuse after it."""
        if invariant in ABSENCE and self._down:
            return FOREVER
        return max([since, *(window.until for window in self._of(invariant, device) if window.until > since)])

    def down(self) -> Sequence[str]:
        """The components and chassis that are down, sorted."""
        return sorted(self._down)

    def _of(self, invariant: int, device: str | None) -> list[_Window]:
        return [w for w in self._windows if w.invariant == invariant and w.device in (None, device)]

    def _fault(self, line: Line) -> None:
        """A fault declares as it fires (or is added) what it may break, in seconds from then on (None: for good)."""
        given = line.fields.get("excuses") or {}
        spans = {int(number): FOREVER if span is None else float(span) for number, span in given.items()}
        self._open(spans, line)

    def _open(self, excuses: Mapping[int, float], line: Line) -> None:
        device = line.fields.get("gpuid")
        self._windows += [_Window(n, device, line.t, line.t + span) for n, span in excuses.items()]
