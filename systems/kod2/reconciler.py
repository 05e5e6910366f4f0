"""One TFJob made to be what its status says it should: its pods, services, conditions, and its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import (
    Object,
    is_deleting,
    is_terminal,
    key_of,
    micro_timestamp,
    name_of,
    phase_of,
    seconds,
    timestamp,
    uid_of,
)
from mews.kube.api.resources import PODS, SERVICES
from mews.kube.client.port import DeleteOptions, Preconditions
from mews.kube.component import Context, record
from mews.systems.kod2 import status as statuses
from mews.systems.kod2.cluster_cache import ClusterCache
from mews.systems.kod2.config import OperatorConfig, Scheduling
from mews.systems.kod2.errors import TaskRefusalError, TFJobError
from mews.systems.kod2.events import TFJobEventWriter
from mews.systems.kod2.install import TFJOBS
from mews.systems.kod2.metrics import Kod2Counter, Kod2Metrics
from mews.systems.kod2.model import Mode, State, is_worker
from mews.systems.kod2.outcome import JobOutcome, is_running, is_training, outcome_of, overdue
from mews.systems.kod2.pod_events import PodEventWriter
from mews.systems.kod2.podspec import listed_tasks, pod_of_task, service_of_task, tf_config
from mews.systems.kod2.status import Status
from mews.systems.kod2.tfjob import CleanPodPolicy, TFJob, clean_up_of, is_managed_elsewhere
from mews.systems.kod2.view import QueueView
from mews.systems.kod2.writer import TaskWriter

_GRACE_S = 30.0
"""How long a job that runs keeps its room though one of its pods is not let in, and any job where the server fails."""
_REJECTIONS = 5
"""So often in a row a node may turn a task's pod away before the job gives its room back."""


