"""What becomes of the pods of a TFJob that has ended (contract kod2.md; upstream's ``DeletePodsAndServices``)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mews.kube.system.invariant import Breach
from mews.kube.system.journal import Line
from mews.systems.kod2.job_books import JobBooks
from mews.systems.kod2.tfjob import CleanPodPolicy

_DELETED = re.compile(r"^Deleted pod: (\S+)$")
_ENDS = ("Succeeded", "Failed")


class CleanUp:
    """Of a job that has succeeded, cleanPodPolicy says which pods go: ``All``, those that still run (``Running``), or
    none. Given each line about pods and jobs, it finds pods that the operator deletes and that are to stay.
    ``default``: the policy of jobs that name none."""

    events = frozenset({("api", event) for event in ("phase", "condition", "deleting", "deleted", "event")})

    def __init__(self, jobs: JobBooks, default: str) -> None:
        self._jobs, self._default = jobs, default
        self._ended: dict[str, Line] = {}
        self._deleting: dict[str, Line] = {}
        self._succeeded: set[str] = set()

    def on_line(self, line: Line) -> Iterator[Breach]:
        """Take in what becomes of pods and jobs; judge the event of a deletion."""
        kind, _, name = line.actor.partition("/")
        if kind == "pod":
            self._pod(name, line)
        elif kind == "tfjob":
            if line.event in ("created", "deleted"):
                self._succeeded.discard(name)
            elif line.event == "condition" and line.fields["type"] == "Succeeded" and line.fields["status"] == "True":
                self._succeeded.add(name)
        elif line.event == "event" and line.fields["reason"] == "SuccessfulDeletePod":
            yield from self._deleted(line)

    def _pod(self, pod: str, line: Line) -> None:
        if line.event == "created":
            self._ended.pop(pod, None)
            self._deleting.pop(pod, None)
        elif line.event == "deleting":
            self._deleting[pod] = line
        elif line.event == "phase" and line.fields["phase"] in _ENDS:
            self._ended[pod] = line

    def _deleted(self, line: Line) -> Iterator[Breach]:
        key, match = str(line.fields["object"]).removeprefix("tfjob/"), _DELETED.match(str(line.fields["message"]))
        job = self._jobs.of(key)
        if match is None or job is None or key not in self._succeeded:
            return
        pod, policy = f"{key.partition('/')[0]}/{match[1]}", job.clean or self._default
        ended, deleting = self._ended.get(pod), self._deleting.get(pod)
        if policy == CleanPodPolicy.ALL or deleting is None:
            return
        if policy == CleanPodPolicy.NONE or (ended is not None and ended.number < deleting.number):
            what = f"pod {pod} is deleted after {key} has succeeded, and its cleanPodPolicy is {policy}"
            yield Breach((pod, "cleaned", str(deleting.number)), what, deleting, after=job.over)
