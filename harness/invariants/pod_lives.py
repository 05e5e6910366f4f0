"""Invariant 13: a pod lives once and forward, and nothing of it starts once it is over."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from mews.harness.invariants.fault_windows import LATE
from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

START_S = 2.0
"""A kubelet that starts a container when its pod is deleted may finish that start: image, PreStartContainer and the
start itself are not broken off."""

TIDIES_UP_S = 10.0
"""So long after the end of a pod its kubelet still has something of it to remove: one that dies then ends it again."""

REMEMBERED = 1_000
"""Of so many pods that are gone a late start is still noticed."""

_ORDER = {"": 0, "Pending": 0, "Running": 1, "Succeeded": 2, "Failed": 2}


class _Life(Struct):
    """Each field is the line that says so, None before."""

    pod: str
    phase: str = ""
    phased: Line | None = None
    bound: Line | None = None
    over: Line | None = None
    """Its kubelet has ended or rejected it."""
    leaving: Line | None = None
    gone: Line | None = None


class PodLives(Invariant[ObservedState]):
    """A pod, identified by its uid, is bound once. Its phase goes from Pending over Running to Succeeded or Failed, and
    never back. Containers start on the node to which the pod is bound, and not after the pod has ended, was rejected or
    was deleted. A kubelet that finds a pod ended (``UpdatePod`` of pkg/kubelet/pod_workers.go) does not end it
    again."""

    number = 13
    name = "a pod is bound once, its phases go forward, and nothing starts for one that is over"
    events = frozenset(
        {
            *(("api", event) for event in ("created", "bound", "phase", "deleting", "deleted")),
            *(("kubelet", event) for event in ("container-started", "pod-ended", "rejected")),
            *(("component", event) for event in ("killed", "crashed")),
        }
    )

    def __init__(self) -> None:
        self._lives: dict[str, _Life] = {}
        self._gone: dict[str, None] = {}
        self._killed_s: dict[str, float] = {}

    # Complex: one branch for each kind of line, and it runs for every line.
    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:  # noqa: C901
        """Judge one step of a pod's life."""
        uid = line.fields.get("uid")
        if line.layer == "component":
            self._killed_s[line.actor] = line.t
        if uid is None:
            return
        if line.event == "created":
            self._lives[uid] = _Life(line.actor.removeprefix("pod/"), line.fields.get("phase", ""), line)
        life = self._lives.get(uid)
        if life is None:
            return  # of a namespace that is not recorded
        match line.event:
            case "bound":
                yield from _bound(life, line)
            case "phase":
                yield from _phase(life, line)
            case "container-started":
                is_behind = state.windows.excused(LATE, line.t)  # by what the kubelet has read, it is not deleted
                yield from _started(life, line, math.inf if is_behind else START_S + state.bounds.lag_s)
            case "pod-ended" | "rejected":
                yield from _ended(life, line, self._killed_s.get(line.actor, math.inf))
            case "deleting":
                life.leaving = line
            case "deleted":
                self._forget(uid, line)

    def _forget(self, uid: str, line: Line) -> None:
        self._lives[uid].gone = line
        self._gone[uid] = None
        if len(self._gone) > REMEMBERED:
            first = next(iter(self._gone))
            del self._gone[first], self._lives[first]


def _bound(life: _Life, line: Line) -> Iterator[Breach]:
    if life.bound is not None:
        where = f"{line.fields['node']} after {life.bound.fields['node']}"
        yield Breach((line.fields["uid"], "bound"), f"{life.pod} is bound to {where}", line, after=life.bound)
    life.bound = life.bound or line


def _phase(life: _Life, line: Line) -> Iterator[Breach]:
    before, now = life.phase, line.fields["phase"]
    if now in _ORDER and before in _ORDER:
        ends_anew = _ORDER[now] == _ORDER[before] == _ORDER["Failed"] and now != before
        if _ORDER[now] < _ORDER[before] or ends_anew:
            what = f"{life.pod} is {now} after it was {before}"
            yield Breach((line.fields["uid"], "phase", now), what, line, after=life.phased)
    life.phase, life.phased = now, line


def _ended(life: _Life, line: Line, killed_s: float) -> Iterator[Breach]:
    before, life.over = life.over, life.over or line
    if before is not None and line.event == before.event == "pod-ended" and killed_s > before.t + TIDIES_UP_S:
        uid = line.fields["uid"]
        yield Breach((uid, "end"), f"{life.pod} is ended again", line, after=before)


def _started(life: _Life, line: Line, start_s: float) -> Iterator[Breach]:
    uid, container = line.fields["uid"], line.fields["container"]
    host = line.actor.partition("/")[2]
    why, after = "", life.bound
    if life.bound is not None and life.bound.fields["node"] != host:
        why = f"on {host}, and the pod is bound to {life.bound.fields['node']}"
    elif life.over is not None:
        why, after = f"after the pod was over ({life.over.event})", life.over
    elif life.phase in ("Succeeded", "Failed"):
        why, after = f"after the pod was {life.phase}", life.phased
    else:
        late = next((each for each in (life.leaving, life.gone) if each and line.t - each.t > start_s), None)
        if late is not None:
            why, after = f"{line.t - late.t:.1f} s after the pod was {late.event}", late
    if why:
        yield Breach((uid, container, "start"), f"container {container} of {life.pod} starts {why}", line, after=after)
