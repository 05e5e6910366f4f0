"""A job's placement has as many workers as its status says, and nobody is moved while it runs."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kod2.job_books import JobBooks
from mews.systems.kod2.model import State, is_worker

SEEN_S = 0.1
"""Within which the operator has seen that a pod was bound."""


class PlacementsAgree(Invariant[RunState]):
    """The number of workers of a running job and its placement are written together. A task whose pod exists stays on
    the node of that pod until the pod ends or is deleted."""

    number = 67
    name = "a placement has the workers that the status counts, and moves no task that runs"
    ours_alone = True
    events = frozenset({("api", event) for event in ("bound", "phase", "deleting")} | JobBooks.events)

    def __init__(self, jobs: JobBooks) -> None:
        self._jobs = jobs
        self._pods: dict[str, Line] = {}
        """Live pods (namespace/name), and where each was bound."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge a placement."""
        job = self._jobs.take(line)
        if line.actor.startswith("pod/"):
            self._pod(line)
        elif job is not None and line.event == "placement" and job.state == State.RUNNING:
            workers = sum(map(is_worker, job.placement))
            if workers != job.workers:
                counted = job.lines.get("workers") or job.lines.get("state")
                what = f"{line.actor} is placed with {workers} worker(s), and its status counts {job.workers}"
                yield Breach((line.actor, str(line.number)), what, line, after=counted)
            yield from self._moved(line, state)

    def _pod(self, line: Line) -> None:
        pod = line.actor.removeprefix("pod/")
        if line.event == "bound":
            self._pods[pod] = line
        elif line.event != "phase" or line.fields["phase"] in ("Succeeded", "Failed"):
            self._pods.pop(pod, None)

    def _moved(self, line: Line, state: RunState) -> Iterator[Breach]:
        if state.bound_s("lag_s"):
            return  # pods and jobs come from watches of their own
        key, before = line.actor.removeprefix("tfjob/"), self._jobs.before.placement
        for task, node in line.fields["placement"].items():
            pod = self._pods.get(f"{key}-{task}") if before.get(task, node) != node else None
            # One that was bound a moment ago is not known to the operator yet.
            if pod is not None and pod.fields["node"] != node and line.t - pod.t > SEEN_S:
                what = f"{task} of {key} is moved to {node}, and its pod is on {pod.fields['node']}"
                yield Breach((line.actor, task, str(line.number)), what, line, after=pod)
