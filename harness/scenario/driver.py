"""The workload driver: makes a pod per job when it arrives, and books when each started and ended."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from typing import Any

from mews.harness.ports.cluster import Cluster
from mews.harness.scenario.metrics import JobTimes
from mews.harness.scenario.model import PodTemplate, Workload
from mews.harness.scenario.step_context import Finding
from mews.harness.scenario.trace import TraceJob
from mews.kube.api.objects import Object, condition_of, is_terminal, name_of, node_name_of, phase_of, seconds
from mews.kube.api.resources import PODS
from mews.kube.client.informer import Informer

WORKLOAD_LABEL = "mews.dev/workload"


def pod_of(job: TraceJob, template: PodTemplate, workload: str) -> Object:
    """Return the pod of a job: one container with its CPUs and devices, never restarted."""
    fill = {"job": job.job, "type": job.type, "duration": f"{job.duration_s:g}"}
    requests = {"cpu": job.cpus, **({"memory": job.memory} if job.memory else {})}
    limits = {str(template.resource): str(job.gpus)} if job.gpus else {}
    container: dict[str, Any] = {
        "name": "main",
        "image": template.image,
        "resources": {"requests": {**requests, **limits}, "limits": limits},
    }
    if template.command:
        container["command"] = [_filled(word, fill) for word in template.command]
    spec: dict[str, Any] = {
        "schedulerName": template.scheduler_name,
        "restartPolicy": "Never",
        "containers": [container],
    }
    if template.priority_class_name:
        spec["priorityClassName"] = template.priority_class_name
    metadata = {
        "name": job.pod,
        "namespace": template.namespace,
        "labels": {**template.labels, WORKLOAD_LABEL: workload},
        "annotations": {name: _filled(value, fill) for name, value in template.annotations.items()},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _ends(pod: Object) -> Iterator[str]:
    """Yield when its containers ended: the end of a job, a moment before that of its pod."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (status.get("state") or {}).get("terminated") or {}
        if ended.get("finishedAt"):
            yield str(ended["finishedAt"])


class Driver:
    """One workload on one cluster. ``start()``, then ``finding()`` until it holds, then ``times()``; ``close()``.

    ``template``: the pods', with the scheduler and the resource that they name.
    """

    def __init__(
        self, cluster: Cluster, workload: Workload, jobs: Sequence[TraceJob], name: str, *, template: PodTemplate
    ) -> None:
        self._cluster = cluster
        self._gate = workload.gate
        self._template = template
        self._name = name
        self._jobs = jobs
        self._times = {job.pod: JobTimes(job) for job in jobs}
        self._pods = Informer(
            cluster.kube,
            PODS,
            namespace=template.namespace,
            label_selector=f"{WORKLOAD_LABEL}={name}",
        )
        self._pods.on_change(self._saw)
        self._changed = asyncio.Event()
        self._finding: Finding | None = None
        self._is_pending: bool | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._start_unix_s = 0.0
        self._start_loop_s = 0.0

    @property
    def started(self) -> bool:
        """Whether ``start()`` was called."""
        return bool(self._tasks)

    async def start(self) -> None:
        """Begin at the next whole second: startTime has no finer grain."""
        watching = asyncio.create_task(self._pods.run())
        self._tasks.append(watching)
        await self._pods.synced()
        now = self._cluster.clock.now()
        await asyncio.sleep(math.ceil(now) - now)
        self._start_unix_s = round(self._cluster.clock.now())
        self._start_loop_s = asyncio.get_running_loop().time()
        self._tasks.append(asyncio.create_task(self._drive()))

    def times(self) -> list[JobTimes]:
        """Return what is known of each job, in order of arrival; emulated seconds from the start of the workload."""
        return [self._times[job.pod] for job in self._jobs]

    async def finding(self) -> Finding:
        """Return whether all jobs have ended. Raises what made the driver fail."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()
        if self._finding is None:
            self._finding = self._look()
        return self._finding

    def _look(self) -> Finding:
        awaited = f"all {len(self._jobs)} jobs of the workload to end"
        open_jobs = [times for times in self.times() if times.ended_s is None]
        if not open_jobs:
            return Finding(True, awaited)
        uncreated = [times.job.job for times in open_jobs if times.created_s is None]
        pending = [pod for pod in self._pods.items() if phase_of(pod) == "Pending"]
        seen = f"{len(self._jobs) - len(open_jobs)} ended, {len(uncreated)} not yet created"
        if pending:
            message = (condition_of(pending[0], "PodScheduled") or {}).get("message") or "no message"
            seen += f", {len(pending)} Pending, first {name_of(pending[0])}: {message}"
        about = tuple(f"pod/{self._template.namespace}/{name_of(pod)}" for pod in pending[:3])
        return Finding(False, awaited, seen, about)

    async def close(self) -> None:
        """Stop driving and watching."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _elapsed_s(self) -> float:
        return (asyncio.get_running_loop().time() - self._start_loop_s) * self._cluster.pace.speed

    async def _drive(self) -> None:
        for job in self._jobs:
            await asyncio.sleep(max(0.0, self._cluster.pace.loop_s(job.arrival_s - self._elapsed_s())))
            await self._pass_gate()
            # What the watch has not shown yet counts as Pending: it is booked before it is created.
            self._times[job.pod].created_s = self._elapsed_s()
            self._forget()
            pod = pod_of(job, self._template, self._name)
            await self._cluster.kube.create(PODS, pod, namespace=self._template.namespace)

    async def _pass_gate(self) -> None:
        """Look until none is Pending: at every change, or as often as the workload says."""
        while self._gate.pending:
            if self._is_pending is None:
                self._is_pending = self._is_any_pending()
            if not self._is_pending:
                return
            if self._gate.every is not None:
                await asyncio.sleep(self._cluster.pace.loop_s(self._gate.every))
                continue
            self._changed.clear()
            await self._changed.wait()

    def _is_any_pending(self) -> bool:
        for name, times in self._times.items():
            if times.created_s is None:
                continue
            pod = self._pods.get(name, self._template.namespace)
            if pod is None and times.ended_s is None:
                return True
            if pod is not None and phase_of(pod) == "Pending":
                return True
        return False

    def _saw(self, old: Object | None, new: Object | None) -> None:
        pod = new or old or {}
        times = self._times.get(name_of(pod))
        if times is not None:
            self._book(times, pod, gone=new is None)
        self._forget()
        self._changed.set()

    def _forget(self) -> None:
        """What was found is looked for again: who asks each second gets the same answer as long as nothing changes."""
        self._finding = self._is_pending = None

    def _book(self, times: JobTimes, pod: Object, *, gone: bool) -> None:
        times.node = node_name_of(pod) or times.node
        times.phase = phase_of(pod)
        stamp = (pod.get("status") or {}).get("startTime")
        if stamp and times.started_s is None:
            times.began_s = self._elapsed_s()
            times.started_s = self._stamped_s(stamp)
        if times.ended_s is None and (is_terminal(pod) or gone):
            ends = list(_ends(pod))
            times.ended_s = self._stamped_s(max(ends)) if ends else self._elapsed_s()

    def _stamped_s(self, stamp: str) -> float:
        # API times are whole seconds of real time: under another pace the watch knows better.
        exact = self._cluster.pace.speed == 1.0
        return seconds(stamp) - self._start_unix_s if exact else self._elapsed_s()
