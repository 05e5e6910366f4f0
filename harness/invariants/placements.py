"""Invariant 25: a scheduler binds a pod where what it asks for is free."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from mews.harness.invariants.fault_windows import LATE
from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.refusals import insufficient, misplaced, unjust
from mews.harness.journal import Line
from mews.kube.api.objects import node_name_of, uid_of
from mews.kube.api.quantities import parse
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant

_LATE_S = 5.0
"""A node that offered more so long ago may still be seen so by a scheduler that is about to bind."""
_SEEN_S = 0.001
"""The objects are looked at in the moment of a binding, or of a refusal."""


class Placements(Invariant[ObservedState]):
    """Free amounts count per node and extended resource, from what nodes offer and what live pods on them requested
    when they were created. Cpu, memory, selectors, affinity to nodes and taints are read from the objects. A refusal
    gives no reason for more nodes than it can hold for. What changed lately counts either way, and so does each pod
    without a node, which may be on its way there. The law judges only bindings and refusals by schedulers of this run.
    It does not judge a resource that the node has never offered: a scheduler that is asked for one may translate it."""

    number = 25
    name = "a pod is bound where what it asks for is free, and refused where it is not"
    events = frozenset(
        {("api", event) for event in ("created", "bound", "allocatable", "phase", "deleted", "event")}
        | {("api", "taints"), ("api", "unschedulable")}
    )

    def __init__(self) -> None:
        self._offered: dict[str, dict[str, Decimal]] = {}
        self._before: dict[tuple[str, str], tuple[float, Decimal]] = {}
        self._changed: dict[str, Line] = {}
        self._asked: dict[str, Line] = {}
        self._on: dict[str, set[str]] = {}
        self._uids: dict[str, str] = {}
        self._ended: dict[str, tuple[float, str]] = {}
        """Pods that ended lately: when, and on which node."""
        self._nodes_changed_s: dict[str, float] = {}
        """When a node got room, opened itself to pods or closed itself last."""
        self._doubts: list[Line] = []
        """Bindings and refusals that are still to be held to the objects."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge a binding, or a refusal."""
        if line.event == "event":
            if line.fields["reason"] == "FailedScheduling":
                yield from self._judge_refusal(line, state)
            return
        kind, _, name = line.actor.partition("/")
        if kind == "node":
            self._node(name, line)
        elif kind == "pod":
            yield from self._pod(line, state)

    def on_objects(self, t: float, objects: ClusterObjects, state: ObservedState) -> Iterator[Breach]:
        """Judge bindings and refusals by the objects."""
        doubts, self._doubts = self._doubts, []
        for line in doubts:
            if t - line.t > _SEEN_S or state.bounds.lag_s:
                continue
            changed = {node for node, changed_s in self._nodes_changed_s.items() if line.t - changed_s <= _LATE_S}
            actor = line.actor if line.event == "bound" else str(line.fields["object"])
            pod = objects.pods.get(actor.removeprefix("pod/"))
            if pod is None or uid_of(pod) != self._uids.get(actor):
                continue
            if line.event == "bound" and node_name_of(pod) != line.fields["node"]:
                self._doubts.append(line)  # the look comes before the object
            elif line.event == "bound":
                wrong = misplaced(pod, objects, changed)
                yield from _held_to(line, f"{actor} is bound to {line.fields['node']},", wrong)
            else:
                wrong = unjust(str(line.fields["message"]), pod, objects, changed)
                yield from _held_to(line, f"{actor} is refused:", wrong)

    def _node(self, name: str, line: Line) -> None:
        self._nodes_changed_s[name] = line.t
        if line.event == "created":
            self._offered[name] = {key: parse(value) for key, value in line.fields["allocatable"].items() if "/" in key}
            self._changed[name] = line
        elif line.event == "deleted":
            self._offered.pop(name, None)
        elif line.event == "allocatable" and "/" in line.fields["resource"] and name in self._offered:
            resource, offered = line.fields["resource"], self._offered[name]
            self._before[name, resource] = line.t, offered.get(resource, Decimal(0))
            offered[resource] = parse(line.fields["new"] or 0)
            self._changed[name] = line

    def _pod(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        uid = str(line.fields.get("uid"))
        if line.event == "created":
            self._asked[uid] = line
            self._uids[line.actor] = uid
            self._on.setdefault(str(line.fields.get("node") or ""), set()).add(uid)
        elif line.event == "bound" and uid in self._asked:
            node = str(line.fields["node"])
            self._leave(uid)
            self._on.setdefault(node, set()).add(uid)
            asked = self._asked[uid].fields
            if asked.get("scheduler") in state.systems.schedulers and not asked.get("node"):
                self._doubts.append(line)
                yield from self._judge(uid, node, line)
        elif line.event == "deleted" or line.fields.get("phase") in ("Succeeded", "Failed"):
            self._end(uid, line)

    def _end(self, uid: str, line: Line) -> None:
        for node, pods in self._on.items():
            if uid in pods:
                self._nodes_changed_s[node] = line.t
                self._ended = {key: ended for key, ended in self._ended.items() if line.t - ended[0] <= _LATE_S}
                self._ended[uid] = line.t, node
        self._leave(uid)
        if line.event == "deleted" and self._uids.get(line.actor) == uid:
            del self._uids[line.actor]

    def _judge_refusal(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        uid = self._uids.get(str(line.fields["object"]), "")
        asked = self._asked[uid].fields if uid else {}
        if asked.get("scheduler") not in state.systems.schedulers or state.bounds.lag_s:
            return
        if state.windows.excused(LATE, line.t):
            return
        self._doubts.append(line)
        for count, resource in insufficient(str(line.fields["message"])):
            amount = asked["requests"].get(resource, 0)
            enough = [node for node in self._offered if self._surely_free(node, resource, uid, line.t) >= amount]
            if "/" in resource and amount and len(self._offered) - len(enough) < count:
                what = f"{line.fields['object']} is refused for {resource} on {count} node(s)"
                what = f"{what}, and {', '.join(sorted(enough))} of {len(self._offered)} can give it {amount}"
                yield Breach((uid, resource, str(line.number)), what, line, after=self._changed.get(enough[0]))

    def _surely_free(self, node: str, resource: str, uid: str, t: float) -> Decimal:
        """Return what of it is free there whatever the scheduler has seen of the last moments."""
        offered = self._offered[node].get(resource, Decimal(0))
        at_s, before = self._before.get((node, resource), (-_LATE_S, offered))
        if t - at_s < _LATE_S:
            offered = min(offered, before)
        lately = {each for each, (ended_s, where) in self._ended.items() if where == node and t - ended_s < _LATE_S}
        pods = (self._on.get(node, set()) | self._on.get("", set()) | lately) - {uid}
        taken = sum(int(self._asked[each].fields["requests"].get(resource, 0)) for each in pods)
        return offered - taken

    def _leave(self, uid: str) -> None:
        for pods in self._on.values():
            pods.discard(uid)

    def _judge(self, uid: str, node: str, line: Line) -> Iterator[Breach]:
        for resource, asked in self._asked[uid].fields["requests"].items():
            if asked <= 0 or resource not in self._offered.get(node, ()):
                continue
            offered = self._offered[node][resource]
            at_s, more = self._before.get((node, resource), (-_LATE_S, offered))
            if line.t - at_s < _LATE_S:
                offered = max(offered, more)
            others = (self._asked[other].fields["requests"] for other in self._on[node] if other != uid)
            taken = sum(requests.get(resource, 0) for requests in others)
            if taken + asked > offered:
                what = f"{line.actor} asks {asked} {resource} of {node}, which offers {offered} and has given {taken}"
                yield Breach((uid, resource), what, line, after=self._changed.get(node))


def _held_to(line: Line, what: str, wrong: str) -> Iterator[Breach]:
    if wrong:
        yield Breach((line.actor, "objects", str(line.number)), f"{what} {wrong}", line)
