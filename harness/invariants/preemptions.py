"""Invariant 1008: a scheduler preempts nobody whose place is not needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from msgspec import Struct, field

from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.scheduled import Amounts, amounts_of, is_waiting
from mews.harness.journal import Line
from mews.harness.ports.cluster import DEFAULT_SCHEDULER
from mews.kube.api.objects import Object, is_terminal, key_of, node_name_of, uid_of
from mews.kube.api.quantities import parse
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant

_BY = re.compile(r"^Preempted by pod (\S+) on node (\S+)$")
_TARGET = "PreemptionByScheduler"


class _Preemption(Struct):
    """Who makes room for a pod on a node, with the lines that say so, and all of them as they were then."""

    t: float
    uid: str
    node: str
    victims: dict[str, Line] = field(default_factory=dict)
    seen: bool = False
    pod: Object | None = None
    free: Amounts = field(default_factory=dict)
    asked: dict[str, Amounts] = field(default_factory=dict)
    priorities: dict[str, int] = field(default_factory=dict)
    is_contested: bool = False


class Preemptions(Invariant[ObservedState]):
    """Kube-scheduler takes as victims pods of a lower priority alone. Of these it spares as many as it can: with any
    one of its victims, the pod would not fit (``SelectVictimsOnNode`` of default_preemption.go). The law judges pods of
    the default scheduler that ask for resources only. It does not judge a node for which another pod is nominated."""

    number = 1008
    name = "a scheduler preempts nobody whose place is not needed"
    ours_alone = True
    events = frozenset({("api", "condition"), ("api", "event")})

    def __init__(self) -> None:
        self._targets: dict[str, Line] = {}
        self._open: dict[tuple[str, str], _Preemption] = {}

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Take in who is preempted, and by whom."""
        if line.event == "condition":
            if line.fields.get("reason") == _TARGET and line.fields["status"] == "True":
                self._targets[line.actor] = line
        elif line.fields["reason"] == "Preempted" and line.actor == DEFAULT_SCHEDULER:
            match, victim = _BY.match(str(line.fields["message"])), str(line.fields["object"])
            if match is not None and not state.bounds.lag_s:
                key = match[1], match[2]
                known = self._open.setdefault(key, _Preemption(line.t, *key))
                known.victims[victim.removeprefix("pod/")] = self._targets.get(victim, line)
        return iter(())

    def on_objects(self, t: float, objects: ClusterObjects, state: ObservedState) -> Iterator[Breach]:
        """See them as they are in their moment, and judge once that has passed."""
        for key, known in list(self._open.items()):
            if t == known.t:
                _see(known, objects)
                continue
            del self._open[key]
            if known.seen and known.pod is not None and not known.is_contested:
                yield from _unneeded(known)


def _priority(pod: Object) -> int:
    return int(pod.get("spec", {}).get("priority") or 0)


def _see(known: _Preemption, objects: ClusterObjects) -> None:
    node = objects.nodes.get(known.node)
    pod = next((each for each in objects.pods.values() if uid_of(each) == known.uid), None)
    if node is None or pod is None or not is_waiting(pod, (DEFAULT_SCHEDULER,)):
        return
    free = {name: parse(amount) for name, amount in (node["status"].get("allocatable") or {}).items()}
    for each in objects.pods.values():
        nominated = (each.get("status") or {}).get("nominatedNodeName")
        if nominated == known.node and each is not pod and _priority(each) >= _priority(pod):
            known.is_contested = True
        if node_name_of(each) != known.node or is_terminal(each):
            continue
        amounts = amounts_of(each)
        if key_of(each) in known.victims:
            known.asked[key_of(each)], known.priorities[key_of(each)] = amounts, _priority(each)
        for name, amount in amounts.items():
            free[name] = free.get(name, Decimal(0)) - amount
    known.pod, known.free, known.seen = pod, free, True


def _unneeded(known: _Preemption) -> Iterator[Breach]:
    pod = known.pod
    if pod is None or set(known.asked) != set(known.victims):
        return
    wanted = amounts_of(pod)
    for victim, line in known.victims.items():
        if known.priorities[victim] >= _priority(pod):
            what = f"pod {victim} is preempted for {key_of(pod)}, which has no higher priority"
            yield Breach((victim, known.uid, "priority"), what, line)
            continue
        free = dict(known.free)
        for other, amounts in known.asked.items():
            for name, amount in amounts.items() if other != victim else ():
                free[name] = free.get(name, Decimal(0)) + amount
        if all(amount <= free.get(name, Decimal(0)) for name, amount in wanted.items() if amount):
            what = f"pod {victim} is preempted for {key_of(pod)}, which would fit {known.node} beside it"
            yield Breach((victim, known.uid), what, line)
