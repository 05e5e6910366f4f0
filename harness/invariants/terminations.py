"""Invariant 14: a pod is not Terminating for longer than its grace and a bound."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.node_presence import PRESENCE_EVENTS, NodePresence
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant


class _Deletion(Struct):
    """``since_s``: when the pod was deleted, or lost its last finalizer."""

    pod: str
    node: str
    begun: Line
    grace_s: float
    finalizers: bool
    since_s: float


class Terminations(Invariant[ObservedState]):
    """Only its kubelet removes a pod from a node. The clock of a Terminating pod stands while its kubelet is down, its
    host is off or its node is not ready. The clock starts again from zero when the node is back. A pod with finalizers
    waits for the components that remove them."""

    number = 14
    name = "a pod is not Terminating for longer than its grace and a bound"
    of_time = True
    events = frozenset({("api", "bound"), ("api", "deleting"), ("api", "finalizers"), *PRESENCE_EVENTS})

    def __init__(self) -> None:
        self._nodes = NodePresence()
        self._where: dict[str, str] = {}
        self._leaving: dict[str, _Deletion] = {}
        self._next_s = math.inf
        """When a clock may run out at the earliest."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Start and stop the clocks."""
        if line.actor.startswith("pod/"):
            if line.event != "condition":
                self._pod(line)
        elif self._nodes.take(line):
            self._next_s = -math.inf
        return iter(())

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge the clocks."""
        bound_s = state.bounds.terminating_s
        if bound_s is None or t < self._next_s:
            return
        self._next_s = math.inf
        for uid, each in self._leaving.items():
            if each.finalizers or self._nodes.is_away(each.node):
                continue
            # What a kubelet finds when it is back it gives the whole of its grace.
            since_s = max(each.since_s, self._nodes.back_s(each.node)) + each.grace_s
            due_s = state.clock_from(self.number, since_s) + bound_s + state.bounds.lag_s
            if t <= due_s:
                self._next_s = min(self._next_s, due_s)
            else:
                waited = f"{t - each.begun.t:.1f} s (grace {each.grace_s:g} s, bound {bound_s:g} s)"
                yield Breach((uid,), f"{each.pod} is Terminating for {waited}", each.begun, due_s=due_s)

    def _pod(self, line: Line) -> None:
        uid, fields = line.fields["uid"], line.fields
        match line.event:
            case "bound":
                self._where[uid] = fields["node"]
            case "deleting":
                grace_s, finalizers = float(fields.get("grace_s") or 0.0), bool(fields.get("finalizers"))
                pod = line.actor.removeprefix("pod/")
                self._leaving[uid] = _Deletion(pod, self._where.get(uid, ""), line, grace_s, finalizers, line.t)
                self._next_s = -math.inf
            case "finalizers" if uid in self._leaving:
                self._leaving[uid].finalizers, self._leaving[uid].since_s = bool(fields["finalizers"]), line.t
                self._next_s = -math.inf
            case "deleted":
                self._where.pop(uid, None)
                self._leaving.pop(uid, None)
