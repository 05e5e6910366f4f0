"""Which pods a shrinking ReplicaSet deletes first."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mews.harness.journal import Line
from mews.kube.system.invariant import Breach

SEEN_S = 1.0
"""What changed so lately a controller may not have seen."""
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_OVER = ("Succeeded", "Failed")


class _State(Struct):
    """Of a pod, as its lines have it; ``changed_s``: when one of them came last."""

    phase: str
    is_bound: bool = False
    is_ready: bool = False
    is_leaving: bool = False
    changed_s: float = 0.0

    def rank(self) -> tuple[bool, int, bool]:
        return self.is_bound, _PHASES.get(self.phase, 0), self.is_ready


class FirstToGo:
    """A pod without a node goes before one with a node, a pending one before a running one, and one that is not ready
    before a ready one (``ActivePodsWithRanks`` of pkg/controller/controller_utils.go). Further ranks need more than the
    journal has. Given the lines of pods, it judges a deletion that a controller reports."""

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
            state.is_leaving = True
        elif line.event == "bound":
            state.is_bound, state.changed_s = True, line.t
        elif line.event == "phase":
            state.phase, state.changed_s = str(line.fields["phase"]), line.t
        elif line.event == "condition" and line.fields["type"] == "Ready":
            state.is_ready, state.changed_s = line.fields["status"] == "True", line.t

    def deleted(self, owner: str, pod: str, others: Iterator[str], done: Line) -> Iterator[Breach]:
        """Yield a controller has deleted that pod of an owner that has these others as well."""
        gone = self._pods.get(pod)
        if gone is None or not owner.startswith("replicaset/") or done.t - gone.changed_s <= SEEN_S:
            return
        for other in others:
            state = self._pods.get(other)
            if state is None or state.is_leaving or state.phase in _OVER or done.t - state.changed_s <= SEEN_S:
                continue
            if state.rank() < gone.rank():
                what = f"{owner} deletes {pod}, which is bound, runs or is ready, before {other}, which is less so"
                yield Breach((pod, "first to go", str(done.number)), what, done)
                return
