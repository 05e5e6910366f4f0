"""What the pods of a job mean for it (contract kod2.md section 1). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mews.kube.api.objects import Object, is_deleting, phase_of, seconds
from mews.systems.kod2.model import is_server, is_worker
from mews.systems.kod2.tfjob import RestartPolicy, Role, TFJob

Pods = Mapping[str, Object]
"""Task -> pod."""

RETRYABLE = 128
"""Exit codes from here on come from signals: with restart policy ExitCode they are tried again."""

DISRUPTIONS = frozenset({"Evicted", "NodeLost", "Preempting", "Terminated", "NodeShutdown", "Shutdown"})
"""Pod failures that say nothing of the program."""


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """``ended``: Succeeded or Failed, with reason and message; tasks whose pod is to be made anew because the node
    refused it (or threw it out), or because its program failed in a way that may be tried again. ``events``: type and
    text of what people are told of the end, where it is more than the message; ``nothing_stays``: all pods go, whatever
    the clean-up policy says."""

    ended: str = ""
    reason: str = ""
    message: str = ""
    refused: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    events: tuple[tuple[str, str], ...] = ()
    nothing_stays: bool = False


def outcome_of(job: TFJob, tasks: Collection[str], pods: Pods, *, restarts: int, baseline: bool = False) -> JobOutcome:
    """Judge the pods of those tasks; ``restarts`` counts the pods made anew before. ``baseline``: as Kubeflow's
    operator does, to which a pod that its node refused is one that failed."""
    if _has_succeeded(job, tasks, pods):
        return JobOutcome("Succeeded", "TFJobSucceeded", f"TFJob {job.key} successfully completed.")
    refused: list[str] = []
    restarted: list[str] = []
    failed: dict[Role, list[str]] = {}
    for task in sorted(tasks):
        pod = pods.get(task)
        if pod is None or phase_of(pod) != "Failed" or is_deleting(pod):
            continue
        replicas = job.role_of(task)
        if was_refused(pod) and not baseline:
            refused.append(task)
        elif _is_retried(replicas.restart, pod):
            restarted.append(task)
        elif not (job.dynamic and replicas.role is Role.WORKER):
            failed.setdefault(replicas.role, []).append(task)
    for role in _JUDGED:
        if role in failed:
            return _failure(job, role, failed[role])
    total = restarts + sum(_restarts_in_place(job, task, pods[task]) for task in tasks if task in pods)
    if job.backoff_limit == 0:
        total += len(restarted)
    if job.backoff_limit is not None and total >= max(1, job.backoff_limit):
        text = f"Job {job.name} has failed because it has reached the specified backoff limit"
        return over_a_limit(text)
    return JobOutcome(refused=tuple(refused), restarted=tuple(restarted))


_JUDGED = (Role.CHIEF, Role.EVALUATOR, Role.MASTER, Role.PS, Role.WORKER)
"""In this order Kubeflow's operator looks at them; the first that failed is named."""


def over_a_limit(text: str) -> JobOutcome:
    """The end of a job that took too long, or was tried too often."""
    return JobOutcome("Failed", "TFJobFailed", text, events=(("Normal", text),), nothing_stays=True)


def _failure(job: TFJob, role: Role, tasks: Collection[str]) -> JobOutcome:
    text = f"TFJob {job.key} has failed because {len(tasks)} {role} replica(s) failed."
    if job.roles[role].restart is not RestartPolicy.EXIT_CODE:
        return JobOutcome("Failed", "TFJobFailed", text, events=(("Normal", text),))
    reason = f'job "{job.name}" is failing because "{role}" replica(s) failed.'
    return JobOutcome("Failed", "TFJobFailed", reason, events=(("Warning", reason), ("Normal", text)))


def _is_retried(policy: RestartPolicy, pod: Object) -> bool:
    if policy is RestartPolicy.EXIT_CODE:
        return was_refused(pod) or exit_code(pod) >= RETRYABLE
    return policy in (RestartPolicy.ON_FAILURE, RestartPolicy.ALWAYS)


def _has_succeeded(job: TFJob, tasks: Collection[str], pods: Pods) -> bool:
    done = {task for task in tasks if task in pods and phase_of(pods[task]) == "Succeeded"}
    if job.lead is not None:
        return f"{job.lead.task}-0" in done
    workers = {task for task in tasks if is_worker(task)}
    if workers and workers <= done:
        return True
    return not job.elastic and not job.all_workers and "worker-0" in done


def is_running(job: TFJob, tasks: Collection[str], pods: Pods) -> bool:
    """Whether the condition Running holds: the chief runs, or (without one) any worker."""
    lead = job.lead.task if job.lead is not None else Role.WORKER.task
    own = (task for task in tasks if task.rpartition("-")[0] == lead)
    return any(task in pods and phase_of(pods[task]) == "Running" for task in own)


def was_refused(pod: Object) -> bool:
    """Whether the kubelet would not have it (OutOfcpu, UnexpectedAdmissionError) or threw it out: no word of the
    program's."""
    reason = (pod.get("status") or {}).get("reason") or ""
    return reason in DISRUPTIONS or not any(True for _ in _exit_codes(pod))


def exit_code(pod: Object) -> int:
    """The first exit code other than 0, else 0."""
    return next((code for code in _exit_codes(pod) if code), 0)


def ended_s(pod: Object) -> float:
    """When the last container of an ended pod ended, unix s; 0 where nothing tells it."""
    return max((seconds(ended["finishedAt"]) for ended in _terminated(pod) if ended.get("finishedAt")), default=0.0)


def _exit_codes(pod: Object) -> Iterator[int]:
    for ended in _terminated(pod):
        yield int(ended.get("exitCode", 0))


def _terminated(pod: Object) -> Iterator[Mapping[str, Any]]:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated")
        if ended is not None:
            yield ended


def _restarts_in_place(job: TFJob, task: str, pod: Object) -> int:
    """How often its kubelet restarted the containers of a pod that runs."""
    if phase_of(pod) != "Running" or job.role_of(task).restart is RestartPolicy.NEVER:
        return 0
    status = pod.get("status") or {}
    lists = (status.get(key) or () for key in ("initContainerStatuses", "containerStatuses"))
    return sum(int(container.get("restartCount") or 0) for each in lists for container in each)


def is_training(job: TFJob, tasks: Collection[str], pods: Pods) -> bool:
    """Whether it makes progress: all servers run, and any one worker; all of them where the job is not elastic."""
    running = {task for task in tasks if task in pods and phase_of(pods[task]) == "Running"}
    if not all(task in running for task in tasks if is_server(task)):
        return False
    workers = [task for task in tasks if is_worker(task)]
    return any(task in running for task in workers) if job.elastic else all(task in running for task in workers)
