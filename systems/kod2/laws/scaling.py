"""The laws of KOD2's elastic scheduler: what scaling may do to a job, and how often a task is tried anew.

Contract kod2.md section 2. The paper's pseudocode (``mode: literal``) breaks some of them by its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kod2.job_books import JobBooks, JobRecord
from mews.systems.kod2.laws.cleaned import CleanUp
from mews.systems.kod2.model import State
from mews.systems.kod2.outcome import DISRUPTIONS
from mews.systems.kod2.status import delay_s
from mews.systems.kod2.tfjob import CleanPodPolicy

LITERAL_WORKER_0 = "mode: literal removes worker-0 like any other worker, as Algorithm 2 of the paper is printed"
LITERAL_THRASH = "mode: literal runs ScaleOut at every pass and has no cooldown, as Algorithm 3 of the paper is printed"

REFUSALS = 5
"""So often in a row a node may turn a task away before its job gives the room back (contract kod2.md section 1)."""

_ROUNDING_S = 0.002
_PROMPT_S = 0.5
"""So much later than its back-off ends an operator has made a pod anew that nothing keeps from it."""
_LEADER = "worker-0"
_GIVES = re.compile(r"^gives (?P<tasks>.+) for (?P<key>[^;]+); ")


_SATURATES = 0.99
"""From which on different weights may be shown as the same."""


class _JobLaw(Invariant[RunState]):
    events = JobBooks.events

    def __init__(self, jobs: JobBooks) -> None:
        self._jobs = jobs


class WithinBounds(_JobLaw):
    """A job that gives workers keeps its minimum, and a job that gets workers stays within its maximum. A job that
    starts has both bounds. Workers that a job has while its spec is edited do not count as scaling."""

    number = 60
    name = "scaling leaves a job between its minimum and its maximum of workers"

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge a change of the number of workers."""
        job = self._jobs.take(line)
        if job is None or not job.maximum or job.state != State.RUNNING or line.event not in ("workers", "state"):
            return
        before = line.fields["old"] if line.event == "workers" else 0
        wrong = ""
        if job.workers < job.minimum and (job.workers < before or line.event == "state"):
            wrong = f"below its minimum of {job.minimum}"
        elif job.workers > job.maximum and job.workers > before:
            wrong = f"above its maximum of {job.maximum}"
        if wrong:
            what = f"{_key(line)} has {job.workers} worker(s) now, {wrong}"
            yield Breach((line.actor, str(line.number)), what, line, after=job.lines.get("bounds"))


class LeaderStays(_JobLaw):
    """``worker-0`` writes checkpoints, and in a job without a chief its success is the job's success."""

    number = 61
    name = "worker-0 is never taken from a running job"

    def __init__(self, jobs: JobBooks, known: str = "") -> None:
        super().__init__(jobs)
        self._known = known

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge a placement."""
        job = self._jobs.take(line)
        if job is None or line.event != "placement" or job.state != State.RUNNING:
            return
        before = self._jobs.before
        if before.state == State.RUNNING and _LEADER in before.placement and _LEADER not in job.placement:
            what = f"{_key(line)} goes on without {_LEADER}"
            yield Breach(
                (line.actor, str(line.number)), what, line, after=before.lines.get("placement"), known=self._known
            )


class HeavierFirst(_JobLaw):
    """The law judges by the weights that are shown, each a sigmoid of a weight that is compared. The sigmoid saturates:
    a heavier shown weight is certain, and an equal one proves nothing by itself. A starving job is the heaviest. Of two
    jobs with the same bounds and the same weight, the one that came earlier gives no workers (contract kod2.md section
    2, Algorithm 1)."""

    number = 62
    name = "workers are taken from jobs that are no heavier than the one that they are for, and no older ones as heavy"
    events = frozenset({("api", "event"), *JobBooks.events, *JobBooks.of_nodes})

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge the event of a scale-in, which says for whom it is."""
        if line.event != "event":
            self._jobs.take(line)
            return
        match = _GIVES.match(line.fields["message"]) if line.fields["reason"] == "ScaledIn" else None
        victim = self._jobs.of(line.fields["object"].removeprefix("tfjob/")) if match is not None else None
        other = self._jobs.of(match["key"]) if match is not None else None
        if match is None or victim is None or other is None or victim.weight is None or other.weight is None:
            return
        starving = other.state == State.STARVING or "STARVING" in str(self._was(other))
        older = _is_twin(victim, other) and _came(victim) < _came(other)
        if (victim.weight > other.weight or older) and not starving:
            key, came = line.fields["object"], " and came earlier" if older else ""
            what = (
                f"{key} with weight {victim.weight:g} gives {match['tasks']} for {match['key']} with {other.weight:g}"
                f"{came}"
            )
            first = victim.lines.get("workers", line)
            yield Breach((key, str(first.number)), what, first, after=other.lines.get("weight"))

    def _was(self, job: JobRecord) -> str:
        last = job.lines.get("state")
        return str(last.fields["state"]) if last is not None else ""


