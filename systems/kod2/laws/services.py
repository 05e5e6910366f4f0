"""A task that is taken from a TFJob takes its Service with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kod2.job_books import JobBooks

_NAMED = re.compile(r"^\w+ (?:pod|service): (\S+)$")
_MOMENTS_S = 1.0
"""Pod and Service are deleted one after the other."""


class ServicesGoWithTasks(Invariant[RunState]):
    """The operator has one Service for each task. When it deletes the pod of a task that its job no longer has, it also
    deletes that Service. Upstream does this in ``DeletePodsAndServices`` of common/pkg/controller. No
    Service is expected to go after its job has finished, or while a component is down."""

    number = 59
    name = "a task that is taken from a TFJob takes its Service with it"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", "event"), *JobBooks.events} | {("component", event) for event in ("started", "killed", "crashed")}
    )

    def __init__(self, jobs: JobBooks) -> None:
        self._jobs = jobs
        self._services: dict[str, Line] = {}
        self._owed: dict[str, Line] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in what the operator makes and deletes."""
        self._jobs.take(line)
        yield from self.on_time(line.t, state)
        if line.layer == "component":
            self._owed.clear()
        elif line.event == "event" and line.fields["object"].startswith("tfjob/"):
            match = _NAMED.match(line.fields["message"])
            if match is not None:
                self._note_event(line, line.fields["object"].removeprefix("tfjob/"), match[1])
        elif line.actor.startswith("tfjob/"):
            self._follow(line, line.actor.removeprefix("tfjob/"))

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge what was owed for too long."""
        for name in [name for name, gone in self._owed.items() if t - gone.t > _MOMENTS_S]:
            gone = self._owed.pop(name)
            what = f"pod {name} is deleted and its job has that task no longer, but its Service stays"
            yield Breach((name, str(gone.number)), what, gone, after=self._services.get(name), due_s=gone.t)

    def _follow(self, line: Line, key: str) -> None:
        """Of a job that is over nothing is owed; one that is deleted has no Services."""
        job = self._jobs.of(key)
        if job is None or job.over is not None:
            self._owed = {name: gone for name, gone in self._owed.items() if not self._is_of(name, key)}
        if line.event == "deleted":
            self._services = {name: made for name, made in self._services.items() if not self._is_of(name, key)}

    def _is_of(self, name: str, key: str) -> bool:
        owner = self._jobs.owner(name)
        return owner is not None and owner[0] == key

    def _note_event(self, line: Line, key: str, name: str) -> None:
        named = f"{key.partition('/')[0]}/{name}"
        match line.fields["reason"]:
            case "SuccessfulCreateService":
                self._services[named] = line
            case "SuccessfulDeleteService":
                self._services.pop(named, None)
                self._owed.pop(named, None)
            case "SuccessfulCreatePod":
                self._owed.pop(named, None)
            case "SuccessfulDeletePod" if named in self._services:
                owner, job = self._jobs.owner(named), self._jobs.of(key)
                if owner is None or owner[0] != key or job is None or job.over is not None:
                    return
                if job.placement and owner[1] not in job.placement:
                    self._owed[named] = line
