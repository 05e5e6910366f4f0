"""What the pods of a job mean for it (contract kod2.md section 1). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mews.kube.api.objects import Object, is_deleting, phase_of, seconds
from mews.systems.kod2.model import is_server, is_worker
from mews.systems.kod2.tfjob import RestartPolicy, TFJob

Pods = Mapping[str, Object]
"""Task -> pod."""

RETRYABLE = 128
"""Exit codes from here on come from signals: with restart policy ExitCode they are tried again."""

DISRUPTIONS = frozenset({"Evicted", "NodeLost", "Preempting", "Terminated", "NodeShutdown", "Shutdown"})
"""Pod failures that say nothing of the program."""


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """``ended``: Succeeded or Failed, with reason and message; tasks whose pod is to be made anew because the node
    refused it (or threw it out), or because its program failed in a way that may be tried again."""

    ended: str = ""
    reason: str = ""
    message: str = ""
    refused: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()


def outcome_of(job: TFJob, tasks: Collection[str], pods: Pods, *, restarts: int) -> JobOutcome:
    """Judge the pods of those tasks; ``restarts`` counts the pods made anew before."""
    if (message := _success(job, tasks, pods)) is not None:
        return JobOutcome("Succeeded", "TFJobSucceeded", message)
    refused, restarted = [], []
    for task in sorted(tasks):
        pod = pods.get(task)
        if pod is None or phase_of(pod) != "Failed" or is_deleting(pod):
            continue
        if was_refused(pod):
            refused.append(task)
        elif job.role_of(task).restart is RestartPolicy.EXIT_CODE and exit_code(pod) >= RETRYABLE:
            restarted.append(task)
        else:
            text = f"TFJob {job.key} has failed because {task} failed with exit code {exit_code(pod)}."
            return JobOutcome("Failed", "TFJobFailed", text)
    total = restarts + len(restarted) + sum(_restarts_in_place(pods[task]) for task in tasks if task in pods)
    if job.backoff_limit is not None and total > job.backoff_limit:
        text = (
            f"TFJob {job.key} has failed because it restarted {total} times; its backoffLimit is {job.backoff_limit}."
        )
        return JobOutcome("Failed", "BackoffLimitExceeded", text)
    return JobOutcome(refused=tuple(refused), restarted=tuple(restarted))


def _success(job: TFJob, tasks: Collection[str], pods: Pods) -> str | None:
    done = {task for task in tasks if task in pods and phase_of(pods[task]) == "Succeeded"}
    if job.lead is not None:
        lead = f"{job.lead.task}-0"
        return f"TFJob {job.key} successfully completed: {lead} has." if lead in done else None
    workers = {task for task in tasks if is_worker(task)}
    if workers and workers <= done:
        return f"TFJob {job.key} successfully completed: all {len(workers)} workers have."
    if not job.elastic and not job.all_workers and "worker-0" in done:
        return f"TFJob {job.key} successfully completed: worker-0 has."
    return None


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


def _restarts_in_place(pod: Object) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return sum(int(container.get("restartCount") or 0) for container in statuses)


def is_training(job: TFJob, tasks: Collection[str], pods: Pods) -> bool:
    """Whether it makes progress: all servers run, and any one worker; all of them where the job is not elastic."""
    running = {task for task in tasks if task in pods and phase_of(pods[task]) == "Running"}
    if not all(task in running for task in tasks if is_server(task)):
        return False
    workers = [task for task in tasks if is_worker(task)]
    return any(task in running for task in workers) if job.elastic else all(task in running for task in workers)
