"""Invariant 16: a node does not offer a device for longer than a bound that its plugin calls unhealthy or gone."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.node_presence import PRESENCE_EVENTS, NodePresence
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

Key = tuple[str, str]
"""Node, resource."""

BLINDNESS = 4
"""The law whose windows say that nodes cannot show the hardware as it is."""


class Offered(Invariant[ObservedState]):
    """A node offers what the last list of a plugin to its kubelet shows as healthy. After a restart of the kubelet, the
    law waits for the first list. The node shows a change at the next tick of its status (contract kubelet.md section
    2)."""

    number = 16
    name = "no node offers a device that is unhealthy or gone for longer than a bound"
    of_time = True
    events = frozenset({("kubelet", "devices"), ("api", "allocatable"), *PRESENCE_EVENTS})

    def __init__(self) -> None:
        self._nodes = NodePresence()
        self._healthy: dict[Key, tuple[int, Line]] = {}
        self._offered: dict[Key, tuple[int, Line]] = {}
        self._wrong: dict[Key, Line] = {}
        self._next_s = math.inf

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Start and stop the clocks."""
        kind, _, name = line.actor.partition("/")
        if line.event == "devices":
            key = (name, line.fields["resource"])
            self._healthy[key] = (len(line.fields["healthy"]), line)
            self._compare(key, line)
        elif line.event == "allocatable":
            key, amount = (name, line.fields["resource"]), str(line.fields["new"])
            self._offered[key] = (int(amount) if amount.isdecimal() else 0, line)
            self._compare(key, line)
        elif kind != "pod" and self._nodes.take(line):
            self._away(name)
        return iter(())

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge the clocks."""
        bound_s = state.bounds.offered_s
        if bound_s is None or t < self._next_s:
            return
        self._next_s = math.inf
        for key, line in self._wrong.items():
            since_s = max(line.t, self._nodes.back_s(key[0]))
            due_s = state.clock_from(BLINDNESS, since_s) + bound_s + state.bounds.lag_s
            if self._nodes.is_away(key[0]):
                continue
            if t <= due_s:
                self._next_s = min(self._next_s, due_s)
                continue
            offered, healthy = self._offered[key][0], self._healthy[key]
            what = f"node {key[0]} offers {offered} {key[1]} for {t - line.t:.1f} s, {healthy[0]} are healthy"
            yield Breach((*key, str(line.number)), what, line, after=healthy[1])

    def _compare(self, key: Key, line: Line) -> None:
        if key not in self._healthy or key not in self._offered:
            return
        if self._offered[key][0] <= self._healthy[key][0]:
            self._wrong.pop(key, None)
        elif key not in self._wrong:
            self._wrong[key] = line
            self._next_s = -math.inf

    def _away(self, node: str) -> None:
        """A kubelet that is away, or begins anew, knows no list."""
        if self._nodes.is_away(node):
            for key in [key for key in self._healthy if key[0] == node]:
                del self._healthy[key]
                self._wrong.pop(key, None)
        self._next_s = -math.inf
