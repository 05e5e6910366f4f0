"""Invariant 24: a fault that fires shows its effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

EFFECTS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("chassis", "link-down"): ("link-down",),
    ("chassis", "lost-uuid"): ("device-changed",),
    ("host", "xid"): ("xid",),
    ("host", "fallen-off-bus"): ("lost",),
    ("host", "ecc-errors"): ("ecc", "xid"),
}
"""Layer and kind of a fault on one device -> the events of that layer of which one follows in the same moment."""

UNDONE: Mapping[tuple[str, str], str] = {
    ("chassis", "link-down"): "link-up",
    ("chassis", "lost-uuid"): "device-changed",
}
"""Likewise, of those whose effect ends as they are cleared -> the event of that."""

HELD_BACK = "events-out-of-order"
"""A fault by which a chassis' events come late."""


class FaultEffects(Invariant[ObservedState]):
    """The law judges faults on a healthy device whose effect has a line in the journal. A fault that only counts as
    fired would let a scenario pass without a test. The breach names the line that comes instead of the effect. Before a
    fault is cleared, its effect on the device ends, unless the device was moved."""

    number = 24
    name = "a fault that fires shows its effect"
    ours_alone = True

    def __init__(self) -> None:
        self._fired: Line | None = None
        self._shown: dict[tuple[str, str], Line] = {}
        """Place and ID of a fault -> the line that shows its effect, until that is undone or something else is done to
        its device."""

    def on_line(self, line: Line, state: ObservedState) -> Iterable[Breach]:
        """Look at what comes after a fault; of all lines, so that most must cost nothing."""
        if self._shown and line.layer in ("chassis", "fault", "component"):
            undone = self._undo(line)
            if undone is not None and not state.bounds.lag_s:
                return (undone,)
        fired = self._fired
        if fired is None:
            if line.event == "fired" and line.layer == "fault" and "gpuid" in line.fields:
                self._begin(line, state)
            return ()
        if line.t == fired.t and line.layer != "step":
            if self._is_effect(line, fired) or line.fields.get("kind") == HELD_BACK:
                self._fired = None
                if (fired.actor.partition("/")[0], fired.fields["kind"]) in UNDONE and line.layer != "fault":
                    self._shown[fired.actor, str(fired.fields["fault"])] = line
            return ()
        self._fired = None
        if state.bounds.lag_s:
            return ()
        what = f"fault {fired.fields['kind']} fires on {fired.fields['gpuid']} of {fired.actor}, and nothing shows it"
        return (Breach((fired.actor, str(fired.number)), what, line, after=fired),)

    def _undo(self, line: Line) -> Breach | None:
        if line.layer == "fault":
            shown = self._shown.pop((line.actor, str(line.fields["fault"])), None) if line.event == "cleared" else None
            if shown is None:
                return None
            what = f"fault {line.fields['kind']} of {line.actor} is cleared, and its effect stays"
            return Breach((line.actor, str(line.fields["fault"]), "undone"), what, line, after=shown)
        gpuid = line.fields.get("gpuid")
        if line.layer == "component" or gpuid is None:
            self._shown = {key: shown for key, shown in self._shown.items() if key[0] != line.actor}
        else:
            self._shown = {key: shown for key, shown in self._shown.items() if shown.fields["gpuid"] != gpuid}
        return None

    def _begin(self, line: Line, state: ObservedState) -> None:
        layer, _, name = line.actor.partition("/")
        if (layer, line.fields["kind"]) not in EFFECTS:
            return
        gpuid, world = line.fields["gpuid"], state.world
        seen, device = world.seen.get(name, {}).get(gpuid), world.devices.get(gpuid)
        healthy = seen is not None and seen.healthy
        if healthy if layer == "host" else device is None or (device.host is not None and device.link):
            self._fired = line

    def _is_effect(self, line: Line, fired: Line) -> bool:
        layer, gpuid = fired.actor.partition("/")[0], fired.fields["gpuid"]
        if line.layer != layer or line.fields.get("gpuid", gpuid) != gpuid:
            return False
        return line.event in EFFECTS[layer, fired.fields["kind"]]
