"""What the pods of a job mean for it (contract kod2.md section 1). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.api.objects import Object, is_deleting, phase_of, seconds
from mews.systems.kod2.model import is_server, is_worker
from mews.systems.kod2.tfjob import CONTAINER, RestartPolicy, Role, TFJob

Pods = Mapping[str, Object]
"""Task -> pod."""

RETRYABLE = 128
"""Exit codes from here on come from signals: with restart policy ExitCode they are tried again."""

DISRUPTIONS = frozenset({"Evicted", "NodeLost", "Preempting", "Terminated", "NodeShutdown", "Shutdown"})
"""Pod failures that say nothing of the program."""


class JobOutcome(Struct, frozen=True):
    """``ended``: Succeeded or Failed, with reason and message; tasks whose pod is to be made anew because the node
    refused it (or threw it out), or because its program failed in a way that may be tried again. ``events``: type and
    text of what people are told of the end, where it is more than the message; ``nothing_stays``: all pods go, whatever
    the clean-up policy says. ``was_running``: in the look that shows its end it is running, too."""

    ended: str = ""
    reason: str = ""
    message: str = ""
    refused: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    events: tuple[tuple[str, str], ...] = ()
    nothing_stays: bool = False
    was_running: bool = False


# Complex: the order of the judgements decides the outcome.
def outcome_of(job: TFJob, tasks: Collection[str], pods: Pods, *, restarts: int, baseline: bool = False) -> JobOutcome:  # noqa: C901
    """Judge the pods of those tasks; ``restarts`` counts the pods made anew before. ``baseline``: as Kubeflow's
    operator does, to which a pod that its node refused is one that failed."""
    if baseline and _is_past_backoff(job, tasks, pods):
        return _too_often(job)
    if _has_succeeded(job, tasks, pods):
        return JobOutcome("Succeeded", "TFJobSucceeded", f"TFJob {job.key} successfully completed.")
    refused: list[str] = []
    restarted: list[str] = []
    failed: dict[Role, list[str]] = {}
    for task in sorted(tasks):
        pod, replicas = pods.get(task), job.role_of(task)
        if pod is None:
            continue
        if is_deleting(pod):
            if baseline and (_was_taken_away(job, pod) or _has_failed_for_good(replicas.restart, pod)):
                failed.setdefault(replicas.role, []).append(task)
        elif phase_of(pod) != "Failed":
            continue
        elif was_refused(pod) and not baseline:
            refused.append(task)
        elif _is_retried(replicas.restart, pod):
            restarted.append(task)
        else:
            failed.setdefault(replicas.role, []).append(task)
    if job.backoff_limit == 0 and (
        restarted or any(phase_of(pods[task]) == "Failed" for task in chain(*failed.values()))
    ):
        return _too_often(job)
    judged = [role for role in _JUDGED if role in failed and not _may_lack(job, role)]
    if judged:
        found = _failure(job, {role: [pods[task] for task in failed[role]] for role in judged})
        return replace(found, was_running=baseline and _runs_first(job, tasks, pods, judged[0]))
    total = restarts + _all_in_place(job, tasks, pods)
    if job.backoff_limit is not None and total >= max(1, job.backoff_limit):
        return _too_often(job)
    return JobOutcome(refused=tuple(refused), restarted=tuple(restarted))


def overdue(job: TFJob, pods: Pods, *, baseline: bool = False) -> JobOutcome:
    """Return the end of a job that took too long. ``baseline``: a back-off limit that is reached, too, is what is
    told."""
    if baseline and _is_past_backoff(job, job.all_tasks(), pods):
        return _too_often(job)
    return _over_a_limit(f"Job {job.name} has failed because it was active longer than specified deadline")


def _is_past_backoff(job: TFJob, tasks: Collection[str], pods: Pods) -> bool:
    """Return what Kubeflow's operator looks at before anything else of a job: restarts in place, and without any
    allowed the first pod that failed."""
    if job.backoff_limit is None:
        return False
    failed = any(task in pods and phase_of(pods[task]) == "Failed" for task in tasks)
    return _all_in_place(job, tasks, pods) >= max(1, job.backoff_limit) or (job.backoff_limit == 0 and failed)


def _was_taken_away(job: TFJob, pod: Object) -> bool:
    """Return whether somebody deletes a pod that runs, which to Kubeflow's operator is one that failed."""
    return phase_of(pod) == "Running" and not job.restart_on_resize


def _has_failed_for_good(policy: RestartPolicy, pod: Object) -> bool:
    """Return whether a pod has failed that is not tried again: to Kubeflow's operator also while it is on its way
    out."""
    return phase_of(pod) == "Failed" and not _is_retried(policy, pod)


def _may_lack(job: TFJob, role: Role) -> bool:
    """Return whether the job goes on without those of a role that failed for good."""
    return job.dynamic and role is Role.WORKER and job.roles[role].restart is not RestartPolicy.EXIT_CODE


