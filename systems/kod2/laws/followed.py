"""The operator follows up what was decided about a TFJob and what becomes of its pods."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kod2.job_books import JobBooks
from mews.systems.kod2.model import State

_WITHIN_S = 5.0
"""The operator is woken by what it follows; a write that is refused is tried again."""
_LEADS = ("chief-", "master-")
_OVER = ("Succeeded", "Failed")


class _Debt(Struct, frozen=True):
    """What must follow from a line, of which job."""

    job: str
    since: Line
    what: str


class FollowsUp(Invariant[RunState]):
    """A job without a chief is called Running when its first worker runs (``UpdateJobStatus`` of tfjob_controller.go).
    The pod of a task that a placement no longer names is deleted (contract kod2.md section 2). Both follow in the
    moment of their cause. Nothing is owed while a component is down, or once the job is in another state."""

    number = 95
    name = "a TFJob is called Running when a worker runs, and a task that is taken from it loses its pod"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", event) for event in ("phase", "condition", "deleting", "deleted")}
        | {("component", event) for event in ("started", "killed", "crashed")}
        | JobBooks.events
    )

    def __init__(self, jobs: JobBooks) -> None:
        self._jobs = jobs
        self._owed: dict[str, _Debt] = {}
        """By pod, or by job."""
        self._live: set[str] = set()
        self._ran: set[str] = set()
        """Jobs that were called Running."""
        self._down: set[str] = set()

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in what happens to jobs and pods."""
        self._jobs.take(line)
        kind, _, key = line.actor.partition("/")
        if line.layer == "component":
            self._owed.clear()
            self._down.discard(line.actor) if line.event == "started" else self._down.add(line.actor)
        elif kind == "tfjob":
            self._job(key, line)
        elif kind == "pod":
            self._pod(key, line)
        return iter(())

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge what did not follow."""
        for name, debt in list(self._owed.items()):
            if t - debt.since.t > _WITHIN_S + 2 * (state.bound_s("lag_s") or 0.0):
                del self._owed[name]
                what = f"{debt.what} {t - debt.since.t:.1f} s after line {debt.since.number}"
                yield Breach((name, str(debt.since.number)), what, debt.since, due_s=debt.since.t)

    def _job(self, key: str, line: Line) -> None:
        match line.event:
            case "placement":
                self._placed(key, line)
            case "condition" if line.fields["type"] in ("Running", "Restarting"):
                self._ran.add(key)
                self._owed.pop(key, None)
            case "created" | "deleted":
                self._ran.discard(key)
                self._forget(key)
            case "state":
                self._forget(key)

    def _placed(self, key: str, line: Line) -> None:
        job, had = self._jobs.of(key), self._jobs.before.placement
        for task in line.fields["placement"]:
            self._owed.pop(f"{key}-{task}", None)
        if job is None or job.state != State.RUNNING or not job.placement or self._down:
            return
        for pod in (f"{key}-{task}" for task in had if task not in job.placement):
            if pod in self._live:
                self._owed[pod] = _Debt(key, line, f"pod {pod} stays, and its task is taken from {key}:")

    def _pod(self, pod: str, line: Line) -> None:
        owner = self._jobs.owner(pod)
        if owner is None:
            return
        key, task = owner
        if line.event == "created":
            self._live.add(pod)
            return
        phase = line.fields["phase"] if line.event == "phase" else ""
        if line.event in ("deleting", "deleted") or phase in _OVER:
            self._live.discard(pod)
            self._owed.pop(pod, None)
            self._owed.pop(key, None)
        elif phase == "Running" and task.startswith("worker-"):
            self._runs(key, line)

    def _runs(self, key: str, line: Line) -> None:
        job = self._jobs.of(key)
        if job is None or job.state != State.RUNNING or key in self._ran or self._down:
            return
        if not any(task.startswith(_LEADS) for task in job.placement):
            self._owed.setdefault(key, _Debt(key, line, f"{key} is not called Running, and a worker of it runs:"))

    def _forget(self, key: str) -> None:
        self._owed = {name: debt for name, debt in self._owed.items() if debt.job != key}
