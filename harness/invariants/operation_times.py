"""Invariant 1001: an operation of a chassis takes what its latency profile says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from mews.harness.invariants.declared_faults import DeclaredFault, DeclaredFaults
from mews.harness.invariants.doubts import Doubts
from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

NEAR_S = 0.001
"""Times are sums of seconds."""
_BEGUN = {"attach-begun": "attach", "detach-begun": "detach"}
_CANCELLED, _REBOOT = "cancelled", "management-reboot"
_LYING, _NEVER, _BUSY, _SLOW = "lying-result", "never-trains", "layout-busy", "slow-operation"
_STRETCHED = (_LYING, _NEVER, _BUSY, _SLOW)
"""Faults by which an operation takes another time than its profile says (contract chassis.md section 6)."""
_WAIT_S, _EXTRA_S = 11.0, 30.0
"""Where a spec is silent."""
_ANY = (0.0, math.inf)

Fired = tuple[Line, DeclaredFault | None]
Span = tuple[float, float]
Spans = Mapping[tuple[str, str], Span]


class _Begun(Struct):
    """An operation under way, and when the one before it has ended; infinite: nobody knows."""

    line: Line
    fired: list[Fired]
    free_s: float


class _Cpu(Struct):
    """The management CPU of one chassis: what is under way, since when it is free, and until when it may still be
    busy with an operation that was cancelled."""

    free_s: float
    under_way: dict[int, _Begun] = field(default_factory=dict)
    fired: dict[int, list[Fired]] = field(default_factory=dict)
    busy_s: float = -math.inf
    down: Line | None = None


class OperationTimes(Invariant[ObservedState]):
    """The management CPU of a chassis serves one write after the other (contract chassis.md section 2). From the end of
    the one before, or from its own beginning, a write takes what the latency profile of its chassis says. Only a
    fault changes that time. What cannot be done even as it begins is refused without delay. A chassis
    whose CPU restarts is back when it said that it would be (``until_s``), unless the fault is cleared. The law does
    not judge what a restart or a cancelled operation has mixed up."""

    number = 1001
    name = "an operation of a chassis takes what its latency profile says"
    ours_alone = True
    events = frozenset(
        {("chassis", event) for event in (*_BEGUN, "operation-finished", "table", "down", "up")}
        | {("fault", event) for event in ("added", "fired", "cleared")}
        | {("component", event) for event in ("killed", "crashed", "started")}
    )

    def __init__(self) -> None:
        self._faults = DeclaredFaults()
        self._cpus: dict[str, _Cpu] = {}
        self._doubts = Doubts()
        """Of this moment: a chassis that is killed or reset drops what it was at, and says so just before."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge when an operation, or a restart, has ended."""
        spans = state.bounds.spans
        if state.bounds.lag_s or (line.actor, "attach") not in spans:
            return
        if line.layer == "fault":
            yield from self._fault(line)
        elif line.layer == "component" or line.event == "table":
            self._doubts.explain(line)
            self._faults.take(line)
            self._cpus[line.actor] = _Cpu(line.t)
        elif line.event in _BEGUN:
            cpu, number = self._cpu(line), line.fields["operation"]
            free_s = math.inf if line.t < cpu.busy_s else cpu.free_s
            cpu.under_way[number] = _Begun(line, cpu.fired.pop(number, []), free_s)
        elif line.event == "operation-finished":
            self._finished(self._cpu(line), line, spans)
        elif line.event == "down":
            self._cpus[line.actor] = _Cpu(line.t, down=line)
        else:
            yield from self._back(self._cpu(line), line)
            self._cpus[line.actor] = _Cpu(line.t)

    def on_time(self, t: float, state: ObservedState) -> Iterable[Breach]:
        """Judge the operations of chassis that lived on."""
        return self._doubts.settled(t)

    def _cpu(self, line: Line) -> _Cpu:
        return self._cpus.setdefault(line.actor, _Cpu(0.0))

    def _fault(self, line: Line) -> Iterator[Breach]:
        if line.event == "cleared" and line.fields["kind"] == _REBOOT:
            self._doubts.explain(line)
            down = self._cpu(line).down
            if down is not None and not self._faults.is_mute(line.actor):
                what = f"fault {line.fields['fault']} of {line.actor} is cleared, and the chassis stays away"
                yield Breach((line.actor, str(line.number)), what, line, after=down)
        number = line.fields.get("operation")
        if line.event == "fired" and number is not None:
            self._cpu(line).fired.setdefault(number, []).append((line, self._faults.of(line)))
        self._faults.take(line)

    def _back(self, cpu: _Cpu, line: Line) -> Iterator[Breach]:
        if self._faults.is_mute(line.actor):
            return
        key = line.actor, str(line.number)
        if cpu.down is None:
            yield Breach(key, f"{line.actor} is back, and was not away", line)
            return
        until_s = float(cpu.down.fields["until_s"])
        if abs(line.t - until_s) > NEAR_S:
            what = f"{line.actor} is back at {line.t:g} s, and was to be away until {until_s:g} s"
            self._doubts.add(line, Breach(key, what, line, after=cpu.down))

    def _finished(self, cpu: _Cpu, line: Line, spans: Spans) -> None:
        own = cpu.under_way.pop(line.fields["operation"], None)
        if own is None:
            return
        begun_s, free_s = own.line.t, own.free_s
        later = [each for number, each in cpu.under_way.items() if number > line.fields["operation"]]
        if line.fields["reason"] == _CANCELLED:
            # The CPU is busy with it for as long as it would have been.
            cpu.busy_s = max(cpu.busy_s, max(begun_s, line.t) + spans[line.actor, line.fields["kind"]][1])
            for each in later:
                each.free_s = math.inf
            return
        for each in later:
            each.free_s = line.t if each.free_s < math.inf or free_s == math.inf else each.free_s
        cpu.free_s = line.t
        is_lost = line.fields["answer"] == "dropped" and not own.fired
        if math.isinf(free_s) or is_lost or self._faults.is_mute(line.actor):
            return
        since_s = max(begun_s, free_s)
        least_s, most_s = _span(line, own.fired, spans)
        if not least_s - NEAR_S <= line.t - since_s <= most_s + NEAR_S:
            within = f"{least_s:g} s" if least_s == most_s else f"{least_s:g} s to {most_s:g} s"
            took = f"takes {line.t - since_s:g} s, and its chassis takes {within}"
            what = f"{line.fields['kind']} of {line.fields['device']} {took}"
            due_s = since_s if line.t - since_s > most_s else None
            self._doubts.add(line, Breach((line.actor, str(line.number)), what, line, after=own.line, due_s=due_s))


