"""TFJobs as the lines of a run's journal show them: what KOD2's laws look at. A reducer."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from mews.kube.system.journal import Line
from mews.systems.kod2.model import State

_JOB_EVENTS = ("bounds", "weight", "stalled", "state", "workers", "placement")


UNDER_WAY_S = 1.0
"""What was under way for a job as it was deleted is done by then."""


class JobRecord(Struct):
    """A TFJob by its lines; ``lines``: the last of each event; ``former``: the last one of its name before it."""

    lines: dict[str, Line] = field(default_factory=dict)
    state: str = ""
    workers: int = 0
    minimum: int = 0
    maximum: int = 0
    retries: int | None = None
    clean: str | None = None
    weight: float | None = None
    placement: Mapping[str, str] = field(default_factory=dict)
    scaled: Line | None = None
    over: Line | None = None
    former: JobRecord | None = None


class JobBooks:
    """All TFJobs of a run, as the lines tell of them; one for all laws, whichever of them is given a line first.

    ``before``: the job of the last line as it was before it.
    """

    events = frozenset(("api", event) for event in (*_JOB_EVENTS, "created", "deleted"))
    of_nodes = frozenset(("api", event) for event in ("condition", "taints", "unschedulable", "allocatable"))
    """What else a law must be given that looks at weights."""

    def __init__(self) -> None:
        self._jobs: dict[str, JobRecord] = {}
        self.before = JobRecord()
        self._taken = -1

    def take(self, line: Line) -> JobRecord | None:
        """Take in one line, once; the job that it is about."""
        kind, _, key = line.actor.partition("/")
        if line.number > self._taken:
            self._taken = line.number
            if kind == "tfjob":
                self._job(key, line)
            elif kind == "node":
                # Weights are shares of the largest node: they are shown anew when the operator has seen it.
                for job in self._jobs.values():
                    job.weight = None
        return self._jobs.get(key) if kind == "tfjob" else None

    def of(self, key: str) -> JobRecord | None:
        """Return a job by namespace/name."""
        return self._jobs.get(key)

    def running(self) -> dict[str, JobRecord]:
        """Return the jobs that run, by namespace/name."""
        return {key: job for key, job in self._jobs.items() if job.state == State.RUNNING and job.over is None}

    def owner(self, pod: str) -> tuple[str, str] | None:
        """Return the job and the task of which a pod (namespace/name) is by its name, None for none."""
        head, _, index = pod.rpartition("-")
        key, _, role = head.rpartition("-")
        return (key, f"{role}-{index}") if key in self._jobs and index.isdecimal() else None

    def _job(self, key: str, line: Line) -> None:
        if line.event == "created":
            former = self._jobs.get(key)
            self._jobs[key] = JobRecord(former=former)
            earlier = None if former is None else former.former
            if (
                former is not None
                and earlier is not None
                and (earlier.over is None or line.t - earlier.over.t > UNDER_WAY_S)
            ):
                former.former = None
        job = self._jobs.setdefault(key, JobRecord())
        self.before = _copy(job)
        fields = line.fields
        job.lines[line.event] = line
        match line.event:
            case "bounds":
                job.minimum, job.maximum, job.retries = fields["min"], fields["max"], fields["backoff_limit"]
                job.clean = fields.get("clean_pods")
                job.scaled = None  # what follows from an edit waits for no cooldown
            case "weight":
                job.weight = fields["weight"]
            case "state":
                job.state, job.workers = fields["state"], fields["workers"]
                job.scaled = None
                job.over = line if job.state == State.COMPLETED else None
                if job.state == State.WAITING:
                    job.placement = {}
            case "workers":
                job.workers, job.scaled = fields["new"], line
            case "placement":
                job.placement = fields["placement"]
            case "deleted":
                job.over = line


def _copy(job: JobRecord) -> JobRecord:
    return JobRecord(
        dict(job.lines), job.state, job.workers, job.minimum, job.maximum, job.retries, job.clean, job.weight,
        job.placement, job.scaled, job.over, job.former,
    )  # fmt: skip
