"""Invariant 10: no XID, and no holder loses its GPU, unless a fault, another editor or a surprise removal was it."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

FOREIGN = ("edited", "removed", "link-down")
"""What happens to a device in a chassis' table without an operation: another editor's doing, or a fault's."""

BEGINNINGS = ("detach-begun", "attach-begun")
OPERATIONS = ("detached", "attached")


class Orderly(Invariant[ObservedState]):
    """An XID of a GPU, or the loss of a held GPU, needs an explanation. A fault or another editor affected the device,
    and no operation begun since then has moved it. Or the systems of the run remove devices by surprise and declare
    this (``Pooled.surprise``). A chassis that is reset under the cluster counts as another editor, too. The law is
    judged ``lag_s`` later, because the hosts' lines may come before the lines of their chassis."""

    number = 10
    name = "no XID and no holder loses its GPU without a surprise"

    def __init__(self) -> None:
        self._causes: dict[str, list[tuple[float, bool]]] = {}
        self._known: dict[str, int] = {}
        self._doubts: list[Line] = []
        self._tables: set[str] = set()

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Take in what hosts lose, and what happened to their devices."""
        gpuid = line.fields.get("gpuid")
        if line.layer == "chassis" and line.event == "table":
            self._on_table(line, state)
        elif gpuid is None:
            return iter(())
        elif line.layer == "host" and line.event in ("xid", "lost"):
            self._doubts.append(line)
        elif line.layer == "chassis" and line.event in BEGINNINGS:
            self._known[gpuid] = len(self._causes.get(gpuid, []))
        elif line.layer == "chassis" and line.event in FOREIGN:
            self._note(gpuid, line.t, True)
        elif line.layer == "chassis" and line.event in OPERATIONS:
            self._on_operation(gpuid, line.t)
        elif line.layer == "fault" and line.event == "fired":
            self._note(gpuid, line.t, True)
        return iter(())

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge what hosts lost that long ago."""
        due = [line for line in self._doubts if t - line.t >= state.bounds.lag_s]
        self._doubts = [line for line in self._doubts if t - line.t < state.bounds.lag_s]
        surprise = any(pooled.surprise for pooled in state.systems.pooled)
        for line in due:
            gpuid = line.fields["gpuid"]
            if not surprise and not self._is_explained(gpuid, line.t, state.bounds.lag_s):
                yield Breach((gpuid, str(line.number)), _what(line, gpuid), line, gpuid)

    def _on_table(self, line: Line, state: ObservedState) -> None:
        """The first is the start; a later one is a reset."""
        if line.actor in self._tables:
            for known in state.world.devices.values():
                if known.chassis == line.actor:
                    self._note(known.gpuid, line.t, True)
        self._tables.add(line.actor)

    def _on_operation(self, gpuid: str, t: float) -> None:
        """One that was under way when somebody else moved the device goes on with what he made of it."""
        causes = self._causes.get(gpuid, [])
        if not any(foreign for _, foreign in causes[self._known.get(gpuid, len(causes)) :]):
            self._note(gpuid, t, False)

    def _note(self, gpuid: str, t: float, foreign: bool) -> None:
        self._causes.setdefault(gpuid, []).append((t, foreign))

    def _is_explained(self, gpuid: str, t: float, lag_s: float) -> bool:
        """Return whether the last thing that happened to the device by then was no operation. Where lines may lag,
        anything of that kind about that time will do."""
        causes = self._causes.get(gpuid, [])
        before = [foreign for at, foreign in causes if at <= t]
        about = lag_s > 0 and any(foreign and abs(at - t) <= lag_s for at, foreign in causes)
        return about or (bool(before) and before[-1])


def _what(line: Line, gpuid: str) -> str:
    host = line.actor.partition("/")[2]
    how = f"reports XID {line.fields['xid']} of" if line.event == "xid" else "lost"
    return f"host {host} {how} {gpuid}, and no fault, other editor or surprise removal explains it"
