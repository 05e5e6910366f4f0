"""Invariant 20: a pod's conditions, its phase and what its kubelet did agree."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct, field

from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.node_presence import PRESENCE_EVENTS, NodePresence
from mews.harness.journal import Line
from mews.kube.emulated.kubelet.timings import MEASURED
from mews.kube.system.invariant import Breach, Invariant

_OVER = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}
"""Phase -> why a kubelet calls such a pod not ready (status/generate.go)."""
SHOWN_S = 10.0
"""Within which a kubelet shows what it did: its sync loop, and a write that is tried again."""
RELISTED_S = MEASURED.relist_s + 0.8
"""Within which it sees by itself that a container runs (PLEG), and shows it where no write is tried again. One that has
ended by then is never shown to run."""

_SCHEDULED, _INITIALIZED, _CONTAINERS, _READY = "PodScheduled", "Initialized", "ContainersReady", "Ready"
_TERMINAL = ("Succeeded", "Failed")
_UNKNOWN, _COMPLETED, _FAILED = "UnknownContainerStatuses", _OVER["Succeeded"], _OVER["Failed"]
_NOT_READY = frozenset({"ContainersNotReady", _COMPLETED, _FAILED, _UNKNOWN})
_REASONS = {
    (_INITIALIZED, "True"): frozenset({"", _COMPLETED}),
    (_INITIALIZED, "False"): frozenset({"ContainersNotInitialized", _UNKNOWN}),
    (_READY, "True"): frozenset({""}),
    (_READY, "False"): _NOT_READY | {"", "ReadinessGatesNotReady"},
    (_CONTAINERS, "True"): frozenset({""}),
    (_CONTAINERS, "False"): _NOT_READY,
    ("PodReadyToStartContainers", "True"): frozenset({""}),
    ("PodReadyToStartContainers", "False"): frozenset({""}),
}
"""Type and status of a condition of a kubelet -> its reasons (status/generate.go). The node life cycle controller calls
pods of a silent node not ready without one."""
_SAME = ((_COMPLETED, (_INITIALIZED, _READY, _CONTAINERS)), (_FAILED, (_READY, _CONTAINERS)))
"""A reason -> the conditions that have it all at once: it follows from the phase of the pod."""


class _Pod(Struct):
    """What the lines say of a live pod. ``owed``: what must be shown, by its name, and the line since when."""

    name: str
    phase: str = ""
    node: str = ""
    conditions: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    """Of its conditions."""
    started: Line | None = None
    ended: Line | None = None
    leaving: Line | None = None
    owed: dict[str, Line] = field(default_factory=dict)


class PodConditions(Invariant[ObservedState]):
    """All changes of one write have one moment, so the law compares a pod's conditions once that moment has passed. A
    ready pod runs, is scheduled and initialized, and its containers are ready. A pod that has ended is not ready. Each
    condition has a reason that a kubelet gives. All conditions of an ended pod change together. A pod runs because a
    container has started, and has ended because its kubelet ended or rejected it. What a kubelet did shows on the pod
    within moments, while the kubelet is there."""

    number = 20
    name = "a pod's conditions agree with its phase and with what its kubelet did"
    of_time = True
    ours_alone = True
    events = frozenset(
        {
            *(("api", event) for event in ("created", "bound", "phase", "condition", "deleting", "deleted")),
            *(("kubelet", event) for event in ("container-started", "pod-ended", "rejected")),
            *PRESENCE_EVENTS,
        }
    )

    def __init__(self) -> None:
        self._nodes = NodePresence()
        self._pods: dict[str, _Pod] = {}
        self._changed: dict[str, Line] = {}
        self._moment_s = -math.inf
        self._owing: set[str] = set()
        self._next_s = math.inf
        self._reports = False
        """Whether conditions of pods are seen at all."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Take in what a line says; compare what the moment before it came to."""
        if line.t > self._moment_s:
            if self._changed and not state.bounds.lag_s:
                yield from self._compare()
            self._changed.clear()
            self._moment_s = line.t
            if self._owing and line.t > self._next_s:
                yield from self.on_time(line.t, state)  # what is shown now is shown too late
        if line.layer == "api" and line.actor.startswith("pod/"):
            if self._owing and line.event == "phase" and line.fields["phase"] == "Running":
                yield from self._shown_late(line, state)
            self._pod(line)
        elif line.layer == "kubelet":
            self._kubelet(line)
        else:
            self._nodes.take(line)

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge what is not shown in time."""
        if t < self._next_s:
            return
        self._next_s = math.inf
        bound_s = SHOWN_S + 2 * state.bounds.lag_s
        for uid in sorted(self._owing):
            pod = self._pods[uid]
            for what, line in pod.owed.items():
                due_s = state.clock_from(self.number, max(line.t, self._nodes.back_s(pod.node))) + bound_s
                if self._nodes.is_away(pod.node) or pod.leaving is not None:
                    continue
                if t <= due_s:
                    self._next_s = min(self._next_s, due_s)
                else:
                    text = f"{pod.name} is not {what} {t - line.t:.1f} s after {line.event}"
                    yield Breach((uid, what), text, line, due_s=line.t)

    def _shown_late(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        pod = self._pods.get(str(line.fields.get("uid")))
        started = pod.owed.get("Running") if pod is not None else None
        if pod is None or started is None or state.bounds.lag_s or self._nodes.is_away(pod.node):
            return
        since_s = state.clock_from(self.number, max(started.t, self._nodes.back_s(pod.node)))
        if line.t > since_s + RELISTED_S:
            what = f"{pod.name} is shown as Running {line.t - started.t:.1f} s after {started.event}"
            yield Breach((str(line.fields["uid"]), "late"), what, line, after=started, due_s=started.t)

    def _pod(self, line: Line) -> None:
        uid, fields = str(line.fields.get("uid")), line.fields
        if line.event == "created":
            self._pods[uid] = _Pod(line.actor.removeprefix("pod/"), fields.get("phase", ""), fields.get("node", ""))
            return
        pod = self._pods.get(uid)
        if pod is None:
            return
        match line.event:
            case "condition":
                self._reports = True
                pod.conditions[fields["type"]] = fields["status"]
                pod.reasons[fields["type"]] = str(fields.get("reason", ""))
                self._changed[uid] = line
                self._pay(uid, f"{fields['type']} {fields['status']}")
            case "phase":
                pod.phase = fields["phase"]
                self._changed[uid] = line
                self._pay(uid, "Running", "over") if pod.phase in _TERMINAL else self._pay(uid, pod.phase)
            case "bound":
                pod.node = fields["node"]
                if self._reports:
                    self._owe(uid, f"{_SCHEDULED} True", line)
            case "deleting":
                pod.leaving = line
            case "deleted":
                del self._pods[uid]
                self._changed.pop(uid, None)
                self._owing.discard(uid)

    def _owe(self, uid: str, what: str, line: Line) -> None:
        self._pods[uid].owed.setdefault(what, line)
        self._owing.add(uid)
        self._next_s = -math.inf

    def _pay(self, uid: str, *paid: str) -> None:
        owed = self._pods[uid].owed
        if owed:
            for what in paid:
                owed.pop(what, None)
            if not owed:
                self._owing.discard(uid)

    def _kubelet(self, line: Line) -> None:
        uid = line.fields.get("uid", "")
        pod = self._pods.get(uid)
        if pod is None:
            return
        if line.event == "container-started":
            pod.started = pod.started or line
            if pod.phase == "Pending" and pod.conditions.get(_INITIALIZED) == "True":
                self._owe(uid, "Running", line)
        elif pod.ended is None:
            pod.ended = line
            self._pay(uid, "Running", f"{_SCHEDULED} True")
            if pod.phase not in _TERMINAL:
                self._owe(uid, "over", line)

    def _compare(self) -> Iterator[Breach]:
        for uid, line in self._changed.items():
            pod = self._pods[uid]
            wrong = _disagreement(pod)
            if wrong:
                yield Breach((uid, wrong), f"{pod.name} {wrong}", line, after=pod.ended or pod.started)


def _disagreement(pod: _Pod) -> str:
    reported = pod.conditions
    if pod.ended is not None and pod.ended.event == "rejected":
        return ""  # a kubelet that turns a pod away writes its phase alone
    if reported.get(_READY) == "True":
        lacking = [name for name in (_SCHEDULED, _INITIALIZED, _CONTAINERS) if reported.get(name) != "True"]
        if pod.phase != "Running" or lacking:
            return f"is Ready, and {f'{lacking[0]} is not True' if lacking else f'its phase is {pod.phase}'}"
    if pod.phase in _TERMINAL and "True" in (reported.get(_READY), reported.get(_CONTAINERS)):
        return f"is {pod.phase}, and its containers are ready"
    why = pod.reasons.get(_READY)
    if pod.phase in _TERMINAL and why in _OVER.values() and _OVER.get(pod.phase) != why:
        return f"is {pod.phase}, and not ready for the reason {why}"
    if pod.phase == "Running" and pod.started is None:
        return "is Running, and none of its containers has started"
    return _wrong_reason(pod)


def _wrong_reason(pod: _Pod) -> str:
    for name, reason in pod.reasons.items():
        known = _REASONS.get((name, pod.conditions[name]))
        if known is not None and reason not in known:
            return f"is {name} {pod.conditions[name]} for the reason {reason!r}, which no kubelet gives"
    for reason, names in _SAME:
        found = [name for name in names if pod.reasons.get(name) == reason]
        if found and len(found) < len(names):
            return f"is {reason} by its condition {found[0]}, and not by all of {', '.join(names)}"
        if found and reason == _COMPLETED and pod.started is None:
            return f"is {reason}, and none of its containers has started"
    return ""