def _span(line: Line, fired: Sequence[Fired], spans: Spans) -> Span:
    """Return the least and the most that it takes, by its chassis and by the fault that struck it."""
    least_s, most_s = spans[line.actor, line.fields["kind"]]
    usual = (0.0 if line.fields["reason"] else least_s, most_s)
    stretched = [each for each in fired if each[0].fields["kind"] in _STRETCHED]
    if not stretched:
        return usual
    return _struck(*stretched[0], spans, usual) if len(stretched) == 1 else _ANY


def _struck(fired: Line, known: DeclaredFault | None, spans: Spans, usual: Span) -> Span:
    kind, spec = fired.fields["kind"], None if known is None else known.spec
    if kind == _LYING:
        if spec is None:
            own = spans.get((fired.actor, "lie"), usual)
            return min(usual[0], own[0]) if usual[0] == 0 else own[0], own[1]
        return usual if spec.get("latency") is None else _ANY
    if spec is None:
        return _ANY
    if kind == _NEVER:
        wait_s = float(spec.get("wait_s", _WAIT_S))
        return wait_s, wait_s
    if kind == _BUSY:
        return 0.0, 0.0
    factor, extra_s = float(spec.get("factor", 1.0)), float(spec.get("extra_s", _EXTRA_S))
    return usual[0] * factor + extra_s, usual[1] * factor + extra_s
