"""A law of reports: who does something to an object says so by an event on it, in the same moment."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line

_KUBELET = "kubelet/"

Reported = Callable[[Line], tuple[str, ...]]
"""The reasons of the events that a line is to have on its object; () for none."""


class _Owed(Struct):
    """A line of which an event was to tell, and the last one about the same object in its moment: all came without."""

    act: Line
    follower: Line | None = None


class ReportedActs(Invariant[RunState]):
    """``acts``: (layer, event) -> what lines of it are to have. Only the first event of a reason on an object is news,
    so a reason is owed once. Where it is missing, the last line about the object in that moment is named, and the first
    one after it. Nothing is owed while a component is down, as one that has died reports nothing; a kubelet that is
    down reports nothing of its own node. An event may come before or after what it reports, in the same moment."""

    ours_alone = True
    acts: Mapping[tuple[str, str], Reported] = {}

    def __init__(self) -> None:
        self._owed: dict[tuple[str, str], _Owed] = {}
        self._known: set[tuple[str, str]] = set()
        self._down: set[str] = set()
        self._due_s = -math.inf

    def on_line(self, line: Line, state: RunState) -> Iterable[Breach]:
        """Take in what is done, and what is reported."""
        found: Iterable[Breach] = ()
        if self._owed and line.t > self._due_s and not state.bound_s("lag_s"):
            found = list(self._overdue(line, state))
        if line.layer == "component" and line.actor.startswith(_KUBELET):
            node = f"node/{line.actor.removeprefix(_KUBELET)}"
            self._owed = {report: owed for report, owed in self._owed.items() if report[0] != node}
        elif line.layer == "component":
            self._down.discard(line.actor) if line.event == "started" else self._down.add(line.actor)
            self._owed.clear()
        elif line.event == "event":
            report = str(line.fields["object"]), str(line.fields["reason"])
            self._known.add(report)
            self._owed.pop(report, None)
            self._follow(report[0], line)
        elif not self._down:
            self._act(line)
        return found

    def _follow(self, about: str, line: Line) -> None:
        for (owner, _), owed in self._owed.items():
            if owner == about:
                owed.follower = line

    def _act(self, line: Line) -> None:
        self._follow(line.actor, line)
        act = self.acts.get((line.layer, line.event))
        for reason in act(line) if act is not None else ():
            if (line.actor, reason) not in self._known:
                self._owed[line.actor, reason] = _Owed(line)
                self._due_s = line.t

    def on_time(self, t: float, state: RunState) -> Iterable[Breach]:
        """Judge what nobody has reported in its moment."""
        if not self._owed or t <= self._due_s or state.bound_s("lag_s"):
            return ()
        return list(self._overdue(None, state))

    def _overdue(self, line: Line | None, state: RunState) -> Iterator[Breach]:
        for (about, reason), owed in self._owed.items():
            self._known.add((about, reason))
            if self.of_time and state.clock_from(self.number, owed.act.t) > owed.act.t:
                continue  # lost or late; this may be judged long after
            what = f"{owed.act.event} of {about}, and no event {reason} reports it"
            first = owed.follower or line or owed.act
            yield Breach((about, reason), what, first, after=owed.act, due_s=owed.act.t)
        self._owed.clear()