def _is_twin(one: JobRecord, other: JobRecord) -> bool:
    """Return whether two jobs are as heavy as each other whatever weighs: their bounds and their weight, short of where
    it saturates, are the same."""
    bounds = [(each.minimum, each.maximum, each.retries) for each in (one, other)]
    return bounds[0] == bounds[1] and one.weight == other.weight and one.weight is not None and one.weight < _SATURATES


def _came(job: JobRecord) -> int:
    created = job.lines.get("created")
    return -1 if created is None else created.number


class OverIsOver(_JobLaw):
    """A job that has ended or is deleted is not scaled, placed or started any more, and no pod is made for it. Of one
    that has succeeded the pods go that its cleanPodPolicy names, and no others."""

    number = 63
    name = "a job that is over is scaled no more, and its pods go as it says"
    events = frozenset({("api", "created"), *JobBooks.events, *CleanUp.events})

    def __init__(self, jobs: JobBooks, clean_pods: str = CleanPodPolicy.RUNNING) -> None:
        super().__init__(jobs)
        self._clean_up = CleanUp(jobs, clean_pods)

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge what is done about jobs and their pods."""
        job = self._jobs.take(line)
        if not state.bound_s("lag_s"):
            yield from self._clean_up.on_line(line)
        if line.actor.startswith("pod/"):
            yield from self._pod(line, state)
        elif job is not None and line.event in ("state", "workers", "placement"):
            over = self._jobs.before.over
            if over is not None and not (line.event == "state" and job.state == State.COMPLETED):
                what = f"{_key(line)} is over ({over.event}), and then comes {line.event}"
                yield Breach((line.actor, str(line.number)), what, line, after=over)

    def _pod(self, line: Line, state: RunState) -> Iterator[Breach]:
        owner = self._jobs.owner(line.actor.removeprefix("pod/")) if line.event == "created" else None
        job = self._jobs.of(owner[0]) if owner is not None else None
        seen_s = _ROUNDING_S + (state.bound_s("lag_s") or 0.0)
        if owner is None or job is None or job.over is None or line.t - job.over.t <= seen_s:
            return
        what = f"{line.actor} is created, and {owner[0]} is over ({job.over.event})"
        yield Breach((line.actor, str(line.number)), what, line, after=job.over)


class Cooldown(_JobLaw):
    """A job that was scaled is left alone for a while, except for what an edit of its spec or its placement
    requires."""

    number = 64
    name = "a job is not scaled out within its cooldown"

    def __init__(self, jobs: JobBooks, cooldown_s: float, known: str = "") -> None:
        super().__init__(jobs)
        self._cooldown_s = cooldown_s
        self._known = known

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge a scale-out."""
        if self._jobs.take(line) is None or line.event != "workers" or line.fields["new"] <= line.fields["old"]:
            return
        last = self._jobs.before.scaled
        if last is not None and line.t - last.t < self._cooldown_s - _ROUNDING_S - (state.bound_s("lag_s") or 0.0):
            since = f"{line.t - last.t:.1f} s after it was scaled"
            what = f"{_key(line)} gets workers {since} (cooldown {self._cooldown_s:g} s)"
            yield Breach((line.actor, str(line.number)), what, line, after=last, known=self._known)


