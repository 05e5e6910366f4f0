"""A TFJob's conditions and its state agree with its pods."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kod2.job_books import JobBooks
from mews.systems.kod2.model import State

SEEN_S = 2.0
"""Within which an operator has seen what became of a pod."""


class StatusesAgree(Invariant[RunState]):
    """The condition Running holds while a pod of the job runs. The job has succeeded once one of its pods has
    succeeded. One write makes it COMPLETED and adds the condition that states how it ended. A job that has ended is
    not called Running any more."""

    number = 69
    name = "a TFJob's conditions agree with its pods and its state"
    of_time = True
    ours_alone = True
    events = frozenset({("api", "phase"), ("api", "condition"), *JobBooks.events})

    def __init__(self, jobs: JobBooks) -> None:
        self._jobs = jobs
        self._phases: dict[str, dict[str, Line]] = {}
        """Job -> pod -> the line of its last phase."""
        self._ended: dict[str, str] = {}
        self._open: dict[str, Line] = {}
        self._moment_s = -math.inf
        self._running: dict[str, Line] = {}
        self._still: dict[str, tuple[Line, Line]] = {}
        """Jobs that ended in this moment and are called Running, by the lines that say so."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge a condition by the pods as they are; a state, once all of its write was seen."""
        self._jobs.take(line)
        if state.bound_s("lag_s"):
            return  # pods and jobs come from watches of their own
        if line.t > self._moment_s:
            for key, opened in self._open.items():
                yield Breach((key, "ended"), f"{key} is COMPLETED, and no condition says how it ended", opened)
            for key, (ended, running) in self._still.items():
                what = f"{key} is called {ended.fields['type']}, and Running still"
                yield Breach((key, "still"), what, ended, after=running)
            self._open.clear()
            self._still.clear()
            self._moment_s = line.t
        kind, _, key = line.actor.partition("/")
        if kind == "pod":
            self._pod(key, line)
        elif kind == "tfjob":
            yield from self._job(key, line)

    def _pod(self, pod: str, line: Line) -> None:
        owner = self._jobs.owner(pod)
        if owner is None:
            return
        if line.event == "phase":
            self._phases.setdefault(owner[0], {})[pod] = line

    def _job(self, key: str, line: Line) -> Iterator[Breach]:
        if line.event in ("created", "deleted"):
            self._phases.pop(key, None)
            self._ended.pop(key, None)
            self._open.pop(key, None)
            self._running.pop(key, None)
            self._still.pop(key, None)
        elif line.event == "state" and line.fields["state"] == State.COMPLETED:
            if key not in self._ended:
                self._open[key] = line
        elif line.event == "condition":
            if line.fields["type"] in ("Succeeded", "Failed") and line.fields["status"] == "True":
                self._ended[key] = line.fields["type"]
                self._open.pop(key, None)
                if key in self._running:
                    self._still[key] = line, self._running[key]
            self._note_running(key, line)
            yield from self._condition(key, line)

    def _note_running(self, key: str, line: Line) -> None:
        """A condition Restarting takes the place of Running."""
        if line.fields["type"] in ("Running", "Restarting"):
            self._running.pop(key, None)
            self._still.pop(key, None)
            if (line.fields["type"], line.fields["status"]) == ("Running", "True"):
                self._running[key] = line

    def _condition(self, key: str, line: Line) -> Iterator[Breach]:
        wanted = {"Running": "Running", "Succeeded": "Succeeded"}.get(line.fields["type"])
        if wanted is None or line.fields["status"] != "True":
            return
        phases = self._phases.get(key, {})
        lately = (each for each in phases.values() if each.fields["phase"] == wanted or line.t - each.t <= SEEN_S)
        if not any(lately):
            last = max(phases.values(), default=None, key=lambda each: each.number)
            what = f"{key} is called {wanted}, and none of its pods is {wanted}"
            yield Breach((key, wanted, str(line.number)), what, line, after=last)
