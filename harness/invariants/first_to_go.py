"""Which pods a shrinking ReplicaSet deletes first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from mews.harness.journal import Line
from mews.kube.system.invariant import Breach

SEEN_S = 1.0
"""What changed so lately a controller may not have seen."""
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_OVER = ("Succeeded", "Failed")
_COST = "controller.kubernetes.io/pod-deletion-cost"
_AGES, _ROUNDED_S = 2.0, 4.0
"""Ages count by powers of two, and from times in whole seconds."""


class _State(Struct):
    """Of a pod, as its lines have it; ``changed_s``: when one of them came last."""

    phase: str
    node: str = ""
    is_ready: bool = False
    leaving_s: float | None = None
    changed_s: float = 0.0
    ready_s: float = 0.0
    has_cost: bool = False

    def rank(self) -> tuple[bool, int, bool]:
        return bool(self.node), _PHASES.get(self.phase, 0), self.is_ready

    def is_active(self, t: float) -> bool:
        """Return whether its controller counted it at that moment, before what it deletes then."""
        return self.phase not in _OVER and (self.leaving_s is None or self.leaving_s == t)


class FirstToGo:
    """A pod without a node goes before one with a node, a pending one before a running one, and one that is not ready
    before a ready one. Of pods that are alike, one goes first whose node has more pods of its ReplicaSet, or of the
    others of its Deployment, and then one that has been ready for a much shorter time (``ActivePodsWithRanks`` of
    pkg/controller/controller_utils.go). Further ranks need more than the journal has. Pods with a deletion cost are not
    judged. Given the lines of pods, it judges a deletion that a controller reports."""

    def __init__(self) -> None:
        self._pods: dict[str, _State] = {}

    def take(self, line: Line) -> None:
        """A line about a pod."""
        if line.event == "created":
            self._pods[line.actor] = _State(str(line.fields.get("phase") or "Pending"), changed_s=line.t)
            return
        state = self._pods.get(line.actor)
        if state is None:
            return
        if line.event == "deleted":
            del self._pods[line.actor]
            return
        if line.event == "deleting":
            state.leaving_s = line.t
        elif line.event == "annotations":
            state.has_cost = state.has_cost or _COST in line.fields["annotations"]
        elif line.event == "bound":
            state.node, state.changed_s = str(line.fields.get("node") or "*"), line.t
        elif line.event == "phase":
            state.phase, state.changed_s = str(line.fields["phase"]), line.t
        elif line.event == "condition" and line.fields["type"] == "Ready":
            state.is_ready, state.changed_s = line.fields["status"] == "True", line.t
            state.ready_s = line.t

    def deleted(self, owner: str, pod: str, owners: Mapping[str, str], done: Line) -> Iterator[Breach]:
        """Yield where a controller has deleted that pod of an owner; ``owners``: of all pods, as far as known."""
        gone = self._pods.get(pod)
        if gone is None or not owner.startswith("replicaset/") or done.t - gone.changed_s <= SEEN_S:
            return
        for other in (each for each, whose in owners.items() if whose == owner and each != pod):
            state = self._pods.get(other)
            if state is None or state.leaving_s is not None or state.phase in _OVER:
                continue
            if done.t - state.changed_s <= SEEN_S or state.has_cost or gone.has_cost:
                continue
            less = "less so" if state.rank() < gone.rank() else ""
            if state.rank() == gone.rank():
                less = self._further(owner, gone, state, owners, done.t)
            if less:
                what = f"{owner} deletes {pod}, which is bound, runs or is ready, before {other}, which is {less}"
                yield Breach((pod, "first to go", str(done.number)), what, done)
                return

    def _further(self, owner: str, gone: _State, other: _State, owners: Mapping[str, str], t: float) -> str:
        """Return in what respect the other one of two alike was to go first, "" where in none."""
        doubled = []
        for related in (lambda whose: whose == owner, lambda whose: _deployment(whose) == _deployment(owner)):
            nodes = [
                self._pods[each].node
                for each, whose in owners.items()
                if related(whose) and each in self._pods and self._pods[each].is_active(t)
            ]
            doubled.append((nodes.count(gone.node), nodes.count(other.node)))
        if all(own < others for own, others in doubled):
            return "on a node with more of them"
        if any(own != others for own, others in doubled) or not gone.is_ready:
            return ""
        is_older = t - gone.ready_s > 2 * _AGES * (t - other.ready_s) + _ROUNDED_S
        return "ready for a shorter time" if is_older else ""


def _deployment(owner: str) -> str:
    """Return the name of the Deployment of a ReplicaSet, if it has one: its own without the hash."""
    return owner.rpartition("-")[0] or owner
