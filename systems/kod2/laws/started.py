"""What is placed is started: each task of a running TFJob has its pod once its node has the room."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kod2.job_books import JobBooks, JobRecord
from mews.systems.kod2.model import State

_WITHIN_S = 1.0
"""The operator is woken by the pod that goes, and by what it writes itself."""
_OVER = ("Succeeded", "Failed")


class _Pod(Struct):
    """A pod that is not over, and where it is bound."""

    node: str = ""
    bound: int = -1
    leaves: bool = False


class PlacedIsStarted(Invariant[RunState]):
    """The pod of a placed task is made as soon as its node has the room (contract kod2.md section 2). The room was
    counted when the task was placed. Only terminating pods still hold it, and pods that others have bound there since.
    Nothing is owed by a suspended job, for a refused task, on a closed node, or while a component is down."""

    number = 1030
    name = "a placed task has its pod once its node has the room"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", event) for event in ("bound", "phase", "deleting", "event")}
        | {("kubelet", "rejected")}
        | {("component", event) for event in ("started", "killed", "crashed")}
        | JobBooks.events
        | JobBooks.of_nodes
    )

    def __init__(self, jobs: JobBooks) -> None:
        self._jobs = jobs
        self._running: set[str] = set()
        self._pods: dict[str, _Pod] = {}
        """All that are not over, by name; and those that are over and still there, without a node."""
        self._closed: set[str] = set()
        self._settled: set[str] = set()
        """Pods that their nodes refused, or that have succeeded: nothing is owed in their place."""
        self._hindered: set[str] = set()
        self._down: set[str] = set()
        self._owed: dict[str, Line] = {}
        self._changed: Line | None = None

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in what happens to jobs, pods and nodes; a pod that comes late is late."""
        yield from self.on_time(line.t, state)
        self._jobs.take(line)
        kind, _, name = line.actor.partition("/")
        if line.layer == "component":
            self._owed.clear()
            self._down.discard(line.actor) if line.event == "started" else self._down.add(line.actor)
        elif line.layer == "kubelet":
            self._settled.add(line.fields["pod"])
        elif line.event == "event":
            if line.fields["reason"].startswith("FailedCreate"):
                self._hindered.add(str(line.fields["object"]).removeprefix("tfjob/"))
            return
        elif kind == "pod":
            self._pod(name, line)
        elif kind == "node":
            self._node(name, line)
        elif kind == "tfjob":
            self._job(name)
        self._changed = line

    def _pod(self, name: str, line: Line) -> None:
        match line.event:
            case "created":
                self._pods[name] = _Pod()
                self._owed.pop(name, None)
                if (owner := self._jobs.owner(name)) is not None:
                    self._hindered.discard(owner[0])
            case "bound" if name in self._pods:
                self._pods[name].node, self._pods[name].bound = line.fields["node"], line.number
            case "deleting" if name in self._pods:
                self._pods[name].leaves = True
            case "phase" if name in self._pods and line.fields["phase"] in _OVER:
                self._pods[name].node = ""
                if line.fields["phase"] == "Succeeded":
                    self._settled.add(name)
            case "phase" if line.fields["phase"] == "Running":
                self._settled.discard(name)
            case "deleted":
                self._pods.pop(name, None)

    def _node(self, node: str, line: Line) -> None:
        """Closed for good is enough: a node that was closed once is not judged for a while."""
        if line.event in ("taints", "unschedulable") or (line.event == "condition" and line.fields["type"] == "Ready"):
            fields = line.fields
            is_open = not (
                fields.get("taints") or fields.get("unschedulable") or fields.get("status", "True") != "True"
            )
            key = f"{node} {line.event}"
            self._closed.discard(key) if is_open else self._closed.add(key)

    def _job(self, key: str) -> None:
        job = self._jobs.of(key)
        if job is not None and job.state == State.RUNNING and job.over is None:
            self._running.add(key)
        else:
            self._running.discard(key)

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge tasks without a pod, once the moment is over."""
        changed = self._changed
        if changed is not None and t > changed.t:
            self._changed = None
            if not self._down and not state.bound_s("lag_s"):
                self._look(changed)
        for pod, since in list(self._owed.items()) if self._owed else ():
            if t - since.t > _WITHIN_S:
                del self._owed[pod]
                owner = self._jobs.owner(pod)
                if owner is not None and state.clock_from(self.number, since.t) <= since.t:
                    job = self._jobs.of(owner[0])
                    placed = job.lines.get("placement") if job is not None else None
                    what = f"{owner[1]} of {owner[0]} is placed and its node has the room, but it has no pod"
                    yield Breach((pod, str(since.number)), what, since, after=placed, due_s=since.t)

    def _look(self, changed: Line) -> None:
        owed = {}
        for key in self._running:
            job = self._jobs.of(key)
            if job is None or key in self._hindered or _is_held(job):
                continue
            for task, node in job.placement.items():
                pod = f"{key}-{task}"
                if pod not in self._pods and pod not in self._settled and self._has_room(node, job):
                    owed[pod] = self._owed.get(pod, changed)
        self._owed = owed

    def _has_room(self, node: str, job: JobRecord) -> bool:
        """Return whether all that is there stays, and was there when the job was placed."""
        if any(each.partition(" ")[0] == node for each in self._closed):
            return False
        placed = job.lines["placement"].number
        for name, pod in self._pods.items():
            if pod.node != node:
                continue
            owner = self._jobs.owner(name)
            other = self._jobs.of(owner[0]) if owner is not None else None
            if owner is not None and (
                other is None or owner[0] not in self._running or owner[1] not in other.placement
            ):
                return False
            if pod.leaves or (owner is None and pod.bound > placed):
                return False
        return True


def _is_held(job: JobRecord) -> bool:
    stalled = job.lines.get("stalled")
    return stalled is not None and bool(stalled.fields["times"])


_NOT_TAKEN = re.compile(r"^(\S+) was not taken by its node and is made anew")


class RefusalsAreReported(Invariant[RunState]):
    """A pod that its node refuses is replaced. An event on the TFJob reports this before the pod goes (contract kod2.md
    section 1). A repeated event is no news."""

    number = 1031
    name = "an event reports a task that its node refused, before its pod goes"
    of_time = True
    ours_alone = True
    events = frozenset(
        {("api", "event"), ("api", "deleting"), ("kubelet", "rejected"), *JobBooks.events}
        | {("component", event) for event in ("started", "killed", "crashed")}
    )

    def __init__(self, jobs: JobBooks) -> None:
        self._jobs = jobs
        self._refused: dict[str, Line] = {}
        self._reported: set[str] = set()

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge a refused pod that goes."""
        self._jobs.take(line)
        name = line.actor.partition("/")[2]
        if line.layer == "component":
            self._refused.clear()
        elif line.layer == "kubelet":
            self._refused[line.fields["pod"]] = line
        elif line.event == "event":
            if (match := _NOT_TAKEN.match(line.fields["message"])) is not None:
                namespace = str(line.fields["object"]).removeprefix("tfjob/").partition("/")[0]
                self._reported.add(f"{namespace}/{match[1]}")
        elif line.actor.startswith("pod/") and line.event in ("deleting", "deleted"):
            refused, owner = self._refused.pop(name, None), self._jobs.owner(name)
            job = self._jobs.of(owner[0]) if owner is not None else None
            is_kept = job is not None and job.state == State.RUNNING and job.over is None
            if refused is None or owner is None or job is None or not is_kept or owner[1] not in job.placement:
                return
            if name not in self._reported and not state.bound_s("lag_s"):
                what = f"{name} was turned away by its node and goes, and no event on tfjob/{owner[0]} tells it"
                yield Breach((name, str(line.number)), what, line, after=refused)


