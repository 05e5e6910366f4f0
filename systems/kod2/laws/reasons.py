"""Why a TFJob waits is told by the weights that are shown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kod2.job_books import JobBooks, JobRecord
from mews.systems.kod2.model import State

_LIGHT = re.compile(r"its weight (\S+) lets it preempt nobody(?:, and (\S+) runs with (\S+))?$")
_BEHIND = re.compile(r"^(\S+) is ahead of it in the line")
_ROUNDED = 0.005
"""Weights are told with three digits, and the sigmoid of the weight is what is shown."""


class ReasonsAreTrue(Invariant[RunState]):
    """The event of a waiting job names its weight, and the heaviest running job, if any runs. A job that waits behind
    another job has that name, too. The weight that a job shows is the sigmoid of the weight in the event (equation 1 of
    the paper). A starving job is shown as the heaviest, and keeps its weight."""

    number = 1033
    name = "the event of a waiting job agrees with the weights that are shown"
    ours_alone = True
    events = frozenset({("api", "event"), *JobBooks.events, *JobBooks.of_nodes})

    def __init__(self, jobs: JobBooks) -> None:
        self._jobs = jobs

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge an event that says why a job waits."""
        self._jobs.take(line)
        if line.event != "event" or state.bound_s("lag_s") or not line.fields["object"].startswith("tfjob/"):
            return
        key = line.fields["object"].removeprefix("tfjob/")
        job = self._jobs.of(key)
        if job is None or line.fields["reason"] not in ("TooLight", "Behind"):
            return
        wrong = self._wrong(line.fields["message"], job)
        if wrong:
            what = f"{key} has the event {line.fields['message']!r}, {wrong}"
            yield Breach((key, str(line.number)), what, line, after=job.lines.get("weight"))

    def _wrong(self, message: str, job: JobRecord) -> str:
        if (behind := _BEHIND.match(message)) is not None:
            ahead = self._jobs.of(behind[1])
            waits = ahead is not None and ahead.over is None and ahead.state in (State.WAITING, State.STARVING)
            return "" if waits else f"and {behind[1]} does not wait"
        light = _LIGHT.search(message)
        if light is None:
            return ""
        if job.state != State.STARVING and not _is_shown(light[1], job):
            return f"and its weight is shown as {job.weight}"
        running = self._jobs.running()
        if light[2] is None:
            return f"and {', '.join(sorted(running))} runs" if running else ""
        named = running.get(light[2])
        if named is None:
            return f"and {light[2]} does not run"
        heavier = [key for key, each in running.items() if (each.weight or 0.0) > (named.weight or 1.0)]
        if not _is_shown(light[3], named) or heavier:
            return f"and {light[2]} is shown with {named.weight}" + f", {', '.join(heavier)} as heavier" * bool(heavier)
        return ""


def _is_shown(weight: str, job: JobRecord) -> bool:
    """Return whether a job shows the weight that is told; one that shows none yet may."""
    shown = 1.0 / (1.0 + math.exp(-min(float(weight), 700.0)))
    return job.weight is None or abs(shown - job.weight) <= _ROUNDED


class RoomIsGivenBack(Invariant[RunState]):
    """A job that has never run gives its room back if the API refuses all of its pods for good (contract kod2.md
    section 1). A job that has run waits for a while, and one that has pods goes on with these."""

    number = 1034
    name = "a job whose pods are not let in gives its room back"
    ours_alone = True
    events = frozenset({("api", "event"), ("api", "condition"), ("api", "created"), *JobBooks.events})

    def __init__(self, jobs: JobBooks) -> None:
        self._jobs = jobs
        self._ran: set[str] = set()
        """Jobs that were called Running, or that have had a pod."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge the event of a pod that is not let in."""
        self._jobs.take(line)
        kind, _, name = line.actor.partition("/")
        if kind == "tfjob" and line.event in ("created", "deleted"):
            self._ran.discard(name)
        elif kind == "tfjob" and line.event == "condition" and line.fields["type"] in ("Running", "Restarting"):
            self._ran.add(name)
        elif kind == "pod" and line.event == "created" and (owner := self._jobs.owner(name)) is not None:
            self._ran.add(owner[0])
        elif line.event == "event" and line.fields["reason"] == "FailedCreatePod" and not state.bound_s("lag_s"):
            key, message = str(line.fields["object"]).removeprefix("tfjob/"), str(line.fields["message"])
            job = self._jobs.of(key)
            if job is None or job.state != State.RUNNING or key in self._ran or " is forbidden: " not in message:
                return
            what = f"{key} keeps its room, and none of its pods is let in"
            yield Breach((key, "kept", str(line.number)), what, line, after=job.lines.get("placement"))
