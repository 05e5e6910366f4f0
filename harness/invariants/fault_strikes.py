"""Invariant 73: a fault strikes what it was declared for, and nothing else; an answer is wrong by a fault alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from mews.harness.invariants.declared_faults import HELD_BACK, ON_OPERATIONS, DeclaredFault, DeclaredFaults
from mews.harness.invariants.doubts import Doubts
from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

_BEGUN = {"attach-begun": "attach", "detach-begun": "detach"}
_HELD = ("attached", "detached", "edited", "inserted", "removed", "link-down", "link-up")
"""The lines that ``events-out-of-order`` holds back: what a host would act on. They are written in true order."""
_UNLESS_REFUSED = ("half-applied-attach", "layout-busy", "never-trains", "wrong-uuid", "lying-result")
"""Kinds that let an operation pass which is refused as it begins."""
_NAMING = "wrong-uuid"
_CANCELLED = "cancelled"
_ANSWERS = {"dropped-connection": "dropped", "timeout": "dropped", "http-error": "error", "token-ends": "error"}
_WITHOUT_EFFECT = {"dropped-connection": "after", "timeout": "after", "http-error": "before", "token-ends": "after"}
"""Kind -> whether the change takes effect before it strikes (``after``) or not at all, where its spec is silent."""


_WHEN = {**_WITHOUT_EFFECT, "layout-half-done": "after"}
_UNDOING = ("half-applied-attach", "management-reboot")
_READ = "read"


class _Operation(Struct):
    """One that is under way: the faults that fired on it, and those that had to and did not."""

    begun: Line
    fired: list[tuple[Line, DeclaredFault | None]]
    owed: list[DeclaredFault]
    interrupted: bool = False


class _Box(Struct):
    """One chassis: what fired on operations that are still to begin, by their numbers, and those under way."""

    fired: dict[int, list[tuple[Line, DeclaredFault | None]]] = field(default_factory=dict)
    under_way: dict[int, _Operation] = field(default_factory=dict)
    is_down: bool = False
    renamed: dict[str, tuple[DeclaredFault | None, float]] = field(default_factory=dict)
    """Device -> the fault on its last operation that names its UUID, and when that was finished."""
    held: int = 0
    """Changes that some fault holds back and that are still to be written."""
    awaited: list[Line] = field(default_factory=list)
    """What fired in this moment on writes that are still to begin."""


class FaultStrikes(Invariant[ObservedState]):
    """The operations of a chassis show whether a fault affects them. A fault in place that fires for certain, and is
    neither spent nor ended, affects each attach or detach that its spec admits. It first lets pass as many operations
    as it skips. Its line ``fired`` comes before the operation begins, and is never about another one. A fault that
    holds back a change of the table fires before that change. An answer states what happened. Only faults cause
    ``dropped``, ``error`` and lies, and the fault shows it (contract chassis.md section 6). Only a fault leaves an
    operation without effect that nobody refused. A fault that names the UUID of what is attached gives the device that
    UUID."""

    number = 73
    name = "a fault strikes what it was declared for, and an answer is wrong by a fault alone"
    ours_alone = True
    events = frozenset(
        {("fault", event) for event in ("added", "fired", "cleared")}
        | {("chassis", event) for event in (*_BEGUN, *_HELD, "operation-finished", "down", "up", "table")}
        | {("chassis", "device-changed")}
        | {("component", event) for event in ("killed", "crashed", "started")}
    )

    def __init__(self) -> None:
        self._faults = DeclaredFaults()
        self._boxes: dict[str, _Box] = {}
        self._struck_s = math.inf
        """When faults fired on writes that are still to begin."""
        self._doubts = Doubts()
        """Wrong answers of this moment: a chassis that is killed drops what it was at, and says so just before."""

    def on_time(self, t: float, state: ObservedState) -> Iterable[Breach]:
        """Judge the wrong answers of chassis that lived on, and faults that struck no write."""
        return self._doubts.settled(t) if t <= self._struck_s else [*self._doubts.settled(t), *self._misses()]

    def _misses(self) -> Iterator[Breach]:
        self._struck_s = math.inf
        for actor, box in self._boxes.items():
            for line in box.awaited if not self._faults.is_mute(actor) else ():
                what = f"fault {line.fields['fault']} ({line.fields['kind']}) of {actor} fires on what is no write"
                yield Breach((actor, str(line.number), "read"), what, line)
            box.awaited.clear()

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge an operation as it begins, and its answer."""
        if line.layer == "component" or line.event == "table":
            if line.actor.startswith("chassis/"):
                self._doubts.explain(line)
                self._faults.take(line)
                self._boxes.pop(line.actor, None)
            return
        if line.layer == "fault":
            if line.event == "fired":
                self._fire(self._box(line.actor), line)
            self._faults.take(line)
            return
        box = self._box(line.actor)
        if line.event in _BEGUN:
            yield from self._begin(box, line)
        elif line.event == "operation-finished":
            yield from self._finish(box, line)
        elif line.event == "device-changed":
            yield from _renamed(box, line)
        elif line.event in _HELD:
            yield from self._not_held(box, line)
        else:
            box.is_down = line.event == "down"
            for operation in box.under_way.values():
                operation.interrupted = True

    def _fire(self, box: _Box, line: Line) -> None:
        number, known = line.fields.get("operation"), self._faults.of(line)
        box.held += line.fields["kind"] == HELD_BACK
        if number is None:
            return
        box.fired.setdefault(number, []).append((line, known))
        if not _strikes_reads(line, known):
            box.awaited.append(line)
            self._struck_s = line.t

    def _box(self, actor: str) -> _Box:
        return self._boxes.setdefault(actor, _Box())

    def _begin(self, box: _Box, line: Line) -> Iterator[Breach]:
        kind = _BEGUN[line.event]
        fired = box.fired.pop(line.fields["operation"], [])
        if box.awaited:
            number = line.fields["operation"]
            box.awaited = [each for each in box.awaited if each.fields["operation"] != number]
        owed = []
        for fault in self._faults.at(line.actor).values():
            if not _admits(fault, kind, line) or any(each is fault for _, each in fired):
                continue
            if fault.is_over(line.t) or not fault.is_certain or not _is_counted(fault):
                continue
            if fault.passed < fault.skip:
                fault.passed += 1
            else:
                owed.append(fault)
        box.under_way[line.fields["operation"]] = _Operation(line, fired, owed)
        for one, known in fired:
            yield from _struck(one, known, kind, line)

    def _finish(self, box: _Box, line: Line) -> Iterator[Breach]:
        operation = box.under_way.pop(line.fields["operation"], None)
        if operation is None or line.fields["reason"] == _CANCELLED:
            return
        begun, refused = operation.begun, bool(line.fields["reason"])
        for fault in operation.owed:
            if refused and fault.kind in _UNLESS_REFUSED:
                continue
            what = f"{begun.event} of {begun.fields['device']} passes fault {fault.kind} of {line.actor}"
            yield Breach((line.actor, str(begun.number), fault.kind), what, begun, after=fault.added)
        if operation.interrupted or box.is_down or not self._are_faults_known(line.actor):
            return
        wrong = _answered(line, operation.fired) or _shown(line, operation)
        renaming = (known for _, known in operation.fired if known is not None and known.kind == _NAMING)
        box.renamed[line.fields["device"]] = next(renaming, None), line.t
        if wrong:
            what = f"{line.fields['kind']} of {line.fields['device']} {wrong}"
            self._doubts.add(line, Breach((line.actor, str(line.number), "answer"), what, line, after=begun))

    def _not_held(self, box: _Box, line: Line) -> Iterator[Breach]:
        if box.held:
            box.held -= 1
            return
        for fault in self._faults.known.get(line.actor, {}).values():
            may_pass = fault.skip or not fault.is_certain or fault.spec.get("expires_s") is not None
            if fault.kind == HELD_BACK and not may_pass and not fault.is_over(line.t):
                what = f"{line.event} of {line.fields['device']} passes fault {fault.kind} of {line.actor}"
                yield Breach((line.actor, str(line.number), fault.kind), what, line, after=fault.added)

    def _are_faults_known(self, actor: str) -> bool:
        return not self._faults.known.get(actor) or bool(self._faults.at(actor))


