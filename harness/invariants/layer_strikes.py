"""Invariant 74: a fault on a layer of a host strikes the devices whose layer comes up."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.declared_faults import DeclaredFault, DeclaredFaults
from mews.harness.invariants.doubts import Doubts
from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

_ARROWS = {"link-up": "link", "function-added": "function", "driver-bound": "driver", "nvml-visible": "nvml"}
"""Event of a host -> the layer that has come up. The device node has no line."""
_CUTS, _FAILS, _SLOW, _UNKNOWN = "layer-cut", "driver-fails", "layer-slow", "nvml-unknown-error"

Key = tuple[str, ...]
"""Host, GPUID, address."""


class LayerStrikes(Invariant[ObservedState]):
    """A fault on a layer of a host affects each device whose layer begins to come up (contracts host.md section 1,
    chassis.md section 6). The fault must be in place, certain to fire, and neither spent nor ended. The layer then does
    not come up (``layer-cut``, ``driver-fails``) or takes longer (``layer-slow``). Or NVML does not know the GPU
    (``nvml-unknown-error``). A layer begins where the layer below has come up just before. The law claims nothing about
    a layer that is tried again by hand. A device is ``stuck`` at a layer only if a fault fires on it. Once the last
    fault on layers of its host is cleared, the layer comes up in the same moment."""

    number = 74
    name = "a fault on a layer of a host strikes the devices whose layer comes up"
    ours_alone = True
    events = frozenset(
        {("host", event) for event in (*_ARROWS, "stuck", "rescanned", "table", "powered-off", "powered-on")}
        | {("host", event) for event in ("link-down", "function-removed", "driver-unbound", "nvml-hidden", "lost")}
        | {("fault", event) for event in ("added", "fired", "cleared")}
    )

    def __init__(self) -> None:
        self._faults = DeclaredFaults()
        self._last: dict[Key, Line] = {}
        """The last line of a layer."""
        self._fired: dict[tuple[str, str], list[Line]] = {}
        """Host and GPUID -> what has fired on it since the last line of a layer."""
        self._stuck: dict[Key, Line] = {}
        self._freed: dict[Key, Line] = {}
        """Devices that were stuck, and the line by which nothing keeps them any more."""
        self._doubts = Doubts()
        """Of this moment: a rescan says what it was after the layers that it brought up."""

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge what came up by itself, and what did not."""
        yield from self._doubts.settled(t)
        for key in [key for key, cleared in self._freed.items() if t > cleared.t]:
            yield from self._stays(key, t, state)

    def _stays(self, key: Key, t: float, state: ObservedState) -> Iterator[Breach]:
        """Yield a device that did not come up in the moment in which it was freed, whenever it does."""
        cleared = self._freed.pop(key, None)
        if cleared is not None and t > cleared.t and not state.bounds.lag_s:
            what = f"{key[1]} stays stuck on {key[0]}, and nothing keeps it any more"
            yield Breach((*key, str(cleared.number)), what, cleared, due_after=cleared)

    # Complex: one branch for each kind of line, and it runs for every line.
    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:  # noqa: C901
        """Judge a layer that came up, or did not."""
        if line.layer == "fault":
            if line.event == "fired" and line.actor.startswith("host/"):
                self._fired.setdefault((line.actor, str(line.fields.get("gpuid"))), []).append(line)
            self._faults.take(line)
            if line.event == "cleared" and line.fields["kind"] in (_CUTS, _FAILS):
                self._free(line)
            return
        if "gpuid" not in line.fields:
            self._last = {key: last for key, last in self._last.items() if key[0] != line.actor}
            if line.event != "rescanned":
                for known in (self._stuck, self._freed):
                    for key in [key for key in known if key[0] == line.actor]:
                        del known[key]
            self._doubts.explain(line)
            return
        key = line.actor, str(line.fields["gpuid"]), str(line.fields.get("bdf"))
        before, fired = self._last.get(key), self._fired.get(key[:2], [])
        is_struck = any(each.t == line.t and each.fields["kind"] in (_CUTS, _FAILS) for each in fired)
        if line.event == "stuck" and not is_struck:
            what = f"{key[1]} is stuck at {line.fields['arrow']} on {line.actor}, and no fault has struck it"
            yield Breach((*key, str(line.number)), what, line, after=before)
        yield from self._stays(key, line.t, state)
        if line.event == "stuck":
            self._stuck[key] = line
        else:
            self._stuck.pop(key, None)
        self._last[key] = line
        self._fired.pop(key[:2], None)
        if line.event in _ARROWS and before is not None and before.event in _ARROWS:
            for fault in self._faults.at(line.actor).values():
                for breach in self._strikes(fault, line, before, fired):
                    self._doubts.add(line, breach)

    def _free(self, line: Line) -> None:
        others = self._faults.at(line.actor).values()
        if any(fault.kind in (_CUTS, _FAILS, _SLOW) for fault in others):
            return
        self._freed |= {key: line for key in self._stuck if key[0] == line.actor}

    def _strikes(self, fault: DeclaredFault, line: Line, before: Line, fired: list[Line]) -> Iterator[Breach]:
        arrow = _ARROWS[line.event]
        own = [each for each in fired if each.fields["fault"] == fault.added.fields["fault"]]
        if not _admits(fault, arrow, line) or fault.added.number > before.number:
            return
        wrong = ""
        if fault.kind in (_CUTS, _FAILS):
            wrong = "comes up, and was cut" if own or _is_in_force(fault, line.t) else ""
        elif fault.kind == _SLOW and own:
            delay_s, took_s = float(fault.spec["delay_s"]), line.t - before.t
            wrong = f"takes {took_s:g} s, and was slowed by {delay_s:g} s" if took_s < delay_s - 0.001 else ""
        elif own:
            wrong = "is healthy, and NVML was not to know it" if line.fields["healthy"] else ""
        elif _is_in_force(fault, line.t):
            wrong = "comes up untouched"
        if wrong:
            what = f"{line.event} of {line.fields['gpuid']} on {line.actor} {wrong} (fault {fault.kind})"
            yield Breach((line.actor, str(line.number), fault.kind), what, line, after=fault.added)


def _admits(fault: DeclaredFault, arrow: str, line: Line) -> bool:
    struck = {_CUTS: fault.spec.get("arrow"), _SLOW: fault.spec.get("arrow"), _FAILS: "driver", _UNKNOWN: "nvml"}
    if struck.get(fault.kind) != arrow or fault.spec.get("operation") not in (None, arrow):
        return False
    return fault.is_about(line) and (fault.kind != _UNKNOWN or line.fields["kind"] == "GPU")


def _is_in_force(fault: DeclaredFault, t: float) -> bool:
    return fault.is_certain and not fault.skip and not fault.is_over(t)
