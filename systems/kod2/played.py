"""Training jobs that are only played: who trains with whom, how far they are, and when their workers end.

The processes of one job find each other as real ones do, by TF_CONFIG; nothing here looks at the API.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from msgspec import Struct, field

from mews.kube.api.objects import Object, annotations_of, namespace_of, node_name_of, uid_of
from mews.kube.clock import Pace
from mews.kube.system.program import PlayedProcess
from mews.systems.kod2.podspec import QUORUM
from mews.systems.kod2.training import LEARNERS, TrainingShape, loss, shape_in, speed


class _Job(Struct):
    """One job's training: ``members`` are task -> (node, process); without ``servers`` it is one worker's own."""

    shape: TrainingShape
    servers: int
    quorum: int
    checkpoints: bool
    members: dict[str, tuple[str, PlayedProcess]] = field(default_factory=dict)
    done: float = 0.0
    begun: bool = False
    rate: float = 0.0
    since_s: float = 0.0
    timer: asyncio.TimerHandle | None = None


class PlayedTraining:
    """All training of one cluster. A server that is started anew goes on where it was, from what its workers pulled
    last; once nobody of a job is left, only one with checkpoints does (the trainer's TRAIN_CHECKPOINTS)."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._jobs: dict[str, _Job] = {}

    def start(self, pod: Object, env: Mapping[str, str], process: PlayedProcess) -> None:
        """A process of a training job starts.

        Raises ValueError where its TF_CONFIG or an annotation cannot be read.
        """
        task, servers, workers = _place(env)
        alone = not servers
        owners = sorted(str(owner.get("uid")) for owner in pod["metadata"].get("ownerReferences") or ())
        named = owners or list(servers) or [uid_of(pod)]
        key = "/".join((namespace_of(pod), *named, *((task,) if alone else ())))
        job = self._jobs.get(key)
        if job is None:
            quorum = 1 if alone else int(env.get(QUORUM) or workers)
            shape = shape_in(annotations_of(pod))
            job = self._jobs[key] = _Job(shape, len(servers), quorum, bool(env.get("TRAIN_CHECKPOINTS")))
        self._settle(job)
        job.members[task] = (node_name_of(pod), process)
        process.on_end(lambda: self._left(key, task, process))
        self._go_on(key, job)

    def _left(self, key: str, task: str, process: PlayedProcess) -> None:
        job = self._jobs.get(key)
        if job is None or job.members.get(task, ("", None))[1] is not process:
            return
        self._settle(job)
        del job.members[task]
        if task.startswith("ps-"):
            job.begun = False
            if job.done < job.shape.steps and not job.checkpoints and not _learners(job):
                job.done = 0.0
        if not job.members and not (job.checkpoints and job.done < job.shape.steps):
            del self._jobs[key]
        self._go_on(key, job)

    def _settle(self, job: _Job) -> None:
        now_s = self._pace.now()
        job.done += job.rate * (now_s - job.since_s)
        job.since_s = now_s
        if job.timer is not None:
            job.timer.cancel()
            job.timer = None

    def _go_on(self, key: str, job: _Job) -> None:
        servers = {node for task, (node, _) in job.members.items() if task.startswith("ps-")}
        there = sum(task.startswith("ps-") for task in job.members)
        learners = _learners(job)
        job.begun = job.begun or sum(task.startswith("worker-") for task in learners) >= job.quorum
        near = sum(node in servers for node in learners.values())
        complete = there >= job.servers and job.begun
        if not job.servers:
            job.rate = len(learners) / job.shape.step_s
        else:
            far = len(learners) - near
            job.rate = speed(job.shape, near=near, far=far, servers=there) if complete else 0.0
        if job.rate > 0:
            left_s = max(0.0, job.shape.steps - job.done) / job.rate
            job.timer = asyncio.get_running_loop().call_later(self._pace.loop_s(left_s), self._finish, key, job)

    def _finish(self, key: str, job: _Job) -> None:
        self._settle(job)
        job.rate = 0.0
        job.done = job.shape.steps
        for task, (_, process) in sorted(job.members.items()):
            if not task.startswith("ps-"):
                process.emit(f"step {job.done:.0f} loss {loss(job.shape, job.done):.4f}\ntraining finished\n")
                process.end(0)


def _learners(job: _Job) -> dict[str, str]:
    """Return those that train: task -> node. Servers serve, evaluators look on."""
    return {task: node for task, (node, _) in job.members.items() if task.partition("-")[0] in LEARNERS}


def _place(env: Mapping[str, str]) -> tuple[str, list[str], int]:
    """Return the task of a process, its job's servers and how many workers that has; a job of one task has no
    TF_CONFIG.

    Raises ValueError where it cannot be read.
    """
    if "TF_CONFIG" not in env:
        return "worker-0", [], 1
    try:
        config = json.loads(env["TF_CONFIG"])
        role, index = str(config["task"]["type"]), int(config["task"]["index"])
        servers = [str(address) for address in config["cluster"].get("ps") or ()]
        workers = len(config["cluster"].get("worker") or ())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"simulated training cannot read its TF_CONFIG: {error!r}") from error
    if role not in (*LEARNERS, "ps", "evaluator") or (role == "evaluator" and not servers):
        raise ValueError(
            f"simulated training cannot play {role!r} with {len(servers)} servers: must be ps, {', '.join(LEARNERS)}, "
            "or evaluator where there are servers"
        )
    return f"{role}-{index}", servers, workers