class PlacedFirst(_JobLaw):
    """The operator writes the status before it acts: a restarted operator knows every pod that it may find. An
    operation that is under way for a job at its deletion may end after another job of its name was made. Its pods
    belong to the former job, and nobody is wronged by them."""

    number = 65
    name = "a pod is made for a task that is placed, on its node"
    events = frozenset({("api", "created"), *JobBooks.events})

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge pods as they are created."""
        self._jobs.take(line)
        owner = self._jobs.owner(line.actor.removeprefix("pod/")) if line.event == "created" else None
        job = self._jobs.of(owner[0]) if owner is not None and line.actor.startswith("pod/") else None
        if owner is None or job is None or job.over is not None:
            return
        node, made_on = job.placement.get(owner[1]), line.fields.get("node", "")
        if _was_under_way(job.former, owner[1], line, state.bound_s("lag_s") or 0.0):
            return
        lag_s, last = state.bound_s("lag_s") or 0.0, job.lines.get("placement")
        shown = last or job.lines.get("bounds")  # of a new job, the watch of pods may be ahead of that of jobs
        if lag_s and shown is not None and line.t - shown.t <= lag_s:
            return
        if node is None or (made_on and made_on != node):
            where = f"its job has not placed {owner[1]}" if node is None else f"{owner[1]} is placed on {node}"
            what = f"{line.actor} is created{' on ' * bool(made_on)}{made_on}, and {where}"
            yield Breach((line.actor, str(line.number)), what, line, after=last)


def _was_under_way(former: JobRecord | None, task: str, pod: Line, lag_s: float) -> bool:
    """Return whether a pod may be one that was being made for a job of that name as that was deleted."""
    while former is not None and former.over is not None and pod.t - former.over.t <= _ROUNDING_S + lag_s:
        if former.placement.get(task) == pod.fields.get("node", former.placement.get(task)):
            return True
        former = former.former  # one that came and went within a moment had placed nothing
    return False


class _Tries(Struct):
    """Of one task: how often in a row its node turned it away, and how often its program failed."""

    refused: int = 0
    last: Line | None = None
    failed: Line | None = None
    ran: bool = False


class RetriesBounded(Invariant[RunState]):
    """A task that its node refuses is made again after 1, 2, 4 … s, not earlier and not later. After ``REFUSALS``
    refusals in a row, its job gives the room back, and is held back for twice as long each time. The job comes back
    after that time, unless something happens during it. A program that fails is tried as often as ``backoffLimit``
    allows."""

    number = 66
    name = "what fails is tried again later and later, and not for ever"
    events = frozenset(
        {("kubelet", "rejected"), ("kubelet", "container-started"), ("api", "phase"), *JobBooks.events}
        | {("component", "started"), ("component", "killed"), ("component", "crashed")}
        | JobBooks.of_nodes
        | {("api", "deleting")}
    )

    def __init__(self, jobs: JobBooks, *, gives_back: bool = True) -> None:
        """``gives_back``: a job gives its room back where a task is turned away again and again."""
        self._jobs = jobs
        self._gives_back = gives_back
        self._tries: dict[str, _Tries] = {}
        self._failures: dict[str, int] = {}
        self._last: Line | None = None
        """The last line by which there may be room for a job."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge pods that are made anew, and jobs that come back."""
        before, self._last = self._last, line
        job = self._jobs.take(line)
        if line.layer == "component":
            if not line.actor.startswith("kubelet/"):
                self._tries.clear()  # an operator that begins anew counts anew
        elif line.layer == "kubelet":
            self._on_node(line)
        elif line.actor.startswith("pod/"):
            yield from self._pod(line, state)
        elif job is not None:
            yield from self._job(line, job, before, state)

    def _on_node(self, line: Line) -> None:
        tries = self._tries.setdefault(line.fields["pod"], _Tries())
        if line.event == "container-started":
            tries.ran = True
        elif self._jobs.owner(line.fields["pod"]) is not None:
            tries.refused, tries.last = tries.refused + 1, line

    def _pod(self, line: Line, state: RunState) -> Iterator[Breach]:
        pod = line.actor.removeprefix("pod/")
        tries = self._tries.get(pod)
        if line.event == "phase" and tries is not None:
            if line.fields["phase"] == "Running":
                tries.refused, tries.last = 0, None
            elif line.fields["phase"] == "Failed" and tries.ran and line.fields["reason"] not in DISRUPTIONS:
                tries.failed = line
        elif line.event == "created":
            owner = self._jobs.owner(pod)
            job = self._jobs.of(owner[0]) if owner is not None else None
            if tries is not None and owner is not None and job is not None:
                yield from self._anew(line, tries, owner[0], job, state)

    def _anew(self, line: Line, tries: _Tries, key: str, job: JobRecord, state: RunState) -> Iterator[Breach]:
        last, failed, tries.failed, tries.ran = tries.last, tries.failed, None, False
        if failed is not None:
            self._failures[key] = self._failures.get(key, 0) + 1
            if job.retries is not None and self._failures[key] > max(1, job.retries):
                what = f"{line.actor} is tried anew, and {key} has a backoffLimit of {job.retries}"
                yield Breach((key, str(self._failures[key])), what, line, after=failed)
        if last is None:
            return
        if tries.refused >= REFUSALS and self._gives_back:
            given_back = [each for name in ("placement", "state") if (each := job.lines.get(name)) is not None]
            if all(each.number < last.number for each in given_back):
                what = f"{line.actor} is made anew after {tries.refused} refusals in a row, and its job kept its room"
                yield Breach((line.actor, "refused"), what, line, after=last)
            tries.refused, tries.last = 0, None
            return  # from then on the job waits, and not the task
        wait_s, waited_s = delay_s(tries.refused - 1), line.t - last.t
        if waited_s < wait_s - _ROUNDING_S:
            what = f"{line.actor} is made anew {waited_s:.1f} s after its node turned it away, {wait_s:g} s must pass"
            yield Breach((line.actor, str(line.number)), what, line, after=last)
        elif waited_s > wait_s + _PROMPT_S and _is_calm(job, last) and not self._hinders(last, state):
            what = f"{line.actor} is made anew {waited_s:.1f} s after its node turned it away, {wait_s:g} s are enough"
            yield Breach((line.actor, str(line.number)), what, line, after=last)

    def _hinders(self, since: Line, state: RunState) -> bool:
        """Return whether a fault may have kept the operator from it, or another clock than its own is read."""
        return bool(state.bound_s("lag_s")) or state.clock_from(self.number, since.t) > since.t

    def _job(self, line: Line, job: JobRecord, before: Line | None, state: RunState) -> Iterator[Breach]:
        if line.event == "created":
            self._failures.pop(_key(line), None)
        held = job.lines.get("stalled")
        if line.event != "state" or job.state != State.RUNNING or held is None or not held.fields["times"]:
            return
        bounds, wait_s = job.lines.get("bounds"), delay_s(held.fields["times"] - 1)
        if bounds is not None and bounds.number > held.number:
            return  # its spec is another by now
        if line.t - held.t < wait_s - _ROUNDING_S:
            what = f"{_key(line)} comes back {line.t - held.t:.1f} s after it was held back, {wait_s:g} s must pass"
            yield Breach((line.actor, str(line.number)), what, line, after=held)
        elif before is not None and before.t <= held.t + wait_s < line.t - _PROMPT_S and not self._hinders(held, state):
            what = f"{_key(line)} comes back {line.t - held.t:.1f} s after it was held back, {wait_s:g} s are enough"
            yield Breach((line.actor, str(line.number)), f"{what}, and nothing has happened since", line, after=held)


def _is_calm(job: JobRecord, since: Line) -> bool:
    """Return whether nothing was decided about the job since then."""
    decided = (job.lines.get(name, since) for name in ("placement", "state", "bounds", "stalled"))
    return job.state == State.RUNNING and all(each.number <= since.number for each in decided)


def _key(line: Line) -> str:
    return line.actor.partition("/")[2]