def _struck(one: Line, known: DeclaredFault | None, kind: str, line: Line) -> Iterator[Breach]:
    """Yield what is wrong with a fault that has fired on the operation that begins."""
    what = f"fault {one.fields['fault']} ({one.fields['kind']}) fires on an {kind} of {line.fields['device']}"
    if one.fields["excuses"] and not one.fields.get("device"):
        yield Breach((line.actor, str(one.number), "device"), f"{what}, and names no device", one)
    if known is None:
        return
    if not _admits(known, kind, line):
        yield Breach((line.actor, str(one.number)), f"{what}, which its spec leaves out", one, after=known.added)
    elif _is_counted(known) and known.passed < known.skip:
        what = f"{what}, and it was to let {known.skip} pass first"
        yield Breach((line.actor, str(one.number)), what, one, after=known.added)


def _renamed(box: _Box, line: Line) -> Iterator[Breach]:
    """Yield a device whose UUID a fault sets has the one that the fault names."""
    fault, finished_s = box.renamed.pop(line.fields["device"], (None, 0.0))
    wanted = None if fault is None or finished_s != line.t else fault.spec.get("uuid")
    if fault is not None and wanted is not None and line.fields["uuid"] != wanted:
        what = f"{line.fields['device']} is shown as {line.fields['uuid']!r}, and fault {fault.kind} says {wanted!r}"
        yield Breach((line.actor, str(line.number)), what, line, after=fault.added)


