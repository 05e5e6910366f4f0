"""Invariant 89: a pod that was refused is tried again when something happens, and then at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

AT_ONCE_S = 0.001
"""Times are sums of seconds: what happens at a moment may be written so much later."""
LEFTOVER_S = 290.0
"""A scheduler tries everything again that has waited for five minutes (scheduling_queue.go, flushUnschedulablePods)."""
_SCHEDULER = "default-scheduler"
_ATTACHED_FIRST = "BindingConditionsPending"
_CLAIMS = re.compile(r"cannot allocate all claims|[Rr]esource ?[Cc]laim")
_OWN = ("condition", "event", "annotations")
"""What is written of a pod while it is decided about."""


class _Refusal(Struct):
    """Why a pod waits: ``by`` says so, ``noted`` is whether somebody has written down something that it waits for."""

    by: Line
    noted: bool = False


class Prompted(Invariant[ObservedState]):
    """A pod that was called unschedulable is bound at a moment at which another event happens. A scheduler without
    other work does not let a pod wait for the end of its back-off. This is upstream's SchedulerPopFromBackoffQ, on by
    default since 1.33. A scheduler leaves a pod alone that no event has woken (upstream's queueing hints). The law does
    not judge these pods:

    - Pods that somebody has annotated since they were refused.
    - Pods whose scheduler failed.
    - Pods that have waited until they are tried regardless of events.
    - Pods that wait for resource claims, which the journal does not follow, and whose devices may have to be attached
      first.
    - Pods of systems' schedulers, which may wait and read by themselves."""

    number = 89
    name = "a refused pod is bound when something happens"
    ours_alone = True

    def __init__(self) -> None:
        self._refused: dict[str, _Refusal] = {}
        self._judged: set[str] = set()
        """The pods of the scheduler that is judged."""
        self._prompt: Line | None = None
        """The last line that may have woken a pod."""

    # Complex: one branch for each kind of line, and it runs for every line.
    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:  # noqa: C901
        """Take in what happens, and judge bindings."""
        if line.event == "event":
            self._note_event(str(line.fields.get("object")), line)
        if not self._refused and (line.layer != "api" or line.event in _OWN[1:]):
            if line.layer != "api" or line.event == "annotations":
                self._prompt = line
            return
        refusal = self._refused.get(line.actor)
        if line.layer == "api" and line.actor.startswith("pod/"):
            if line.event == "condition":
                self._condition(line)
            elif refusal is not None and line.event == "annotations":
                refusal.noted = True
            elif line.event == "created" and line.fields["scheduler"] == _SCHEDULER:
                self._judged.add(line.actor)
            elif line.event in ("bound", "deleted"):
                self._judged.discard(line.actor)
                self._refused.pop(line.actor, None)
                if refusal is not None and line.event == "bound" and not state.bounds.lag_s:
                    yield from self._bound(line, refusal)
        is_own = line.layer == "api" and line.event in _OWN and (refusal is not None or line.event == "event")
        if not is_own:
            self._prompt = line

    def _note_event(self, pod: str, line: Line) -> None:
        if line.fields.get("reason") == _ATTACHED_FIRST or _CLAIMS.search(str(line.fields.get("message"))):
            self._refused.pop(pod, None)
            self._judged.discard(pod)

    def _condition(self, line: Line) -> None:
        if line.fields.get("type") != "PodScheduled":
            return
        if line.fields.get("reason") == "Unschedulable" and line.actor in self._judged:
            self._refused[line.actor] = _Refusal(line)
        else:
            self._refused.pop(line.actor, None)

    def _bound(self, line: Line, refusal: _Refusal) -> Iterator[Breach]:
        waited_s = line.t - refusal.by.t
        if refusal.noted or waited_s >= LEFTOVER_S or waited_s <= AT_ONCE_S:
            return
        if self._prompt is None or line.t - self._prompt.t > AT_ONCE_S:
            since = refusal.by if self._prompt is None else self._prompt
            what = f"{line.actor} is bound {line.t - since.t:.1f} s after the last thing happened that could help it"
            yield Breach((line.actor, str(line.number)), what, line, after=since)
