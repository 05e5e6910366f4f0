"""The faults in place at chassis and hosts, as their ``added`` lines declare them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.harness.journal import Line

HELD_BACK = "events-out-of-order"
"""A fault by which the lines of a chassis come late: of such a chassis nothing is claimed."""
ON_OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "slow-operation": ("attach", "detach", "read"),
    "lying-result": ("attach", "detach"),
    "dropped-connection": ("attach", "detach", "read"),
    "http-error": ("attach", "detach", "read"),
    "token-ends": ("attach", "detach", "read"),
    "listed-twice": ("read",),
    "unknown-host": ("read",),
    "layout-busy": ("attach", "detach"),
    "layout-half-done": ("attach", "detach"),
    "timeout": ("attach", "detach", "read"),
    "half-applied-attach": ("attach",),
    "never-trains": ("attach",),
    "management-reboot": ("attach", "detach", "read"),
    "concurrent-editor": ("attach", "detach", "read"),
    "wrong-uuid": ("attach",),
    "read-aftermath": ("attach",),
}
"""Kind of a chassis' fault -> the operations that it strikes (contract chassis.md section 6)."""
TIMED = ("link-down", "lost-uuid", "xid", "fallen-off-bus", "ecc-errors")
"""Kinds that strike at a time of their own."""
TIMED_OR_NOT = ("management-reboot", "concurrent-editor")
"""Kinds that do so where their spec names no operation."""


class DeclaredFault(Struct):
    """A fault in place. ``fired``: how often it did; ``due_s``: when it strikes by itself, infinite where it does not;
    ``passed``: how many operations that it looks at it has let pass because its spec says so."""

    added: Line
    kind: str
    spec: Mapping[str, Any]
    count: int | None
    due_s: float
    fired: int = 0
    passed: int = 0

    @property
    def is_certain(self) -> bool:
        """Whether it strikes whatever it looks at: by no chance."""
        return float(self.spec.get("probability", 1.0)) >= 1

    @property
    def skip(self) -> int:
        """How many it lets pass."""
        return int(self.spec.get("skip", 0))

    def is_over(self, t: float) -> bool:
        """Return whether it has fired as often as it may, or its time is over."""
        spent = self.count is not None and self.fired >= self.count
        return spent or t > self.added.t + float(self.spec.get("expires_s") or math.inf)

    def is_about(self, line: Line) -> bool:
        """Return whether the device of that line is one that it looks at."""
        return self.spec.get("device") in (None, line.fields["device"], line.fields["gpuid"])


class DeclaredFaults:
    """Keeps the faults that are in place and what they may break: feed it every line of the layer ``fault``, tables of
    chassis, and ends of components. Faults that a chassis has by nature (``built_in``), or that another one planted,
    have no ``added`` line and are unknown here."""

    def __init__(self) -> None:
        self.known: dict[str, dict[str, DeclaredFault]] = {}
        """Chassis or host -> fault -> as it was declared."""
        self._mute: set[str] = set()

    def at(self, actor: str) -> Mapping[str, DeclaredFault]:
        """Return those in place there; none where nothing is claimed."""
        return self.known.get(actor, {}) if self.known and actor not in self._mute else {}

    def is_mute(self, actor: str) -> bool:
        """Return whether nothing is claimed of that chassis."""
        return actor in self._mute

    def of(self, line: Line) -> DeclaredFault | None:
        """Return the fault that a line of the layer ``fault`` is about."""
        return self.known.get(line.actor, {}).get(str(line.fields["fault"]))

    def take(self, line: Line) -> None:
        """Put a fault in place, count that it fired, or forget it."""
        if line.layer != "fault":
            self.known.pop(line.actor, None)  # A chassis that is reset, or begins anew, has none.
        elif line.event == "added":
            self._add(line)
        elif line.event == "fired":
            found = self.of(line)
            if found is not None:
                found.fired += 1
        else:
            self.known.get(line.actor, {}).pop(str(line.fields["fault"]), None)

    def _add(self, line: Line) -> None:
        kind, spec = str(line.fields["kind"]), line.fields.get("spec") or {}
        if kind == HELD_BACK:
            self._mute.add(line.actor)
        is_timed = kind in TIMED or (kind in TIMED_OR_NOT and spec.get("operation") is None)
        due_s = line.t + float(spec.get("after_s", 0.0)) if is_timed else math.inf
        found = DeclaredFault(line, kind, spec, line.fields.get("count"), due_s)
        self.known.setdefault(line.actor, {})[str(line.fields["fault"])] = found
