"""Which invariants a fault may break, and for how long: the windows that it opens in a run.

A fault declares which invariants its **effect** may break and how long that lasts in the hardware: from the moment of
the effect (the line ``fired``; a table line ``edited`` for what another editor does) for as long as its own parameters
say, or until it is cleared. What follows in the layers above is added here, from the configuration, by kind of law:

- Laws with a clock (4 what nodes offer, 5 unattached, 8 scheduled) allow the layers above their bound anyway, which is
  computed from the configuration (``reactions``): the clock starts anew when the effect is over, and no window is
  longer than the effect.
- Laws that are judged at a moment (1, 2, 3, 6) are about who has a device. After the effect the nodes may go by what
  was for as long as they take to notice (``notice_s``), longer where they could not look (a window of law 4, a
  component that is down). A pod that was given the device by then keeps it until it ends: until then two pods may hold
  it (3) where it is not on that pod's host any more, and what the pod was told may not be what the chassis says (6).

A fault on one device excuses the momentary laws and law 4 for that device alone. Pods name no devices, so 8 is excused
for all; so is 5 for an effect that passes, since who waits for one device serves no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from mews.harness.invariants.observed_hardware import ObservedHardware
from mews.harness.journal import Line
from mews.kube.system.invariant import ObservedHolding

FOREVER = math.inf

BLINDNESS = 4
"""A window of this law says that the layers above the hardware cannot know it as it is."""

MOMENTARY = frozenset({1, 2, 3, 6})
"""Judged at the moment of a line."""

AGREEMENT = 6
KEPT = frozenset({3, AGREEMENT})
"""Those of them that a pod breaks for as long as it keeps what it was given."""

UNATTACHED, SCHEDULED = 5, 8

EDITED: Mapping[int, float] = {2: 0.0, 3: 0.0, 4: 0.0, 5: FOREVER, 6: 0.0}
"""What becomes of a device that another editor moved, or that a reset of the hardware under the running cluster put
elsewhere, is that editor's doing: invariant -> seconds. Nobody owes him a repair; it is over when a system attaches
the device."""

LATE = 0
"""The number of windows of all laws that are of time: while a fault is between a component and the API, and until its
client has begun anew, that component may be late and lose what it reports. The lines of such faults have
``hinders_s``. All clocks start anew at the end of such a window."""

ABSENCE: Mapping[int, str] = {4: "nobody tells the API", 5: "nobody repairs", 8: "nobody schedules"}
"""What need not happen while a component or a chassis is down."""

EDITOR = "editor"
"""The source of windows that no fault can be cleared of."""


class _Window(Struct):
    """``source`` is who opened it: a fault by its place and number, an editor, a component that is down."""

    invariant: int
    device: str | None
    since: float
    until: float
    source: tuple[str, ...] = ()

    @property
    def is_for_all(self) -> bool:
        """Whose time it costs: everybody's while one operation is waited for, nobody's for a device that is broken."""
        return self.invariant == SCHEDULED or (self.invariant == UNATTACHED and self.until < FOREVER)


class FaultWindows:
    """The windows of one run. A reducer over lines; ask only about the time up to the last line heard."""

    def __init__(self, notice_s: float = 0.0, world: ObservedHardware | None = None) -> None:
        self._notice_s = notice_s
        self._world = world or ObservedHardware()
        self._windows: list[_Window] = []
        self._down: dict[str, float] = {}
        self._tables: set[str] = set()

    def take(self, line: Line) -> None:
        """Open and close windows."""
        if line.layer == "fault":
            self._fault(line)
        elif line.layer == "chassis" and line.event in ("edited", "removed"):
            self._open(EDITED, line, (EDITOR,), line.fields.get("gpuid"))
        elif line.layer == "chassis" and line.event == "attached":
            self._end(line.t, lambda window: window.source == (EDITOR,) and window.device == line.fields.get("gpuid"))
        elif line.layer == "chassis" and line.event == "table":
            for device in self._rearranged(line) if line.actor in self._tables else ():
                self._open(EDITED, line, (EDITOR,), device)
            self._tables.add(line.actor)
        elif line.event in ("killed", "crashed", "down"):
            self._down.setdefault(line.actor, line.t)
        elif line.event in ("started", "up") and line.actor in self._down:
            since = self._down.pop(line.actor)
            self._windows += [_Window(number, None, since, line.t, (line.actor,)) for number in ABSENCE]

    def excused(self, invariant: int, t: float, device: str | None = None) -> bool:
        """Return whether a breach seen at that time may be a fault's doing."""
        if invariant in ABSENCE and self._down:
            return True
        windows = [window for window in self._of(invariant, device) if window.since <= t]
        if any(t <= window.until for window in windows):
            return True
        return invariant in MOMENTARY and any(self._lingers(window, t, device) for window in windows)

    def clock_from(self, invariant: int, since: float, device: str | None = None) -> float:
        """Return when the clock of a bound starts that would start at ``since``: at the end of the last excuse after
        it."""
        if invariant in ABSENCE and self._down:
            return FOREVER
        windows = (*self._of(invariant, device), *self._of(LATE, None))
        return max([since, *(window.until for window in windows if window.until > since)])

    def down(self) -> Sequence[str]:
        """Return the components and chassis that are down, sorted."""
        return sorted(self._down)

    def noticed_s(self, t: float) -> float:
        """Return when the nodes know at the latest what was the case at ``t``: after the time that they take, without
        what kept them from looking."""
        due, moved = t + self._notice_s, True
        while moved:
            moved = False
            for window in self._windows:
                if window.invariant == BLINDNESS and window.since <= due < window.until + self._notice_s:
                    due, moved = window.until + self._notice_s, True
        return FOREVER if any(since <= due for since in self._down.values()) else due

    def _lingers(self, window: _Window, t: float, device: str | None) -> bool:
        """Return whether the nodes may still go by what was, or a pod holds what it was given while they did."""
        noticed_s = self.noticed_s(window.until)
        if t <= noticed_s:
            return True
        if window.invariant not in KEPT:
            return False
        holdings = self._world.holders(device) if device is not None else self._world.all_holdings()
        given = [held for held in holdings if held.line is None or held.line.t <= noticed_s]
        return any(window.invariant == AGREEMENT or self._is_elsewhere(held, device) for held in given)

    def _is_elsewhere(self, held: ObservedHolding, device: str | None) -> bool:
        found = self._world.devices.get(device or "")
        return found is not None and found.host != held.host

    def _of(self, invariant: int, device: str | None) -> list[_Window]:
        return [w for w in self._windows if w.invariant == invariant and (w.is_for_all or w.device in (None, device))]

    def _fault(self, line: Line) -> None:
        """A fault declares as it fires (or is added) what it may break, in seconds from then on (None: until it is
        cleared)."""
        source = (line.actor, str(line.fields.get("fault", "")))
        if line.event == "cleared":
            self._end(line.t, lambda window: window.source == source)
        given = line.fields.get("excuses") or {}
        spans = {int(number): FOREVER if span is None else float(span) for number, span in given.items()}
        if "hinders_s" in line.fields:
            span = line.fields["hinders_s"]
            spans[LATE] = FOREVER if span is None else float(span)
        self._open(spans, line, source, line.fields.get("gpuid"))

    def _end(self, t: float, ends: Callable[[_Window], bool]) -> None:
        for window in self._windows:
            if window.until == FOREVER and ends(window):
                window.until = t

    def _rearranged(self, line: Line) -> Iterator[str]:
        """Yield the devices that a further table (a reset, a restart) shows elsewhere, or as another one, than
        before."""
        rows = {row["gpuid"]: row for row in line.fields["devices"].values()}
        for gpuid, known in self._world.devices.items():
            row = rows.get(gpuid, {})
            if known.chassis == line.actor and (known.port, known.uuid) != (row.get("port"), row.get("uuid")):
                yield gpuid

    def _open(self, excuses: Mapping[int, float], line: Line, source: tuple[str, ...], device: str | None) -> None:
        self._windows += [_Window(n, device, line.t, line.t + span, source) for n, span in excuses.items()]
