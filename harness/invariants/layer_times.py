"""Invariant 1002: the layers of a device on its host come up one after the other, each in its time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from mews.harness.invariants.declared_faults import HELD_BACK, DeclaredFaults
from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

NEAR_S = 0.001
"""Times are sums of seconds."""
_NEXT: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "link-up": ("function-added", ("function",)),
    "function-added": ("driver-bound", ("driver",)),
    "driver-bound": ("nvml-visible", ("node", "nvml")),
}
"""A layer -> the one that comes up next, and the arrows that lead to it (``HostProfile``)."""
_FIRST = "link-up"
_PUT = ("attached", "edited", "inserted", "link-up")
"""What a chassis does so that a device of a running host trains its link."""
_TAKEN = ("detached", "removed", "link-down")
_VIRTUAL = "VF"
_UNBOUND, _RECOVERED = "driver-unbound", "nvml-recovered"
_UNKNOWN, _UNKNOWN_S = "nvml-unknown-error", 10.0
"""A fault by which NVML knows nothing of a GPU, and for how long where its spec is silent."""

Key = tuple[str, str]
"""The host's actor, and the GPUID."""


class _Awaited(Struct):
    """What comes up next, and when."""

    event: str
    since: Line
    least_s: float
    most_s: float


class LayerTimes(Invariant[ObservedState]):
    """A device that its chassis attaches to a running host comes up there (contract host.md section 1). Its link
    trains, the kernel enumerates it, and its driver takes it. NVML then sees a GPU. Each layer comes up in the time
    that the latency profile of its host gives it. The law does not judge a layer that a fault keeps or slows, or from
    which an operator took the driver. Without hot-plug interrupts (``pciehp: false``), the kernel enumerates nothing by
    itself. A fault may hide a GPU from NVML (``nvml-unknown-error``). NVML knows the GPU again when the time of the
    fault has passed."""

    number = 1002
    name = "the layers of a device come up in the time that its host takes"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("chassis", event) for event in (*_PUT, *_TAKEN, "table")}
        | {("host", event) for event in (_FIRST, *_NEXT, "nvml-visible", "nvml-hidden", _UNBOUND, "function-removed")}
        | {("host", event) for event in ("link-down", "lost", "stuck", "table", "rescanned", "powered-off")}
        | {("host", "powered-on"), ("host", _RECOVERED), ("component", "killed")}
        | {("fault", event) for event in ("added", "fired", "cleared")}
    )

    def __init__(self) -> None:
        self._awaited: dict[Key, _Awaited] = {}
        self._failing: dict[Key, _Awaited] = {}
        """GPUs of which NVML knows nothing for a while."""
        self._next_s = math.inf
        self._faults = DeclaredFaults()
        self._off: set[str] = set()
        self._known: set[str] = set()
        """Hosts that have shown their table."""
        self._there: set[Key] = set()
        """Devices of which a link is up, or something dead is left."""
        self._unbound: dict[Key, Line] = {}
        """Devices whose driver an operator took."""
        self._held_back: set[str] = set()
        self._dark: set[str] = set()
        """Devices whose link is down, by the word of their chassis."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Take in what happens to a device, and judge the layer that has come up."""
        if state.bounds.lag_s or not state.bounds.spans:
            return
        if line.layer == "host":
            yield from self._host(line, state)
        elif line.layer == "chassis":
            self._chassis(line, state)
        elif line.layer == "component":
            self._awaited.clear()
        else:
            self._fault(line)

    def on_time(self, t: float, state: ObservedState) -> Iterable[Breach]:
        """Judge what has not come up."""
        return () if t <= self._next_s + NEAR_S else list(self._missing(t))

    def _missing(self, t: float) -> Iterator[Breach]:
        for key, awaited in self._late(t):
            what = f"{awaited.event} of {key[1]} on {key[0]} does not follow {awaited.since.event} in its time"
            at_once = awaited.most_s == 0
            due_s = None if at_once else awaited.since.t + awaited.most_s
            due_after = awaited.since if at_once else None
            first = awaited.since
            yield Breach((*key, str(first.number)), what, first, key[1], due_s=due_s, due_after=due_after)
        waiting = (*self._awaited.values(), *self._failing.values())
        self._next_s = min((each.since.t + each.most_s for each in waiting), default=math.inf)

    def _late(self, t: float) -> list[tuple[Key, _Awaited]]:
        """Return what should have come up by then, and is awaited no more."""
        found = []
        for known in (self._awaited, self._failing):
            for key in [key for key, each in known.items() if t > each.since.t + each.most_s + NEAR_S]:
                found.append((key, known.pop(key)))
        return found

    def _fault(self, line: Line) -> None:
        key = line.actor, str(line.fields.get("gpuid"))
        if line.fields["kind"] == HELD_BACK:
            self._held_back.add(line.actor)
        elif line.event == "fired":
            self._awaited.pop(key, None)
            known = self._faults.of(line)
            if line.fields["kind"] == _UNKNOWN and known is not None:
                for_s = float(known.spec.get("for_s", _UNKNOWN_S))
                self._failing[key] = _Awaited(_RECOVERED, line, 0.0, for_s)
                self._next_s = min(self._next_s, line.t + for_s)
        elif line.event == "cleared":
            self._failing = {each: failing for each, failing in self._failing.items() if each[0] != line.actor}
        self._faults.take(line)

    def _await(self, key: Key, event: str, since: Line, state: ObservedState, arrows: tuple[str, ...]) -> None:
        spans = state.bounds.spans
        if not all((key[0], arrow) in spans for arrow in arrows):
            return
        least_s = sum(spans[key[0], arrow][0] for arrow in arrows)
        most_s = sum(spans[key[0], arrow][1] for arrow in arrows)
        self._awaited[key] = _Awaited(event, since, least_s, most_s)
        self._next_s = min(self._next_s, since.t + most_s)

    def _chassis(self, line: Line, state: ObservedState) -> None:
        if line.event == "table":
            self._awaited.clear()
            self._dark.clear()
            return
        gpuid, host = str(line.fields["gpuid"]), line.fields.get("host")
        for key in [key for key in self._awaited if key[1] == gpuid]:
            del self._awaited[key]
        if line.event == "link-down":
            self._dark.add(gpuid)
        elif line.event in ("link-up", "inserted"):
            self._dark.discard(gpuid)
        key = f"host/{host}", gpuid
        if line.event in _TAKEN or not host or gpuid in self._dark or line.actor in self._held_back:
            return
        is_put = line.event != "edited" or line.fields["old_host"] != host
        if is_put and key[0] in self._known and key[0] not in self._off and key not in self._there:
            self._await(key, _FIRST, line, state, ("link",))

    def _host(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        if "gpuid" not in line.fields:
            self._of_all(line)
            return
        key = line.actor, str(line.fields["gpuid"])
        if line.event != "nvml-visible":
            self._failing.pop(key, None)
        if line.event == _RECOVERED:
            return
        awaited = self._awaited.pop(key, None)
        if awaited is not None and awaited.event == line.event:
            took_s = line.t - awaited.since.t
            if not awaited.least_s - NEAR_S <= took_s <= awaited.most_s + NEAR_S:
                within = f"in {awaited.least_s:g} s to {awaited.most_s:g} s"
                what = f"{line.event} of {key[1]} on {key[0]} comes after {took_s:g} s, and its host does it {within}"
                yield Breach((*key, str(line.number)), what, line, key[1], after=awaited.since)
        if line.event == "link-down":
            self._there.discard(key)
        else:
            self._there.add(key)
        self._note_driver(key, line)
        following = _NEXT.get(line.event)
        if following is None or line.fields["kind"] == _VIRTUAL:
            return
        if line.event == "function-added" and key in self._unbound:
            return
        if line.event != "driver-bound" or (line.fields["kind"] == "GPU" and line.fields["minor"] is not None):
            self._await(key, following[0], line, state, following[1])

    def _note_driver(self, key: Key, line: Line) -> None:
        """Note whether an operator took the driver alone: in a removal all that is below it goes in the same moment."""
        if line.event == _UNBOUND:
            self._unbound[key] = line
        elif line.event == "driver-bound" or (
            line.event == "function-removed" and key in self._unbound and self._unbound[key].t == line.t
        ):
            self._unbound.pop(key, None)

    def _of_all(self, line: Line) -> None:
        """A whole machine begins anew, or looks for what it has not found."""
        for known in (self._awaited, self._failing):
            for key in [key for key in known if key[0] == line.actor and line.event != "rescanned"]:
                del known[key]
        if line.event in ("rescanned", "powered-off", "powered-on", "table"):
            self._unbound = {key: since for key, since in self._unbound.items() if key[0] != line.actor}
        if line.event == "powered-off":
            self._off.add(line.actor)
        elif line.event == "table":
            self._off.discard(line.actor)
            self._known.add(line.actor)
            self._there = {key for key in self._there if key[0] != line.actor}
            self._there |= {(line.actor, gpuid) for gpuid in line.fields["devices"]}
        elif line.event == "powered-on":
            self._off.discard(line.actor)
