"""Invariant 28: a node's taints say what its Ready condition says."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

_TAINTS = {"False": "node.kubernetes.io/not-ready", "Unknown": "node.kubernetes.io/unreachable"}
_WITHIN_S = 30.0
"""The node life cycle controller taints at once, and looks every five seconds (upstream's
nodelifecycle/node_lifecycle_controller.go); as often again where a write was lost."""


class NodeTaints(Invariant[ObservedState]):
    """A node that is not ready has the taint of its condition, with NoSchedule, and a ready node has no such taint.
    This holds within half a minute, where our node life cycle controller runs. The law does not judge a node that was
    never tainted on this cluster."""

    number = 28
    name = "a node's taints say what its Ready condition says"
    of_time = True
    events = frozenset({("api", "condition"), ("api", "taints"), ("api", "deleted")})

    def __init__(self) -> None:
        self._ready: dict[str, Line] = {}
        self._taints: dict[str, frozenset[str]] = {}
        self._doubts: dict[str, float] = {}

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Take in what is said of a node."""
        if not line.actor.startswith("node/"):
            return iter(())
        if line.event == "deleted":
            for known in (self._ready, self._taints, self._doubts):
                known.pop(line.actor, None)
            return iter(())
        if line.event == "taints":
            self._taints[line.actor] = frozenset(map(str, line.fields.get("taints") or ()))
        elif line.fields.get("type") == "Ready":
            self._ready[line.actor] = line
        if self._agrees(line.actor):
            self._doubts.pop(line.actor, None)
        else:
            self._doubts.setdefault(line.actor, line.t)
        return iter(())

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge those who disagree for too long."""
        for node in [node for node, since_s in self._doubts.items() if t - since_s > _WITHIN_S]:
            ready = self._ready[node]
            del self._doubts[node]
            has = ", ".join(sorted(self._taints[node])) or "none"
            what = f"{node} is Ready {ready.fields.get('status')} for more than {_WITHIN_S:g} s with taints: {has}"
            yield Breach((node, str(ready.number)), what, ready, due_s=ready.t)

    def _agrees(self, node: str) -> bool:
        if node not in self._ready or node not in self._taints:
            return True
        wanted = _TAINTS.get(str(self._ready[node].fields.get("status")))
        bears = {taint.partition(":")[0] for taint in self._taints[node]} & {*_TAINTS.values()}
        return wanted in bears if wanted else not bears
