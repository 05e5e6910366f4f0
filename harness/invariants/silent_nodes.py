"""Invariant 23: a node that falls silent is called unknown after its grace, and not before."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mews.harness.invariants.fault_windows import LATE
from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

GRACE_S, RENEWED_S, LOOKS_S = 50.0, 10.0, 5.0
"""``--node-monitor-grace-period`` of kube-controller-manager 1.34, how often a kubelet renews its lease, and
``--node-monitor-period``."""
ROUNDING_S = 2.0
EARLIEST_S, LATEST_S = GRACE_S - RENEWED_S - ROUNDING_S, GRACE_S + 2 * LOOKS_S + ROUNDING_S


class SilentNodes(Invariant[ObservedState]):
    """The time until a node is called unknown counts from the end of its kubelet. The kubelet's last lease is at most
    one renewal older, and the controller looks every few seconds. A node whose kubelet has never been away is not
    called unknown at all. The law does not judge a node whose host goes off. Nor does it judge while a control plane is
    away, or a fault affects somebody's path to the API."""

    number = 23
    name = "a node whose kubelet is gone is called unknown in its time"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", "condition"), ("api", "created"), ("api", "deleted"), ("chassis", "host-power")}
        | {("component", event) for event in ("started", "killed", "crashed")}
        | {("fault", "added")}
    )

    def __init__(self) -> None:
        self._gone: dict[str, Line] = {}
        self._nodes: set[str] = set()
        self._doubtful: set[str] = set()
        """Nodes that may be silent for other reasons; "" for all."""
        self._begun: dict[str, float] = {}
        self._next_s = math.inf

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Start and stop the clocks."""
        kind, _, name = line.actor.partition("/")
        if line.layer == "fault":
            if kind not in ("chassis", "host"):
                self._doubtful.add("")
        elif line.layer == "component":
            if line.event != "started":
                self._doubtful.add(name if kind == "kubelet" else "")
            if kind == "kubelet":
                self._kubelet(name, line)
            elif kind.startswith("kube-"):
                self._gone.clear()
        elif line.event == "host-power":
            self._doubtful.add(str(line.fields["host"]))
            self._gone.pop(str(line.fields["host"]), None)
        elif kind == "node":
            yield from self._node(name, line, state)

    def _kubelet(self, node: str, line: Line) -> None:
        self._gone.pop(node, None)
        if line.event == "started":
            self._begun[node] = line.t
        elif node in self._nodes and line.t - self._begun.get(node, -math.inf) > 2 * RENEWED_S:
            self._gone[node] = line  # one that has just begun may not have renewed its lease
            self._next_s = -math.inf

    def _node(self, node: str, line: Line, state: ObservedState) -> Iterator[Breach]:
        if line.event == "created":
            self._nodes.add(node)
        elif line.event == "deleted":
            self._nodes.discard(node)
            self._gone.pop(node, None)
        elif line.fields["type"] == "Ready" and line.fields["status"] == "Unknown":
            gone = self._gone.pop(node, None)
            if gone is not None and not gone.t + EARLIEST_S <= line.t <= _due_s(gone, state):
                what = f"{node} is called unknown {line.t - gone.t:.1f} s after its kubelet was {gone.event}"
                yield Breach((node, str(line.number)), what, line, after=gone)
            elif gone is None and node in self._nodes and not self._doubtful & {node, ""} and not state.bounds.lag_s:
                yield Breach((node, str(line.number)), f"{node} is called unknown, and its kubelet is there", line)

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge the clocks."""
        if t < self._next_s:
            return
        self._next_s = math.inf
        for node, gone in list(self._gone.items()):
            due_s = _due_s(gone, state)
            if t <= due_s:
                self._next_s = min(self._next_s, due_s if math.isfinite(due_s) else t + LOOKS_S)
                continue
            del self._gone[node]
            what = f"{node} is not called unknown {t - gone.t:.1f} s after its kubelet was {gone.event}"
            yield Breach((node, str(gone.number)), what, gone, due_s=due_s)


def _due_s(gone: Line, state: ObservedState) -> float:
    """Return when a node whose kubelet has gone must be called unknown."""
    return state.windows.clock_from(LATE, gone.t) + LATEST_S + 2 * state.bounds.lag_s