_JUDGED = (Role.CHIEF, Role.EVALUATOR, Role.MASTER, Role.PS, Role.WORKER)
"""In this order Kubeflow's operator looks at them; the first that failed is named."""


def _over_a_limit(text: str) -> JobOutcome:
    """Return the end of a job that took too long, or was tried too often."""
    return JobOutcome("Failed", "TFJobFailed", text, events=(("Normal", text),), nothing_stays=True)


def _too_often(job: TFJob) -> JobOutcome:
    """Return the end of a job that has reached its back-off limit."""
    return _over_a_limit(f"Job {job.name} has failed because it has reached the specified backoff limit")


def _failure(job: TFJob, failed: Mapping[Role, Collection[Object]]) -> JobOutcome:
    """Return the end for these roles, in the order in which they are judged. Each is told of; the message is of the
    first."""
    by_code = [
        ("Warning", f'job "{job.name}" is failing because "{role}" replica(s) failed.')
        for role, pods in failed.items()
        if job.roles[role].restart is RestartPolicy.EXIT_CODE and any(phase_of(pod) == "Failed" for pod in pods)
    ]
    counted = [
        ("Normal", f"TFJob {job.key} has failed because {len(pods)} {role} replica(s) failed.")
        for role, pods in failed.items()
        if not (job.dynamic and role is Role.WORKER)
    ]
    events = (*by_code, *counted)
    return JobOutcome("Failed", "TFJobFailed", events[0][1], events=events)


def _is_retried(policy: RestartPolicy, pod: Object) -> bool:
    if policy is RestartPolicy.EXIT_CODE:
        code = exit_code(pod)
        return code is None or code >= RETRYABLE
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
    """Return whether the condition Running holds: the chief runs, or (without one) any worker."""
    lead = job.lead.task if job.lead is not None else Role.WORKER.task
    own = (task for task in tasks if task.rpartition("-")[0] == lead)
    return any(task in pods and phase_of(pods[task]) == "Running" for task in own)


def was_refused(pod: Object) -> bool:
    """Return whether the kubelet would not have it (OutOfcpu, UnexpectedAdmissionError) or threw it out: no word of the
    program's."""
    reason = (pod.get("status") or {}).get("reason") or ""
    return reason in DISRUPTIONS or not any(True for _ in _terminated(pod))


def exit_code(pod: Object) -> int | None:
    """Return that of the container that trains, whatever became of others beside it; None where it never ended."""
    codes = (ended.get("exitCode", 0) for name, ended in _terminated(pod) if name == CONTAINER)
    return next((int(code) for code in codes), None)


def ended_s(pod: Object) -> float:
    """Return when the last container of an ended pod ended, unix s; 0 where nothing tells it."""
    return max((seconds(ended["finishedAt"]) for _, ended in _terminated(pod) if ended.get("finishedAt")), default=0.0)


def _terminated(pod: Object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the containers that have ended, by name."""
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated")
        if ended is not None:
            yield str(container.get("name")), ended


def _all_in_place(job: TFJob, tasks: Collection[str], pods: Pods) -> int:
    return sum(_restarts_in_place(job, task, pods[task]) for task in tasks if task in pods)


def _restarts_in_place(job: TFJob, task: str, pod: Object) -> int:
    """Return how often its kubelet restarted the containers of a pod that runs."""
    if phase_of(pod) != "Running" or job.role_of(task).restart is RestartPolicy.NEVER:
        return 0
    status = pod.get("status") or {}
    lists = (status.get(key) or () for key in ("initContainerStatuses", "containerStatuses"))
    return sum(int(container.get("restartCount") or 0) for each in lists for container in each)


def _runs_first(job: TFJob, tasks: Collection[str], pods: Pods, failed: Role) -> bool:
    """Return whether Kubeflow's operator finds a job running before it comes to the role that failed: roles are judged
    one after the other, and one whose exit code is final has failed before all of them."""
    lead = job.lead if job.lead is not None else Role.WORKER
    final = any(
        replicas.restart is RestartPolicy.EXIT_CODE
        and phase_of(pods[task]) == "Failed"
        and not _is_retried(replicas.restart, pods[task])
        for task in tasks
        if task in pods and (replicas := job.role_of(task))
    )
    staying = {task: pod for task, pod in pods.items() if not is_deleting(pod)}
    return not final and _JUDGED.index(lead) <= _JUDGED.index(failed) and is_running(job, tasks, staying)


def is_training(job: TFJob, tasks: Collection[str], pods: Pods) -> bool:
    """Return whether it makes progress: all servers run, and any one worker; all of them where the job is not
    elastic."""
    running = {task for task in tasks if task in pods and phase_of(pods[task]) == "Running"}
    if not all(task in running for task in tasks if is_server(task)):
        return False
    workers = [task for task in tasks if is_worker(task)]
    return any(task in running for task in workers) if job.elastic else all(task in running for task in workers)
