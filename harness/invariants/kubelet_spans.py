"""Invariant 26: what a kubelet does takes as long as it takes."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.emulated.kubelet.timings import MEASURED, Span
from mews.kube.system.invariant import Breach, Invariant

NEAR_S = 0.001
"""Times are sums of seconds: what takes so much less took its time."""
_STARTS: dict[str, Span] = {"Created": MEASURED.create, "Started": MEASURED.start}
_BEFORE = {"Created": "Pulled", "Started": "Created"}


class KubeletSpans(Invariant[ObservedState]):
    """A kubelet sees a pod only after it is bound, and a deletion only after it was requested. It pulls, creates and
    starts a container in this order. None of these steps is faster than was ever measured on a real kubelet (contract
    kubelet.md sections 2, 8, 10 and 11). The law does not judge when an ended pod goes: a client that deletes it once
    more removes it immediately."""

    number = 26
    name = "a kubelet does nothing before it can have seen why, nor faster than it can"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", event) for event in ("bound", "deleting", "deleted", "event", "condition")}
        | {("component", "killed"), ("component", "crashed")}
    )

    def __init__(self) -> None:
        self._bound: dict[str, Line] = {}
        self._asked: dict[str, Line] = {}
        self._reported: dict[tuple[str, str], Line] = {}
        """Pod and reason -> the last event of that sort."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Compare a line with the one that it follows from."""
        if state.bounds.lag_s:
            return
        if line.layer == "component":
            if line.actor.startswith("kubelet/"):
                self._forget()
        elif line.event == "event":
            if line.actor.startswith("kubelet/"):
                yield from self._report(line)
        elif line.actor.startswith("pod/"):
            yield from self._pod(line)

    def _forget(self) -> None:
        """A kubelet that begins anew finds things as they are, and others may have been at them."""
        for known in (self._bound, self._asked, self._reported):
            known.clear()

    def _pod(self, line: Line) -> Iterator[Breach]:
        pod = line.actor
        if line.event == "bound":
            self._bound[pod] = line
        elif line.event == "deleting":
            self._asked.setdefault(pod, line)
        elif line.event == "condition":
            if line.fields["type"] == "PodReadyToStartContainers":
                yield from self._faster(line, self._bound.pop(pod, None), MEASURED.see_pod, "seen")
        else:
            self._asked.pop(pod, None)
            self._bound.pop(pod, None)
            for key in [key for key in self._reported if key[0] == pod]:
                del self._reported[key]

    def _report(self, line: Line) -> Iterator[Breach]:
        pod, reason = line.fields["object"], line.fields["reason"]
        if reason == "Killing":
            yield from self._faster(line, self._asked.get(pod), MEASURED.see_deletion, "killed")
        if reason in ("Pulled", *_STARTS):
            before = self._reported.get((pod, _BEFORE.get(reason, "")))
            self._reported[pod, reason] = line
            if reason in _STARTS:
                yield from self._faster(line, before, _STARTS[reason], reason.lower())

    def _faster(self, line: Line, since: Line | None, span: Span, what: str) -> Iterator[Breach]:
        if since is not None and line.t - since.t < span.low_s - NEAR_S:
            pod = line.fields["object"] if line.event == "event" else line.actor
            took = f"{line.t - since.t:.3f} s after the line {since.event} (never below {span.low_s:g} s)"
            yield Breach((pod, what, str(line.number)), f"{pod} is {what} {took}", line, after=since)
