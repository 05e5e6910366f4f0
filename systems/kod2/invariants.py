"""Invariant 9: jobs that hold resources make progress, or at least one of them does."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from mews.kube.api.objects import Object, containers_of, is_deleting, is_terminal, labels_of, node_name_of, phase_of
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant, RunState
from mews.systems.kod2.podspec import JOB_NAME, QUORUM, REPLICA_TYPE, owner_uid

BOUND = "progress_s"
"""How long training jobs may hold resources while none of them trains (``System.bounds``)."""


class _Job(Struct):
    """A training job as its pods show it."""

    name: str
    quorum: int = 1
    servers: int = 0
    servers_running: int = 0
    workers_running: int = 0
    holding: int = 0
    missing: int = 0
    uids: list[str] = field(default_factory=list)

    @property
    def trains(self) -> bool:
        """Whether all its servers run, and enough workers to begin (one of them is enough later on)."""
        return self.servers_running >= self.servers and self.workers_running >= self.quorum


class JobProgress(Invariant[RunState]):
    """Jobs do not deadlock in the way that section 5.2 of the KOD2 paper describes. In this deadlock, pods of several
    jobs hold room, each job waits for its remaining pods, and none can go on. The clock runs while some job holds room,
    some pod of these jobs has no node, and no job trains."""

    number = 9
    name = "jobs that hold resources make progress"

    def __init__(self) -> None:
        self._since: float | None = None
        self._stuck: list[_Job] = []
        self._begun: set[str] = set()

    def on_objects(self, t: float, objects: ClusterObjects, state: RunState) -> Iterator[Breach]:
        """Judge the time since the last look, then take in the pods as they are; call after every change of a pod."""
        bound_s = state.bound_s(BOUND)
        if bound_s is not None and self._since is not None and t - self._since > bound_s:
            holders = [f"{job.name} ({job.holding} pods run, {job.missing} have no node)" for job in self._stuck]
            what = f"for {t - self._since:.0f} s (bound {bound_s:g} s) jobs hold resources and none can progress: "
            yield Breach(tuple(sorted(job.name for job in self._stuck)), what + ", ".join(holders), None)
        jobs = self._jobs(objects)
        stuck = [job for job in jobs if job.holding and job.missing]
        if any(job.trains for job in jobs) or not stuck:
            self._since = None
        elif self._since is None:
            self._since = t
        self._stuck = stuck

    def _jobs(self, objects: ClusterObjects) -> list[_Job]:
        jobs: dict[str, _Job] = {}
        for key in sorted(objects.pods):
            pod = objects.pods[key]
            uid = owner_uid(pod)
            if not uid or is_deleting(pod) or is_terminal(pod):
                continue
            job = jobs.setdefault(uid, _Job(labels_of(pod).get(JOB_NAME, uid)))
            _count(job, pod)
        for uid, job in jobs.items():
            if uid in self._begun:
                job.quorum = 1
            if job.trains:
                self._begun.add(uid)
        return list(jobs.values())


def _count(job: _Job, pod: Object) -> None:
    role, running = labels_of(pod).get(REPLICA_TYPE), phase_of(pod) == "Running"
    job.quorum = max(job.quorum, _quorum(pod))
    job.holding += bool(node_name_of(pod))
    job.missing += not node_name_of(pod)
    if role == "ps":
        job.servers += 1
        job.servers_running += running
    elif role == "worker":
        job.workers_running += running


def _quorum(pod: Object) -> int:
    for container in containers_of(pod):
        for entry in container.get("env") or ():
            if entry.get("name") == QUORUM and str(entry.get("value", "")).isdecimal():
                return int(entry["value"])
    return 1
