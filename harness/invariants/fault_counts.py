"""Invariant 72: a fault fires when it was declared to, and as often."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from mews.harness.invariants.declared_faults import DeclaredFault, DeclaredFaults
from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

AT_ONCE_S = 0.001
"""Times are sums of seconds: what is due at a moment may come so much later."""
_PLANTS = "read-aftermath"
"""The kind of fault that plants others, which have no ``added`` line (contract chassis.md section 2)."""
_PLANTED = ("partial-list", "dropped-connection")


class FaultCounts(Invariant[ObservedState]):
    """The lines of the layer ``fault`` show what fires. A fault with a set time is triggered at that time, and not
    before it, unless it is cleared, or its chassis is reset, before. Each ``fired`` is of a fault that is in place and
    of its kind. It counts one more than the one before, and reports what remains of the ``count``. A fault that is
    spent or cleared fires no more. No fault is added to a chassis that is down, which would forget the fault as it
    starts. The law does not judge what an ``events-out-of-order`` holds back."""

    number = 72
    name = "a fault fires when it was declared to, and as often"
    ours_alone = True

    def __init__(self) -> None:
        self._faults = DeclaredFaults()
        self._built_in: dict[tuple[str, str], int] = {}
        self._cleared: dict[tuple[str, str], Line] = {}
        self._due_s = math.inf
        self._plants: set[str] = set()
        self._down: dict[str, Line] = {}
        """Chassis that are down, and since which line."""

    def on_line(self, line: Line, state: ObservedState) -> Iterable[Breach]:
        """Judge what fires, and what does not; of all lines, so that most must cost nothing."""
        if line.layer == "fault":
            return self._judge(line)
        found: Iterable[Breach] = ()
        if line.t > self._due_s + AT_ONCE_S:
            found = list(self._late(line))
            self._due_s = self._next_s()
        if line.event in ("table", "killed", "crashed", "started") and line.actor.startswith("chassis/"):
            self._forget(line)
        return found

    def _forget(self, line: Line) -> None:
        if line.event in ("killed", "crashed"):
            self._down[line.actor] = line
        elif line.event == "started":
            self._down.pop(line.actor, None)
        self._faults.take(line)
        for known in (self._built_in, self._cleared):
            for key in [key for key in known if key[0] == line.actor]:
                del known[key]
        self._due_s = self._next_s()

    def _judge(self, line: Line) -> Iterator[Breach]:
        key = line.actor, str(line.fields["fault"])
        if line.t > self._due_s + AT_ONCE_S:
            yield from self._late(line)
        if line.event == "fired":
            yield from self._fires(line, key)
        elif line.event == "cleared":
            self._cleared[key] = line
        elif line.event == "added" and line.actor in self._down:
            what = f"fault {key[1]} ({line.fields['kind']}) is added to {line.actor}, which is down and will forget it"
            yield Breach((*key, str(line.number)), what, line, after=self._down[line.actor])
        self._faults.take(line)
        self._due_s = self._next_s()

    def _fires(self, line: Line, key: tuple[str, str]) -> Iterator[Breach]:
        fields, known = line.fields, self._faults.of(line)
        what = f"fault {key[1]} ({fields['kind']}) of {line.actor}"
        if fields["kind"] == _PLANTS:
            self._plants.add(line.actor)
        if known is not None:
            wrong = _miscounted(fields, known) or ("" if self._faults.is_mute(line.actor) else _early(line, known))
            if wrong:
                yield Breach((*key, str(line.number)), f"{what} {wrong}", line, after=known.added)
        elif fields.get("built_in"):
            before = self._built_in.get(key, 0)
            self._built_in[key] = before + 1
            if fields["fired"] != before + 1:
                count = f"{what} says that it fired {fields['fired']} times, and it did {before + 1}"
                yield Breach((*key, str(line.number)), count, line)
        elif key in self._cleared:
            yield Breach((*key, str(line.number)), f"{what} fires, and it was cleared", line, after=self._cleared[key])
        elif (key[0] in self._faults.known or key[0].startswith("host/")) and not self._may_be_planted(line):
            yield Breach((*key, str(line.number)), f"{what} fires, and nobody has added it", line)

    def _may_be_planted(self, line: Line) -> bool:
        return self._faults.is_mute(line.actor) or (line.actor in self._plants and line.fields["kind"] in _PLANTED)

    def _late(self, line: Line) -> Iterator[Breach]:
        for actor in self._faults.known:
            for name, fault in self._faults.at(actor).items():
                if not fault.fired and fault.due_s < line.t - AT_ONCE_S:
                    what = f"fault {name} ({fault.kind}) of {actor} was to strike at {fault.due_s:g} s, and has not"
                    yield Breach((actor, name, "late"), what, line, after=fault.added)
                    fault.due_s = math.inf

    def _next_s(self) -> float:
        waiting = (
            each.due_s for actor in self._faults.known for each in self._faults.at(actor).values() if not each.fired
        )
        return min(waiting, default=math.inf)


def _early(line: Line, known: DeclaredFault) -> str:
    if known.fired or math.isinf(known.due_s) or line.t >= known.due_s - AT_ONCE_S:
        return ""
    return f"was to strike at {known.due_s:g} s, and fires at {line.t:g} s"


def _miscounted(fields: dict[str, object], known: DeclaredFault) -> str:
    if fields["kind"] != known.kind:
        return f"fires, and was added as {known.kind}"
    if fields["fired"] != known.fired + 1:
        return f"says that it fired {fields['fired']} times, and it did {known.fired + 1}"
    left = None if known.count is None else known.count - known.fired - 1
    if left is not None and left < 0:
        return f"fires once more, and it may only {known.count} times"
    if fields.get("left") != left:
        return f"says that {fields.get('left')} are left, and {left} are"
    return ""
