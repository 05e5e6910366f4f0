"""Training jobs that are only played: who trains with whom, how far they are, and when their workers end.

The processes of one job find each other as real ones do, by TF_CONFIG; nothing here looks at the API.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from mews.kube.api.objects import Object, annotations_of, namespace_of, node_name_of
from mews.kube.clock import Pace
from mews.kube.system.program import PlayedProcess
from mews.systems.kod2.podspec import QUORUM
from mews.systems.kod2.training import TrainingShape, loss, shape_in, speed


@dataclass(slots=True)
class _Job:
    """One job's training: ``members`` are task -> (node, process)."""

    shape: TrainingShape
    servers: int
    quorum: int
    members: dict[str, tuple[str, PlayedProcess]] = field(default_factory=dict)
    done: float = 0.0
    begun: bool = False
    rate: float = 0.0
    since_s: float = 0.0
    timer: asyncio.TimerHandle | None = None


class PlayedTraining:
    """All training of one cluster. Parameters live in the servers: when one ends, the job begins anew."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._jobs: dict[str, _Job] = {}

    def start(self, pod: Object, env: Mapping[str, str], process: PlayedProcess) -> None:
        """A process of a training job starts.

        Raises ValueError where it has no TF_CONFIG or an annotation cannot be read.
        """
        try:
            config = json.loads(env.get("TF_CONFIG", ""))
            role, task = config["task"]["type"], f"{config['task']['type']}-{config['task']['index']}"
            hosts = {name: list(addresses) for name, addresses in config["cluster"].items()}
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"simulated training needs a TF_CONFIG: {error!r}") from error
        owners = sorted(str(owner.get("uid")) for owner in pod["metadata"].get("ownerReferences") or ())
        key = "/".join((namespace_of(pod), *owners, json.dumps(hosts, sort_keys=True)))
        job = self._jobs.get(key)
        if job is None:
            quorum = int(env.get(QUORUM) or len(hosts.get("worker", ())))
            job = self._jobs[key] = _Job(shape_in(annotations_of(pod)), len(hosts.get("ps", ())), quorum)
        if role not in ("ps", "worker"):
            return
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
            job.done, job.begun = 0.0, False
        if not job.members:
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
        workers = [node for task, (node, _) in job.members.items() if task.startswith("worker-")]
        job.begun = job.begun or len(workers) >= job.quorum
        near = sum(node in servers for node in workers)
        complete = there >= job.servers and job.begun
        job.rate = speed(job.shape, near=near, far=len(workers) - near, servers=there) if complete else 0.0
        if job.rate > 0:
            left_s = max(0.0, job.shape.steps - job.done) / job.rate
            job.timer = asyncio.get_running_loop().call_later(self._pace.loop_s(left_s), self._finish, key, job)

    def _finish(self, key: str, job: _Job) -> None:
        self._settle(job)
        job.rate = 0.0
        job.done = job.shape.steps
        for task, (_, process) in sorted(job.members.items()):
            if task.startswith("worker-"):
                process.emit(f"step {job.done:.0f} loss {loss(job.shape, job.done):.4f}\ntraining finished\n")
                process.end(0)
