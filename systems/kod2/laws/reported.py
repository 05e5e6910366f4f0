"""What KOD2's operator says in its events is what it did."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kod2.job_books import JobBooks, JobRecord
from mews.systems.kod2.model import State

_SCALED = {
    "ScaledIn": re.compile(r"^gives (?P<tasks>.+) for [^;]+; (?P<workers>\d+) worker"),
    "ScaledOut": re.compile(r"^gets (?P<tasks>.+); (?P<workers>\d+) worker"),
}
_TASK = re.compile(r"\b((?:chief|evaluator|master|ps|worker)-\d+)\b")
_POD = {
    "SuccessfulCreatePod": (re.compile(r"^Created pod: (\S+)$"), "created"),
    "SuccessfulDeletePod": (re.compile(r"^Deleted pod: (\S+)$"), "deleting"),
}
_MOMENTS_S = 1.0


class ReportsWhatItDoes(Invariant[RunState]):
    """An event of scaling names only workers, and as many as the job then has, in the moment in which the job is
    scaled. An event of a placement names the tasks that are placed. A pod that an event reports as made, or deleted,
    was so in that moment. Each pod that is made for a job has its event. A running job whose spec has not changed since
    its placement lacks nothing."""

    number = 68
    name = "the operator's events say what it did"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", "event"), ("api", "created"), ("api", "deleting"), *JobBooks.events}
        | {("component", "killed"), ("component", "crashed"), ("component", "started")}
    )

    def __init__(self, jobs: JobBooks) -> None:
        self._jobs = jobs
        self._done: dict[tuple[str, str], Line] = {}
        self._unreported: dict[str, Line] = {}
        self._down: set[str] = set()
        self._reported: set[str] = set()
        """Pods of whose making an event has told: one that says the same again is no news."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge an event, and pods of which none has told."""
        self._jobs.take(line)
        if state.bound_s("lag_s"):
            return  # events, pods and jobs come from watches of their own
        yield from self._overdue(line)
        if line.layer == "component":
            self._unreported.clear()  # one that has died tells nothing
            self._down.discard(line.actor) if line.event == "started" else self._down.add(line.actor)
        elif line.actor.startswith("tfjob/") and line.event == "created":
            key = line.actor.removeprefix("tfjob/")
            self._reported = {pod for pod in self._reported if not pod.startswith(f"{key}-")}
        elif line.actor.startswith("pod/"):
            pod = line.actor.removeprefix("pod/")
            if line.event in ("created", "deleting"):
                self._done[pod, line.event] = line
            if (
                line.event == "created"
                and not self._down
                and pod not in self._reported
                and self._jobs.owner(pod) is not None
            ):
                self._unreported[pod] = line
        elif line.event == "event" and line.fields["object"].startswith("tfjob/"):
            key = line.fields["object"].removeprefix("tfjob/")
            yield from self._judge(line, key, self._jobs.of(key))

    def _overdue(self, line: Line) -> Iterator[Breach]:
        for pod in [pod for pod, made in self._unreported.items() if line.t - made.t > _MOMENTS_S]:
            made = self._unreported.pop(pod)
            yield Breach((pod, str(made.number)), f"no event tells that {pod} was made", made)

    def _is_new(self, job: JobRecord, line: Line) -> bool:
        """Return whether the job has come to run, or to another number of workers, in the moment of that event."""
        changed = (job.lines.get(event) for event in ("workers", "state", "placement", "bounds"))
        return any(each is not None and line.t - each.t <= _MOMENTS_S for each in changed)

    def _judge(self, line: Line, key: str, job: JobRecord | None) -> Iterator[Breach]:
        reason, message = line.fields["reason"], line.fields["message"]
        wrong, after = "", None
        if reason in _POD:
            match, event = _POD[reason][0].match(message), _POD[reason][1]
            pod = f"{key.partition('/')[0]}/{match[1]}" if match is not None else ""
            if event == "created":
                self._unreported.pop(pod, None)
                self._reported.add(pod)
            after = self._done.get((pod, event))
            if pod and (after is None or line.t - after.t > _MOMENTS_S):
                wrong = f"says {message!r}, and it was not {event} then"
        elif job is not None and reason in _SCALED:
            match, after = _SCALED[reason].match(message), job.lines.get("workers")
            wrong = _scaled(match.groupdict(), message, job) if match is not None else ""
            if match is not None and not wrong and not self._down and not self._is_new(job, line):
                wrong = f"says {message!r}, and its number of workers has not changed since it was last told"
        elif job is not None and reason == "Placed":
            named, after = set(_TASK.findall(message)), job.lines.get("placement")
            wrong = f"says {message!r}, and placed are {', '.join(job.placement)}" if named - set(job.placement) else ""
        elif job is not None and reason == "BelowMinimum" and job.state == State.RUNNING:
            started, after = job.lines.get("state"), job.lines.get("bounds")
            if (
                job.workers >= job.minimum
                and after is not None
                and started is not None
                and started.number > after.number
            ):
                wrong = f"says {message!r}, and it has all tasks of its spec and {job.workers} worker(s)"
        if wrong:
            yield Breach((key, str(line.number)), f"{reason} of {key} {wrong}", line, after=after)


def _scaled(reported: Mapping[str, str], message: str, job: JobRecord) -> str:
    others = [task for task in _TASK.findall(reported["tasks"]) if not task.startswith("worker-")]
    if others:
        return f"names {', '.join(others)}: only workers come and go"
    if job.state == State.RUNNING and int(reported["workers"]) != job.workers:
        return f"says {message!r}, and it has {job.workers} worker(s)"
    return ""
