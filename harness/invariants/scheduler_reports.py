"""Invariant 21: a scheduler says of each pod what became of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from mews.harness.invariants.fault_windows import LATE
from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

SEEN_S = 2.0
"""Within which a scheduler has seen that a node came or went."""

_MESSAGE = re.compile(r"0/(\d+) nodes are available: (.*?)(?=$|(?:no new claims to deallocate, )?preemption: |\Z)")
_COUNTED = re.compile(r"(?:^|, )(\d+) ")
_DENIED = "denied the request"
"""In the words of an admission webhook: it is somebody else who refused."""
_EXTENDER = "failed bind with extender"
_ATTACHING = re.compile(r'^running PreBind plugin "DynamicResources": .*\bbinding (?:failed|timeout)\b')
"""A device that was to be attached before the pod is bound could not be, or nobody said so in time."""
_ASSIGNED = re.compile(r"^Successfully assigned (\S+) to (\S+)$")


class SchedulerReports(Invariant[ObservedState]):
    """A pod that is bound by a scheduler of this run gets its event ``Scheduled``, which names that node, in the same
    moment. A pod that is called unschedulable gets ``FailedScheduling``. That event accounts for every node: it names
    how many nodes exist, and its reasons reach that number. A scheduler fails by itself (``SchedulerError``) only in
    these cases:

    - Something that the scheduler asks is down.
    - A device cannot be attached before a pod is bound.
    - A webhook denies what the scheduler asks for.
    - At the same moment, the scheduler binds another pod. An extender that binds has then given that pod what it had
      reported to fit both. Kube-scheduler assumes a pod before it asks the extender to bind it.
    - At the same moment, a pod is evicted or devices become unhealthy. What an extender takes back goes with the pods
      that use it."""

    number = 21
    name = "a scheduler's events say where a pod went, or what is wrong with every node"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", event) for event in ("created", "bound", "condition", "event", "deleted")}
        | {("component", "killed"), ("component", "crashed"), ("component", "started"), ("kubelet", "devices")}
    )

    def __init__(self) -> None:
        self._nodes: set[str] = set()
        self._nodes_changed_s = -math.inf
        self._before = 0
        self._schedulers: dict[str, str] = {}
        self._owed: dict[tuple[str, str], Line] = {}
        self._followed: dict[str, Line] = {}
        """Pod -> the first line about it since one that is still to be reported: it came without the event."""
        self._reported: dict[tuple[str, str], Line] = {}
        self._down: set[str] = set()
        self._back_s = -math.inf
        """When somebody was started last: what had been asked of it fails, and is reported only then."""
        self._bound_s: dict[str, float] = {}
        """When each scheduler bound a pod last."""
        self._attaching: set[str] = set()
        """Pods of which it was said that they wait for a device to be attached, or that it could not be."""
        self._evicted_s = -math.inf
        """When somebody gave a pod notice last."""
        self._devices_s = -math.inf
        """When a plugin announced other devices last: an extender may withhold them before it binds the pod."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Take in what happens to a pod, and what is said of it."""
        if line.event == "event":
            if line.fields["reason"] in ("Scheduled", "FailedScheduling"):
                yield from self._report(line, state)
            elif line.fields["reason"] == "BindingConditionsPending" and line.fields["object"] in self._schedulers:
                self._attaching.add(line.fields["object"])
        elif line.layer == "component":
            self._component(line)
        elif line.layer == "kubelet":
            self._devices_s = line.t
        elif line.actor.startswith("node/") and line.event != "condition":
            self._node(line)
        elif line.actor.startswith("pod/"):
            yield from self._pod(line, state)

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge what nobody has said."""
        for (pod, reason), line in list(self._owed.items()):
            if t > line.t + state.bounds.lag_s:
                del self._owed[pod, reason]
                if state.windows.excused(LATE, line.t):
                    continue  # lost or late; this may be judged long after
                what = f"{pod} is {line.event}, and no event {reason} says so"
                first = self._followed.pop(pod, line)
                yield Breach((pod, reason, str(line.number)), what, first, after=line, due_s=line.t)

    def _component(self, line: Line) -> None:
        if line.actor.startswith("kubelet/"):
            return  # of which no scheduler asks anything
        self._owed.clear()  # one that has died says nothing
        if line.event == "started":
            self._down.discard(line.actor)
            self._back_s = line.t
        else:
            self._down.add(line.actor)

    def _node(self, line: Line) -> None:
        self._before, self._nodes_changed_s = len(self._nodes), line.t
        name = line.actor.partition("/")[2]
        self._nodes.discard(name) if line.event == "deleted" else self._nodes.add(name)

    # Complex: one branch for each kind of line, and it runs for every line.
    def _pod(self, line: Line, state: ObservedState) -> Iterator[Breach]:  # noqa: C901
        pod, fields = line.actor, line.fields
        if self._owed:
            self._followed.setdefault(pod, line)
        if fields.get("type") == "DisruptionTarget":
            self._evicted_s = line.t
        if line.event == "created":
            if not fields.get("node") and fields["scheduler"] in state.systems.schedulers:
                self._schedulers[pod] = fields["scheduler"]
        elif pod not in self._schedulers:
            return
        elif line.event == "deleted":
            del self._schedulers[pod]
            self._attaching.discard(pod)
            for reason in ("Scheduled", "FailedScheduling"):
                self._reported.pop((pod, reason), None)
                self._owed.pop((pod, reason), None)
        elif line.event == "bound":
            self._bound_s[self._schedulers[pod]] = line.t
            reported = self._reported.get((pod, "Scheduled"))
            if reported is None and not self._down:  # one that has died while it bound the pod reports nothing
                self._owed[pod, "Scheduled"] = line
                self._followed.pop(pod, None)
            elif reported is not None:
                yield from _elsewhere(reported, fields["node"], line)
        elif fields.get("reason") == "SchedulerError" and not self._down and not state.bounds.lag_s:
            if line.t - self._back_s <= SEEN_S:
                return
            reported = self._reported.get((pod, "FailedScheduling"))
            cause = f": {reported.fields['message']}" if reported is not None else ""
            if reported is not None and _ATTACHING.match(reported.fields["message"]):
                return
            if pod in self._attaching and (reported is None or reported.t < line.t):
                return  # Events of one reason are a series: the later ones are counted, and their words not written.
            if _DENIED in cause or self._bound_s.get(self._schedulers[pod]) == line.t:
                return
            if _EXTENDER in cause and line.t in (self._evicted_s, self._devices_s):
                return
            yield Breach(
                (pod, "error", str(line.number)), f"the scheduler of {pod} fails by itself{cause}", reported or line
            )
        elif fields.get("reason") == "Unschedulable" and (pod, "FailedScheduling") not in self._reported:
            self._owed[pod, "FailedScheduling"] = line
            self._followed.pop(pod, None)

    def _report(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        pod, reason = line.fields["object"], line.fields["reason"]
        if pod not in self._schedulers:
            return
        self._reported[pod, reason] = line
        if _ATTACHING.match(line.fields["message"]):
            self._attaching.add(pod)
        owed = self._owed.pop((pod, reason), None)
        if reason == "Scheduled" and owed is not None:
            yield from _elsewhere(line, owed.fields["node"], owed)
        if reason == "FailedScheduling":
            yield from self._account(line, state)

    def _account(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        match = _MESSAGE.match(line.fields["message"])
        if match is None:
            return
        named, counts = int(match[1]), [int(count) for count in _COUNTED.findall(match[2])]
        there = {1, len(self._nodes)}  # one that is turned away once it had a node speaks of that node alone
        if line.t - self._nodes_changed_s <= SEEN_S + state.bounds.lag_s:
            there |= {self._before, named}
        wrong = ""
        if named not in there:
            wrong = f"speaks of {named} nodes, and there are {len(self._nodes)}"
        elif counts and (sum(counts) < named or max(counts) > named):
            wrong = f"gives reasons for {sum(counts)} of {named} nodes"
        if wrong:
            yield Breach(
                (line.fields["object"], str(line.number)), f"FailedScheduling of {line.fields['object']} {wrong}", line
            )


def _elsewhere(reported: Line, node: str, bound: Line) -> Iterator[Breach]:
    match = _ASSIGNED.match(reported.fields["message"])
    if match is not None and match[2] != node:
        last = max(reported, bound, key=lambda each: each.number)
        yield Breach(
            (bound.actor, str(last.number)), f"{bound.actor} is bound to {node}, and its event says {match[2]}", last
        )