class PlacedIsKept(Invariant[RunState]):
    """The operator deletes the pods of tasks that a running job no longer has. It replaces pods that have failed or
    were refused. All other pods of placed tasks stay, unless a new size of the job restarts them (an event Resized
    reports it)."""

    number = 1035
    name = "the operator deletes no pod of a placed task that has not failed"
    ours_alone = True
    events = frozenset({("api", "event"), ("api", "phase"), ("kubelet", "rejected"), *JobBooks.events})

    def __init__(self, jobs: JobBooks) -> None:
        self._jobs = jobs
        self._failed: set[str] = set()
        self._doubts: dict[str, tuple[Line, str, Line | None]] = {}
        """Pod -> the event of its deletion, its job, and where that was placed."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in what becomes of pods and jobs."""
        yield from self.on_time(line.t, state)
        self._jobs.take(line)
        name = line.actor.partition("/")[2]
        if line.layer == "kubelet":
            self._failed.add(line.fields["pod"])
        elif line.event == "event":
            self._event(line, str(line.fields["object"]).removeprefix("tfjob/"))
        elif line.actor.startswith("pod/"):
            if line.event == "phase" and line.fields["phase"] in _OVER:
                self._failed.add(name)
            elif line.event == "created":
                self._failed.discard(name)
        else:  # what was decided in that moment may have been seen late
            self._doubts = {pod: doubt for pod, doubt in self._doubts.items() if doubt[1] != name}

    def _event(self, line: Line, key: str) -> None:
        if line.fields["reason"] == "Resized":
            self._doubts = {pod: doubt for pod, doubt in self._doubts.items() if doubt[1] != key}
        if line.fields["reason"] != "SuccessfulDeletePod":
            return
        pod = f"{key.partition('/')[0]}/{str(line.fields['message']).rpartition(' ')[2]}"
        owner, job = self._jobs.owner(pod), self._jobs.of(key)
        if owner is None or owner[0] != key or job is None or job.state != State.RUNNING or job.over is not None:
            return
        if owner[1] in job.placement and pod not in self._failed and not _is_held(job):
            self._doubts[pod] = line, key, job.lines.get("placement")

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge deletions once their moment is over."""
        for pod, (line, key, placed) in list(self._doubts.items()) if self._doubts else ():
            if t > line.t:
                del self._doubts[pod]
                if not state.bound_s("lag_s"):
                    what = f"pod {pod} is deleted, and {key} has its task and it has not failed"
                    yield Breach((pod, str(line.number)), what, line, after=placed)
