"""Invariant 1003: a kubelet that is there acts in its time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from msgspec import Struct

from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.node_presence import PRESENCE_EVENTS, NodePresence
from mews.harness.journal import Line
from mews.kube.emulated.kubelet.timings import MEASURED
from mews.kube.system.invariant import Breach, Invariant

_KUBELET = "kubelet/"
_BUSY_S = 2.0
"""A kubelet may finish what it does to a pod before it looks at it again."""
_SEEN, _STOPPED, _REMOVED, _LISTED = "seen", "stopped", "removed", "listed"
WITHIN_S = {
    _SEEN: MEASURED.see_pod.high_s + _BUSY_S,
    _STOPPED: MEASURED.see_deletion.high_s + _BUSY_S,
    _REMOVED: MEASURED.killed.high_s + MEASURED.remove.high_s + _BUSY_S,
    _LISTED: _BUSY_S,
}
"""What a kubelet does -> how long it may take (contract kubelet.md sections 2, 8, 10 and 11)."""
_TERMINAL = ("Succeeded", "Failed")

Key = tuple[str, str]
"""A pod or a resource of a node, and what is to be done."""


class _Owed(Struct):
    node: str
    since: Line


class KubeletPace(Invariant[ObservedState]):
    """None of these steps takes longer than was ever measured on a real kubelet, plus two seconds (contract kubelet.md
    sections 2, 8, 10 and 11). A kubelet shows that it has seen a pod that is bound to its node. It stops the containers
    of a pod that is deleted, and then removes the pod, unless finalizers keep it. It takes the list of a device plugin
    that has registered. The law does not judge a node while its kubelet is away, nor what was under way when a
    component came or went."""

    number = 1003
    name = "a kubelet that is there acts in its time"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", event) for event in ("bound", "condition", "phase", "event", "deleting", "finalizers", "deleted")}
        | {("kubelet", event) for event in ("registered", "devices", "allocated", "rejected", "container-started")}
        | {("kubelet", event) for event in ("claim-prepared", "pod-ended", "hook-failed")}
        | PRESENCE_EVENTS
    )

    def __init__(self) -> None:
        self._nodes = NodePresence()
        self._there: set[str] = set()
        """Nodes whose kubelet has said something."""
        self._where: dict[str, str] = {}
        """Pod -> its node, once its kubelet has a container of it running."""
        self._leaving: set[str] = set()
        self._owed: dict[Key, _Owed] = {}
        self._next_s = math.inf

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Take in what is to be done, and what is done."""
        if line.t > self._next_s and not state.bounds.lag_s:
            yield from self._late(line.t, state)  # what is done now is done too late
        if line.layer == "kubelet":
            self._kubelet(line)
        elif line.layer == "component":
            self._owed.clear()
            self._nodes.take(line)
        elif line.event == "event":
            self._event(line)
        elif line.actor.startswith("pod/"):
            self._pod(line.actor, line)
        elif self._nodes.take(line):
            self._next_s = -math.inf

    def on_time(self, t: float, state: ObservedState) -> Iterable[Breach]:
        """Judge what has not been done."""
        return () if t <= self._next_s or state.bounds.lag_s else list(self._late(t, state))

    def _late(self, t: float, state: ObservedState) -> Iterator[Breach]:
        self._next_s = math.inf
        for key, owed in list(self._owed.items()):
            if self._nodes.is_away(owed.node):
                del self._owed[key]
                continue
            since_s = max(owed.since.t, self._nodes.back_s(owed.node))
            due_s = state.clock_from(self.number, since_s) + WITHIN_S[key[1]]
            if t <= due_s:
                self._next_s = min(self._next_s, due_s)
                continue
            del self._owed[key]
            what = f"{key[0]} is not {key[1]} by the kubelet of {owed.node} {t - owed.since.t:.1f} s after"
            yield Breach((*key, str(owed.since.number)), f"{what} {owed.since.event}", owed.since, due_s=owed.since.t)

    def _owe(self, about: str, what: str, node: str, since: Line) -> None:
        if node in self._there:
            self._owed[about, what] = _Owed(node, since)
            self._next_s = min(self._next_s, since.t + WITHIN_S[what])

    def _pay(self, about: str, *done: str) -> None:
        if self._owed:
            for what in done:
                self._owed.pop((about, what), None)

    def _event(self, line: Line) -> None:
        if line.actor.startswith(_KUBELET):
            self._there.add(line.actor.removeprefix(_KUBELET))
            self._pay(line.fields["object"], _SEEN)
            if line.fields["reason"] == "Killing":
                self._pay(line.fields["object"], _STOPPED)

    def _kubelet(self, line: Line) -> None:
        node = line.actor.removeprefix(_KUBELET)
        self._there.add(node)
        if line.event == "registered":
            self._owe(f"the list of {line.fields['resource']} on {node}", _LISTED, node, line)
        elif line.event == "devices":
            self._pay(f"the list of {line.fields['resource']} on {node}", _LISTED)
        elif "pod" in line.fields:
            pod = f"pod/{line.fields['pod']}"
            self._pay(pod, _SEEN)
            if line.event == "container-started":
                self._where[pod] = node
            elif line.event in ("pod-ended", "rejected"):
                self._pay(pod, _STOPPED)
                self._where.pop(pod, None)
                if pod in self._leaving:
                    self._owe(pod, _REMOVED, node, line)

    # Complex: one branch for each kind of line, and it runs for every line.
    def _pod(self, pod: str, line: Line) -> None:  # noqa: C901
        match line.event:
            case "bound":
                self._owe(pod, _SEEN, line.fields["node"], line)
            case "condition":
                if line.fields["type"] != "PodScheduled":
                    self._pay(pod, _SEEN)
            case "phase":
                self._pay(pod, _SEEN)
                if line.fields["phase"] in _TERMINAL:
                    self._pay(pod, _STOPPED)
                    self._where.pop(pod, None)
            case "deleting":
                self._pay(pod, _SEEN)
                if not line.fields["finalizers"]:
                    self._leaving.add(pod)
                if pod in self._where and line.fields["grace_s"] > 0:
                    self._owe(pod, _STOPPED, self._where[pod], line)
            case "finalizers":
                self._leaving.discard(pod)
                self._pay(pod, _REMOVED)
            case "deleted":
                self._pay(pod, _SEEN, _STOPPED, _REMOVED)
                self._where.pop(pod, None)
                self._leaving.discard(pod)
