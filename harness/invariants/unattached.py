"""Invariant 5: no device that was attached at the start stays unattached beyond its bound, no operation pending."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant


class Unattached(Invariant[ObservedState]):
    """A detached device is attached again within a bound. The clock starts when the device leaves its port, and starts
    again when an operation on it ends."""

    number = 5
    name = "no device stays unattached beyond its bound"
    of_time = True

    def __init__(self) -> None:
        self._ours: set[str] = set()
        self._lost: dict[str, Line] = {}
        self._clock: dict[str, float] = {}

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Note who is off its port, since when, and by which line."""
        if line.layer == "chassis" and line.event == "table":
            self._ours |= {gpuid for gpuid, device in state.world.devices.items() if device.port is not None}
        elif line.layer == "chassis" and line.fields.get("gpuid") in self._ours:
            self._note(line.fields["gpuid"], line, state)
        return iter(())

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge the clocks."""
        bound_s = state.bounds.unattached_s
        if bound_s is None:
            return
        for gpuid, line in self._lost.items():
            since = state.windows.clock_from(self.number, self._clock[gpuid], gpuid)
            if t - since > bound_s and not state.world.devices[gpuid].pending:
                free_s = f"{t - line.t:.1f} s"
                what = f"device {gpuid} is on no port for {free_s} with no operation pending (bound {bound_s:g} s)"
                yield Breach((gpuid, str(line.number)), what, line, gpuid)

    def _note(self, gpuid: str, line: Line, state: ObservedState) -> None:
        if state.world.devices[gpuid].port is not None or not state.world.devices[gpuid].present:
            self._lost.pop(gpuid, None)
        else:
            self._lost.setdefault(gpuid, line)
            self._clock[gpuid] = line.t