def _admits(fault: DeclaredFault, kind: str, line: Line) -> bool:
    if kind not in ON_OPERATIONS.get(fault.kind, ()) or fault.due_s != float("inf"):
        return False
    return fault.spec.get("operation") in (None, kind) and fault.is_about(line)


def _strikes_reads(line: Line, known: DeclaredFault | None) -> bool:
    """Return whether such a fault may strike a read, of which there is no line."""
    wanted = None if known is None else known.spec.get("operation")
    return wanted == _READ or (wanted is None and _READ in ON_OPERATIONS.get(line.fields["kind"], (_READ,)))


def _is_counted(fault: DeclaredFault) -> bool:
    """Return whether the journal shows all that it lets pass: reads have no lines. A lie that is none is not told."""
    reads = "read" in ON_OPERATIONS.get(fault.kind, ()) and fault.spec.get("operation") is None
    return not (fault.skip and reads) and not (fault.kind == "lying-result" and fault.spec.get("says") is not None)


def _answered(line: Line, fired: Sequence[tuple[Line, DeclaredFault | None]]) -> str:
    """Return what is wrong with an answer in which no fault has a hand, or with an operation that nobody refused and
    that took no effect, which no fault explains."""
    answer, truth = line.fields["answer"], line.fields["truth"]
    if not fired and answer != str(truth).lower():
        return f"is answered {answer!r}, truly {str(truth).lower()}, and no fault has struck it"
    if not truth and not line.fields["reason"] and not any(_may_undo(one, known) for one, known in fired):
        return "is refused for no reason, has no effect, and no fault has kept it from that"
    return ""


def _may_undo(fired: Line, known: DeclaredFault | None) -> bool:
    """Return whether a fault leaves an operation without effect; one that a chassis has by nature may."""
    kind = fired.fields["kind"]
    if kind in _UNDOING or known is None:
        return True
    return kind in _WHEN and known.spec.get("when", _WHEN[kind]) == "before"


def _shown(line: Line, operation: _Operation) -> str:
    """Return which effect of the one known fault that fired does not show."""
    if len(operation.fired) != 1 or operation.fired[0][1] is None:
        return ""
    fault, answer, truth = operation.fired[0][1], line.fields["answer"], line.fields["truth"]
    what = f"is struck by {fault.kind}, and answered {answer!r}, truly {str(truth).lower()}"
    if fault.kind in _ANSWERS:
        when = fault.spec.get("when", _WITHOUT_EFFECT[fault.kind])
        return what if answer != _ANSWERS[fault.kind] or (truth and when == "before") else ""
    if fault.kind == "lying-result":
        return what if fault.spec.get("says") is None and answer == str(truth).lower() else ""
    if fault.kind == "half-applied-attach":
        says = str(fault.spec.get("says", True)).lower()
        return what if truth or answer != says else ""
    if fault.kind == "layout-busy":
        return what if truth or line.fields["reason"] != "busy" else ""
    if fault.kind == "layout-half-done":
        return what if truth and fault.spec.get("when") == "before" else ""
    if fault.kind == "never-trains":
        return what if truth or not line.fields["reason"] else ""
    if fault.kind == "slow-operation" and not line.fields["reason"]:
        took_s, least_s = line.t - operation.begun.t, float(fault.spec.get("extra_s", 30.0))
        return f"is slow by {least_s:g} s, and takes {took_s:g} s" if took_s < least_s - 0.001 else ""
    return ""