class Reconciler:
    """``sync`` one TFJob; ``again(key, delay_s)`` is asked to come back later, ``decide()`` to look at the queues."""

    def __init__(
        self,
        context: Context,
        config: OperatorConfig,
        cache: ClusterCache,
        view: QueueView,
        *,
        events: TFJobEventWriter,
        metrics: Kod2Metrics,
        again: Callable[[str, float], None],
        decide: Callable[[], None],
    ) -> None:
        self._context = context
        self._config = config
        self._cache = cache
        self._view = view
        self._events = events
        self._pod_events = PodEventWriter(events)
        self._metrics = metrics
        self._again = again
        self._decide = decide
        self._refusals: dict[tuple[str, str], tuple[int, float]] = {}
        self._counted: dict[tuple[str, str], str] = {}  # the pod whose refusal was counted last, by its uid
        self._refused_since_s: dict[str, float] = {}
        self._writer = TaskWriter(context, self._pod_events)
        self.lacking: set[str] = set()
        """Jobs with a task whose node has no room for it yet."""

    async def sync(self, tfjob: Object) -> None:
        """Bring one TFJob a step further. Raises ApiError or UnavailableError; asked again it goes on from there."""
        if is_managed_elsewhere(tfjob):
            return
        status = statuses.status_of(tfjob)
        if statuses.is_finished(status):
            await self._after_the_end(tfjob, status)
            return
        try:
            job = self._checked(tfjob)
        except TFJobError as error:
            await self._end(tfjob, status, JobOutcome("Failed", "TFJobFailedValidation", str(error)))
            return
        if job.suspend:
            await self._suspend(tfjob, job, status)
        elif not statuses.state_of(status):
            await self._enter(tfjob, job, status)
        elif statuses.state_of(status) == State.RUNNING or self._is_baseline:
            await self._run(tfjob, job, status)
        else:
            await self._wait(tfjob, job)

    @property
    def _is_baseline(self) -> bool:
        return self._config.scheduling == Scheduling.TF_OPERATOR

    def _checked(self, tfjob: Object) -> TFJob:
        job = self._cache.spec_of(tfjob)
        asks = [self._view.template(job, replicas) for replicas in job.roles.values()]
        if not self._is_baseline and not any(info.request("cpu") or info.request("memory") for info in asks):
            raise TFJobError(
                "spec.tfReplicaSpecs: no task requests CPU or memory, so none can be placed: set resources.requests, "
                "or the operator's default_cpu or default_memory"
            )
        return job

    def _now_s(self) -> float:
        return self._context.clock.now()

    # Into the waiting queue

    async def _enter(self, tfjob: Object, job: TFJob, status: Status) -> None:
        resumed = statuses.holds(status, statuses.SUSPENDED)
        reason, text = ("TFJobResumed", "is resumed") if resumed else ("TFJobCreated", "is created")
        now_s = self._now_s()
        message = f"TFJob {job.name} {text}."
        status = statuses.entered(status, job, weight=None, now_s=now_s)
        if resumed:
            status = statuses.resumed(status, job, now_s=now_s)
        else:
            status = statuses.with_condition(status, statuses.CREATED, reason, message, now_s=now_s)
        if self._is_baseline:
            status = {**status, "startTime": timestamp(now_s)}
        record(self._context.log, "entered", job=job.key)
        await self._cache.write_status(tfjob, status)
        await self._events.emit(tfjob, "Normal", reason, message)
        await self._pod_events.templates(tfjob, job)
        self._again(job.key, 0.0) if self._is_baseline else self._decide()

    async def _suspend(self, tfjob: Object, job: TFJob, status: Status) -> None:
        if not statuses.holds(status, statuses.SUSPENDED) or statuses.state_of(status):
            tfjob = await self._cache.write_status(tfjob, statuses.suspended(status, job, now_s=self._now_s()))
            await self._events.emit(tfjob, "Normal", "TFJobSuspended", f"TFJob {job.name} is suspended.")
            self._decide()
        for pod in self._cache.pods_of(uid_of(tfjob)).values():
            await self._writer.delete(PODS, pod)
        for service in self._cache.services_of(uid_of(tfjob)).values():
            await self._writer.delete(SERVICES, service)

    async def _wait(self, tfjob: Object, job: TFJob) -> None:
        """What a job held that was sent back goes; it comes into the line again when its delay is over."""
        for task, pod in sorted(self._cache.pods_of(uid_of(tfjob)).items()):
            await self._remove(tfjob, task, pod)
        self._wake(tfjob, job)

    def _wake(self, tfjob: Object, job: TFJob) -> None:
        """See to it that somebody looks when the job is held back no more."""
        stall = statuses.stall_of(tfjob)
        if stall is not None and stall.until_s > self._now_s():
            self._again(job.key, stall.until_s - self._now_s())
        elif stall is not None and not self._is_baseline:
            self._decide()

    # Complex: the steps of one reconciliation in their order.
    async def _run(self, tfjob: Object, job: TFJob, status: Status) -> None:  # noqa: C901
        pods = self._cache.pods_of(uid_of(tfjob))
        tasks = self._tasks(job, status)
        if await self._is_overdue(tfjob, job, status):
            return
        left_s = self._start_left_s(job, status)
        if left_s is not None and left_s <= 0:
            idle = ", ".join(task for task in tasks if task not in pods or phase_of(pods[task]) != "Running")
            text = f"TFJob {job.key} does not run {self._config.start_limit_s:g} s after it was placed; not up: {idle}"
            await self.hold_back(tfjob, "NotStarted", text)
            return
        restarts = int((status.get("elastic") or {}).get("restarts") or 0)
        await self._pod_events.ends(tfjob, {task: pod for task, pod in pods.items() if task in tasks})
        outcome = outcome_of(job, tasks, pods, restarts=restarts, baseline=self._is_baseline)
        if outcome.ended:
            await self._end(tfjob, status, outcome)
            return
        tfjob, status = await self._book(tfjob, job, status, outcome)
        for task, pod in sorted(pods.items()):
            if task not in tasks:
                await self._remove(tfjob, task, pod)
        for task, service in self._cache.services_of(uid_of(tfjob)).items() if self._is_baseline else ():
            if task not in tasks and task not in pods:
                await self._writer.delete(SERVICES, service)
        await self._restart_resized(tfjob, job, tasks, pods)
        try:
            for task in (*outcome.refused, *outcome.restarted):
                await self._make_anew(job, task, pods[task], refused=task in outcome.refused)
            await self._create(tfjob, job, tasks, pods)
            if left_s is not None:
                self._again(job.key, left_s)
        except TaskRefusalError as refusal:
            await self._refused(tfjob, job, status, refusal)

    def _tasks(self, job: TFJob, status: Status) -> dict[str, str | None]:
        if self._is_baseline:
            return dict.fromkeys(job.all_tasks())
        return {task: node for task, node in statuses.placement_of(status).items() if job.has_task(task)}

    async def _is_overdue(self, tfjob: Object, job: TFJob, status: Status) -> bool:
        if job.deadline_s is None or "startTime" not in status:
            return False
        left_s = seconds(status["startTime"]) + job.deadline_s - self._now_s()
        if not (job.deadline_s or self._cache.services_of(uid_of(tfjob))):
            return False  # even a job that has no time at all is begun
        if left_s > 0:
            self._again(job.key, left_s)
            return False
        outcome = overdue(job, self._cache.pods_of(uid_of(tfjob)), baseline=self._is_baseline)
        await self._end(tfjob, status, outcome)
        return True

    def _start_left_s(self, job: TFJob, status: Status) -> float | None:
        """Return how long a placed job may still take until it runs; None for one that does or did."""
        started = any(statuses.holds(status, kind) for kind in (statuses.RUNNING, statuses.RESTARTING))
        started |= not job.workers.count and job.lead is None  # servers alone are never Running
        if self._is_baseline or started or "startTime" not in status or math.isinf(self._config.start_limit_s):
            return None
        return seconds(status["startTime"]) + self._config.start_limit_s - self._now_s()

    async def _book(self, tfjob: Object, job: TFJob, status: Status, outcome: JobOutcome) -> tuple[Object, Status]:
        pods, tasks, now_s = self._cache.pods_of(uid_of(tfjob)), self._tasks(job, status), self._now_s()
        was_running = statuses.holds(status, statuses.RUNNING)
        status = statuses.with_replicas(
            status, job, {t: p for t, p in pods.items() if t in tasks}, baseline=self._is_baseline
        )
        if outcome.restarted:
            self._metrics.count(Kod2Counter.RESTARTED, len(outcome.restarted))
            restarts = int((status.get("elastic") or {}).get("restarts") or 0) + len(outcome.restarted)
            status = statuses.with_elastic(status, restarts=restarts)
            for role in dict.fromkeys(job.role_of(task).role for task in outcome.restarted):
                text = f"job {job.name} is restarting because {role} replica(s) failed."
                status = statuses.with_condition(status, statuses.RESTARTING, "TFJobRestarting", text, now_s=now_s)
                await self._events.emit(tfjob, "Warning", "TFJobRestarting", text)
        elif not was_running and is_running(job, tasks, pods):
            text = _runs(job)
            status = statuses.with_condition(status, statuses.RUNNING, "TFJobRunning", text, now_s=now_s)
            await self._events.emit(tfjob, "Normal", "TFJobRunning", text)
        if self._is_baseline and statuses.state_of(status) != State.RUNNING and is_training(job, tasks, pods):
            status = statuses.with_elastic(status, state=State.RUNNING.value, workers=job.workers.count)
        if self._is_baseline and statuses.state_of(status) == State.RUNNING:
            bounds = {"workers": job.workers.count, "min": job.minimum, "max": job.maximum}
            status = statuses.with_elastic(status, **bounds)
        return await self._cache.write_status(tfjob, status), status

    async def _remove(self, tfjob: Object, task: str, pod: Object) -> None:
        if not is_deleting(pod):
            record(self._context.log, "removing", pod=key_of(pod))
        await self._writer.delete(PODS, pod)
        service = self._cache.services_of(uid_of(tfjob)).get(task)
        if service is not None:
            await self._writer.delete(SERVICES, service)

    async def _restart_resized(
        self, tfjob: Object, job: TFJob, tasks: Mapping[str, str | None], pods: Mapping[str, Object]
    ) -> None:
        """Where the job wants that, its tasks begin anew when their TF_CONFIG lists others than there may be now."""
        if not (job.restart_on_resize and job.is_distributed):
            return
        stale = []
        for task, pod in sorted(pods.items()):
            if task in tasks and not is_deleting(pod) and not is_terminal(pod):
                workers = None if tasks[task] is not None else job.workers.count
                if listed_tasks(pod) != tf_config(job, task, workers=workers)["cluster"]:
                    stale.append(task)
        for task in stale:
            await self._writer.delete(PODS, pods[task])
        if stale:
            text = f"{', '.join(stale)} begin anew: TF_CONFIG lists {job.maximum} worker(s) now"
            await self._events.emit(tfjob, "Normal", "Resized", text)

    async def _make_anew(self, job: TFJob, task: str, pod: Object, *, refused: bool) -> None:
        status = pod.get("status") or {}
        # A cache that is behind still shows a pod that was deleted: it is counted once.
        if refused and self._counted.get((job.uid, task)) != uid_of(pod):
            self._counted[(job.uid, task)] = uid_of(pod)
            self._metrics.count(Kod2Counter.REFUSED)
            tries, _ = self._refusals.get((job.uid, task), (0, 0.0))
            self._refusals[(job.uid, task)] = (tries + 1, self._now_s() + statuses.delay_s(tries))
            record(self._context.log, "refused", pod=name_of(pod), reason=status.get("reason", ""))
            why = f"{name_of(pod)} was not taken by its node and is made anew: {status.get('message', '')}"
            found = self._cache.tfjob(job.key)
            if found is not None:
                await self._events.emit(found, "Warning", status.get("reason") or "PodFailed", why)
            if tries + 1 >= _REJECTIONS and self._is_careful:
                self._refusals.pop((job.uid, task))
                raise TaskRefusalError(task, status.get("reason") or "PodFailed", f"{why} (time {tries + 1} in a row)")
        await self._writer.delete(PODS, pod)

    @property
    def _is_careful(self) -> bool:
        return not self._is_baseline and self._config.mode == Mode.CORRECTED

    async def _create(
        self, tfjob: Object, job: TFJob, tasks: Mapping[str, str | None], pods: Mapping[str, Object]
    ) -> None:
        services = self._cache.services_of(uid_of(tfjob))
        self.lacking.discard(job.key)
        stall = statuses.stall_of(tfjob)
        if stall is not None and self._is_baseline and stall.until_s > self._now_s():
            self._wake(tfjob, job)
            return
        started = 0
        for task, node in tasks.items():
            if task not in services:
                await self._writer.make(task, tfjob, SERVICES, service_of_task(job, tfjob, task))
            if task in pods:
                if phase_of(pods[task]) == "Running":
                    self._refusals.pop((job.uid, task), None)
                continue
            _, due_s = self._refusals.get((job.uid, task), (0, 0.0))
            if due_s > self._now_s():
                self._again(job.key, due_s - self._now_s())
            else:
                started += await self._start(tfjob, job, task, node)
        self._refused_since_s.pop(job.uid, None)
        if started:
            await self._let_in(tfjob)
        else:
            self._wake(tfjob, job)

    async def _let_in(self, tfjob: Object) -> None:
        """All of a job's pods are there or were made: nothing holds it back any more."""
        tfjob = self._cache.tfjob(key_of(tfjob)) or tfjob
        if statuses.is_stalled(tfjob):
            await self._cache.write_status(tfjob, statuses.freed(statuses.status_of(tfjob)))

    async def _start(self, tfjob: Object, job: TFJob, task: str, node: str | None) -> bool:
        """Create a task's pod, once its node has the room: pods that are on their way out still hold theirs. Whether it
        was time for it."""
        pooled = node is not None and self._view.is_pooled(job, job.role_of(task))
        careful = node is not None and not pooled and self._config.mode == Mode.CORRECTED
        if careful and node is not None and not (self._view.takes(node) and self._view.room_for(job, task, node)):
            self.lacking.add(job.key)
            self._decide()
            return False
        scheduler = self._config.pool_scheduler if pooled else None
        await self._writer.make(task, tfjob, PODS, pod_of_task(job, tfjob, task, node=node, scheduler=scheduler))
        return True

    # What is not let in

    async def _refused(self, tfjob: Object, job: TFJob, status: Status, refusal: TaskRefusalError) -> None:
        """A pod or service of the job is not let in: what can never be ends the job; else it gives back the room that
        it does not use, and tries again later and later."""
        if refusal.for_ever:
            await self._end(tfjob, status, JobOutcome("Failed", refusal.reason, str(refusal)))
            return
        now_s = self._now_s()
        since_s = self._refused_since_s.setdefault(job.uid, now_s)
        patient = statuses.holds(status, statuses.RUNNING) or not refusal.at_once
        if not self._is_baseline and patient and now_s - since_s < _GRACE_S:
            status = statuses.with_condition(status, statuses.STALLED, refusal.reason, str(refusal), now_s=now_s)
            tfjob = await self._cache.write_status(tfjob, status)
            await self._events.emit(tfjob, "Warning", refusal.reason, str(refusal))
            self._again(job.key, statuses.delay_s(0))
            return
        self._refused_since_s.pop(job.uid, None)
        await self.hold_back(tfjob, refusal.reason, str(refusal), job=job, task=refusal.task)

    async def hold_back(
        self, tfjob: Object, reason: str, message: str, *, job: TFJob | None = None, task: str = ""
    ) -> None:
        """The job goes on with the workers that it has, where those are enough; else back to the waiting queue."""
        status, now_s = statuses.status_of(tfjob), self._now_s()
        status = statuses.stalled(status, tfjob, reason, message, now_s=now_s)
        if statuses.state_of(status) == State.RUNNING and not self._is_baseline:
            left = self._enough_without(tfjob, job, status) if job is not None and is_worker(task) else {}
            if left:
                status = statuses.with_elastic(
                    status, placement=left, workers=sum(map(is_worker, left)), scaledAt=micro_timestamp(now_s)
                )
            else:
                status = statuses.sent_back(status, f"{reason}: {message}", now_s=now_s)
        tfjob = await self._cache.write_status(tfjob, status)
        self._metrics.count(Kod2Counter.STALLED)
        await self._events.emit(tfjob, "Warning", reason, message)
        self._again(key_of(tfjob), 0.0)
        self._decide()

    def _enough_without(self, tfjob: Object, job: TFJob, status: Status) -> dict[str, str]:
        """Return the placement of the tasks that have a pod, where those may go on by themselves; else nothing."""
        pods = self._cache.pods_of(uid_of(tfjob))
        placement = statuses.placement_of(status)
        left = {task: node for task, node in placement.items() if task in pods and not is_deleting(pods[task])}
        enough = {*job.fixed_tasks(), "worker-0"} <= set(left) and sum(map(is_worker, left)) >= job.minimum
        return left if enough else {}

    # The end

    async def _end(self, tfjob: Object, status: Status, outcome: JobOutcome) -> None:
        now_s, key = self._now_s(), key_of(tfjob)
        job = self._cache.good_spec_of(tfjob)
        if job is not None and not outcome.nothing_stays:
            pods = self._cache.pods_of(uid_of(tfjob))
            tasks = self._tasks(job, status)
            status = statuses.with_replicas(
                status, job, {t: p for t, p in pods.items() if t in tasks}, baseline=self._is_baseline
            )
        if outcome.was_running and job is not None:
            status = statuses.with_condition(status, statuses.RUNNING, "TFJobRunning", _runs(job), now_s=now_s)
        since_s = statuses.waiting_since_s(status)
        status = statuses.finished(status, outcome.ended, outcome.reason, outcome.message, now_s=now_s)
        tfjob = await self._cache.write_status(tfjob, status)
        failed = outcome.ended == statuses.FAILED
        self._metrics.count(Kod2Counter.FAILED if failed else Kod2Counter.SUCCEEDED)
        if since_s is not None:
            started_s = seconds(status["startTime"]) if "startTime" in status else now_s
            self._metrics.finished(max(0.0, started_s - since_s), now_s - since_s)
        record(self._context.log, "finished", job=key, result=outcome.ended)
        for kind, text in outcome.events or (("Warning" if failed else "Normal", outcome.message),):
            await self._events.emit(tfjob, kind, outcome.reason, text)
        self._forget(uid_of(tfjob))
        if outcome.nothing_stays:
            for task, pod in sorted(self._cache.pods_of(uid_of(tfjob)).items()):
                await self._remove(tfjob, task, pod)
        await self._after_the_end(tfjob, status)
        self._decide()

    async def _after_the_end(self, tfjob: Object, status: Status) -> None:
        namespace, name = tfjob["metadata"]["namespace"], name_of(tfjob)
        clean, ttl_s = clean_up_of(tfjob, CleanPodPolicy(self._config.clean_pod_policy))
        services = self._cache.services_of(uid_of(tfjob))
        for task, pod in sorted(self._cache.pods_of(uid_of(tfjob)).items()):
            if clean is CleanPodPolicy.ALL or (clean is CleanPodPolicy.RUNNING and not is_terminal(pod)):
                await self._writer.delete(PODS, pod)
                if task in services:
                    await self._writer.delete(SERVICES, services[task])
        if ttl_s is None or "completionTime" not in status:
            return
        left_s = seconds(status["completionTime"]) + ttl_s - self._now_s()
        if left_s > 0:
            self._again(key_of(tfjob), left_s)
            return
        options = DeleteOptions(preconditions=Preconditions(uid=uid_of(tfjob)), propagation="Background")
        try:
            await self._context.kube.delete(TFJOBS, name, namespace=namespace, options=options)
        except NotFoundError:
            return
        await self._events.emit(tfjob, "Normal", "SuccessfulDeleteJob", f"Deleted job: {name}")

    def _forget(self, uid: str) -> None:
        self._pod_events.forget(uid)
        self._refusals = {key: value for key, value in self._refusals.items() if key[0] != uid}
        self._refused_since_s.pop(uid, None)


def _runs(job: TFJob) -> str:
    return f"TFJob {job.key} is running."
