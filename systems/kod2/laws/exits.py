"""The end of each pod of a TFJob is reported by an event on the job."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kod2.job_books import JobBooks

_REASON = "ExitedWithCode"
_MOMENTS_S = 0.1
"""Within which a running operator has reported it: it is woken by the pod's status, which says so before its phase."""


class ExitsAreReported(Invariant[RunState]):
    """The training operator reports a pod that succeeded while its job goes on and nobody has deleted the pod. Upstream
    does this in tfjob_controller.go (``exitedWithCodeReason``). A pod whose name has been reported before is no news.
    Nothing is owed while a component is down."""

    number = 78
    name = "the end of a TFJob's pod is reported by an event on the job"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", "event"), ("api", "phase"), ("api", "deleting"), ("api", "deleted"), *JobBooks.events}
        | {("component", event) for event in ("started", "killed", "crashed")}
    )

    def __init__(self, jobs: JobBooks) -> None:
        self._jobs = jobs
        self._owed: dict[tuple[str, str], Line] = {}
        self._reported: set[tuple[str, str]] = set()
        self._down: set[str] = set()
        self._leaving: set[str] = set()
        """Pods that somebody has deleted."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in what ends and what is reported."""
        self._jobs.take(line)
        yield from self.on_time(line.t, state)
        if line.layer == "component":
            self._owed.clear()
            self._down.discard(line.actor) if line.event == "started" else self._down.add(line.actor)
        elif line.event == "event":
            if line.fields["reason"] == _REASON:
                reported = (
                    line.fields["object"].removeprefix("tfjob/"),
                    line.fields["message"].split()[1].partition(".")[2],
                )
                self._reported.add(reported)
                self._owed.pop(reported, None)
        elif line.actor.startswith("tfjob/"):
            self._close(line.actor.removeprefix("tfjob/"))
        elif line.event == "deleting":
            self._leaving.add(line.actor)
        elif line.event == "deleted":
            self._leaving.discard(line.actor)
        elif line.event == "phase" and line.fields["phase"] == "Succeeded" and self._is_reported(line.actor):
            self._ends(line)

    def _is_reported(self, pod: str) -> bool:
        """Return whether somebody is there to say what became of it, and it did not have to go."""
        return not self._down and pod not in self._leaving

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge what nobody has reported."""
        if not self._owed or state.bound_s("lag_s"):
            return
        for (key, name), ended in [each for each in self._owed.items() if t - each[1].t > _MOMENTS_S]:
            del self._owed[key, name]
            self._reported.add((key, name))
            what = f"{ended.actor} succeeded, and no event {_REASON} of tfjob/{key} tells it"
            yield Breach((key, name), what, ended, due_s=ended.t)

    def _close(self, key: str) -> None:
        job = self._jobs.of(key)
        if job is None or job.over is not None:
            self._owed = {reported: ended for reported, ended in self._owed.items() if reported[0] != key}

    def _ends(self, line: Line) -> None:
        pod = line.actor.removeprefix("pod/")
        owner = self._jobs.owner(pod)
        job = self._jobs.of(owner[0]) if owner is not None else None
        if owner is None or job is None or job.over is not None:
            return
        reported = owner[0], pod.partition("/")[2]
        if reported not in self._reported:
            self._owed[reported] = line
