"""One pass over one Job."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from mews.kube.api.errors import ApiError
from mews.kube.api.objects import (
    Object,
    clone,
    is_deleting,
    is_terminal,
    key_of,
    name_of,
    phase_of,
    timestamp,
    uid_of,
)
from mews.kube.api.resources import JOBS
from mews.kube.emulated.controllers.conditions import Condition, find, nonzero
from mews.kube.emulated.controllers.job import policy
from mews.kube.emulated.controllers.job.failures import Backoff, failure_rule
from mews.kube.emulated.controllers.job.indexes import (
    creatable,
    indexed,
    indexes_of,
    pending_indexes,
    superfluous,
    write_indexes,
)
from mews.kube.emulated.controllers.job.reading import (
    completions_of,
    counts,
    has_failed,
    index_of,
    is_indexed,
    is_suspended,
    is_tracked,
    limit_per_index,
    only_failed_are_replaced,
)
from mews.kube.emulated.controllers.owners import controller_reference
from mews.kube.emulated.controllers.pod_control import PodControl, is_terminating_namespace, slow_start
from mews.kube.emulated.controllers.pods import first_to_go, is_active, is_ready, pod_of

_SHOWN_AT_ZERO = ("ready", "terminating", "uncountedTerminatedPods", "failedIndexes")


class JobActions(Protocol):
    """What a pass asks of the controller."""

    control: PodControl

    def now(self) -> float:
        """Return the time now, in unix seconds."""
        ...

    def look_again(self, job: Object, delay_s: float) -> None:
        """Look at it again after a while."""
        ...

    def emit(self, job: Object, kind: str, reason: str, text: str) -> None:
        """An event about a Job."""
        ...

    async def untrack(self, pod: Object, key: str = "") -> None:
        """Take the job's finalizer off a pod."""
        ...

    async def write(self, job: Object) -> None:
        """Write the job's status (PUT)."""
        ...


class JobPass:
    """``job`` is the pass's own copy. ``succeeded`` and ``failed``: pods that ended and were not noted yet; ``noted``:
    whether they are by now."""

    def __init__(self, actions: JobActions, cached: Object, pods: Sequence[Object]) -> None:
        self.job: Object = clone(cached)
        self.noted = False
        self._actions = actions
        self._stored: dict[str, Any] = dict(cached.get("status") or {})
        self._pods = list(pods)
        self._active = [pod for pod in pods if is_active(pod)]
        self._doomed: dict[str, None] = {}
        status = {**self._stored, "uncountedTerminatedPods": self._stored.get("uncountedTerminatedPods") or {}}
        if "startTime" not in status and not is_suspended(cached):
            status["startTime"] = timestamp(actions.now())
        self.job["status"] = status
        fresh = [pod for pod in pods if is_tracked(pod) and counts(pod, cached)]
        self.succeeded = [
            p for p in fresh if phase_of(p) == "Succeeded" and uid_of(p) not in self._uncounted("succeeded")
        ]
        self.failed = [p for p in fresh if has_failed(p, cached) and uid_of(p) not in self._uncounted("failed")]
        self._indexes = indexes_of(cached, pods)

    @property
    def _status(self) -> dict[str, Any]:
        return self.job["status"]  # type: ignore[no-any-return]

    def _uncounted(self, name: str) -> list[str]:
        return list((self._status["uncountedTerminatedPods"]).get(name) or ())

    async def advance(self, backoff: Backoff) -> Exception | None:
        """Do what is to be done now; answers what failed meanwhile, once the status is written."""
        job, now = self.job, self._actions.now()
        succeeded = self._total("succeeded", len(self.succeeded))
        failed = self._total("failed", sum(failure_rule(job, pod)[0] != "Ignore" for pod in self.failed))
        if is_indexed(job):
            succeeded = len(self._indexes.succeeded)
        end = policy.verdict(job, self._pods, failed=failed, indexes=self._indexes, now=now)
        active, failure = len(self._active), None
        if end is not None:
            failure = await self._delete(self._active)
            active -= len(self._doomed)
            end = None if failure is not None else end
        else:
            self._watch_deadline()
            if not is_deleting(job):
                active, failure = await self._manage(succeeded, backoff)
            end = self._success(succeeded, active)
            if end is None and not is_deleting(job):
                self._emit_suspension()
        self._status["active"] = active
        self._status["ready"] = sum(is_ready(pod) for pod in self._active if uid_of(pod) not in self._doomed)
        self._status["terminating"] = self._going() + len(self._doomed)
        await self._count(end)
        return failure

    def _total(self, name: str, fresh: int) -> int:
        return int(self._status.get(name, 0)) + len(self._uncounted(name)) + fresh

    def _going(self) -> int:
        return sum(is_deleting(pod) and not is_terminal(pod) for pod in self._pods)

    def _watch_deadline(self) -> None:
        left_s = policy.deadline_left_s(self.job, self._actions.now())
        if left_s is not None:
            self._actions.look_again(self.job, left_s)

    def _success(self, succeeded: int, active: int) -> Condition | None:
        completions = completions_of(self.job)
        enough = succeeded > 0 if completions is None else succeeded >= completions
        return policy.success(self._actions.now()) if enough and active == 0 else None

    def _emit_suspension(self) -> None:
        suspended = is_suspended(self.job)
        state, reason, text = (
            ("True", "JobSuspended", "Job suspended") if suspended else ("False", "JobResumed", "Job resumed")
        )
        wanted = policy.condition("Suspended", reason, text, now=self._actions.now(), status=state)
        conditions = policy.ensured(self._status.get("conditions") or (), wanted)
        if conditions is None:
            return
        self._status["conditions"] = conditions
        self._actions.emit(self.job, "Normal", "Suspended" if suspended else "Resumed", text)
        if not suspended:
            self._status["startTime"] = timestamp(self._actions.now())

    # Pods

    async def _manage(self, succeeded: int, backoff: Backoff) -> tuple[int, Exception | None]:
        """Make or delete pods; answers how many are active after it."""
        job, active = self.job, len(self._active)
        if is_suspended(job):
            return await self._shrink(self._active)
        wanted = policy.wanted_active(job, active=active, succeeded=succeeded)
        doomed = superfluous(job, self._active, self._actions.now())
        rest = [pod for pod in self._active if pod not in doomed]
        surplus = active - wanted - len(doomed)
        if surplus > 0:
            doomed += first_to_go(rest, [0] * len(rest), self._actions.now())[:surplus]
        if doomed:
            return await self._shrink(doomed[: policy.MOST_PER_SYNC])
        missing = wanted - active - (self._going() if only_failed_are_replaced(job) else 0)
        if missing <= 0:
            return active, None
        bodies, left_s = self._bodies(min(missing, policy.MOST_PER_SYNC), backoff)
        if left_s > 0:
            self._actions.look_again(job, left_s)
            return 0, None
        return await self._grow(bodies)

    async def _grow(self, bodies: Sequence[dict[str, Any]]) -> tuple[int, Exception | None]:
        made: list[Object] = []

        async def create(number: int) -> None:
            made.append(await self._actions.control.create(self.job, bodies[number]))

        failure = await slow_start(len(bodies), create)
        if failure is not None and is_terminating_namespace(failure):
            failure = None
        return len(self._active) + len(made), failure

    def _bodies(self, count: int, backoff: Backoff) -> tuple[list[dict[str, Any]], float]:
        """Return at most so many new pods; else the seconds until there may be one."""
        job, now = self.job, self._actions.now()
        left_s = backoff.left_s(now) if limit_per_index(job) is None else 0.0
        if left_s > 0:
            return [], left_s
        template, reference = policy.tracked_template(job), controller_reference(job, JOBS)
        if not is_indexed(job):
            return [pod_of(template, name_of(job), reference)] * count, 0.0
        pending = pending_indexes(job, self._pods, self._indexes.over, count)
        if limit_per_index(job) is not None:
            pending, left_s = creatable(pending, self._indexes.awaiting, now)
        bodies = []
        for index in pending:
            made, prefix = indexed(template, job, index, self._indexes.awaiting.get(index))
            body = pod_of(made, name_of(job), reference)
            body["metadata"]["generateName"] = prefix
            bodies.append(body)
        return bodies, left_s

    async def _shrink(self, doomed: Sequence[Object]) -> tuple[int, Exception | None]:
        """Delete pods that shall not count."""
        for pod in doomed:
            if is_tracked(pod):
                await self._actions.untrack(pod, key_of(self.job))
        failure = await self._delete(doomed)
        return len(self._active) - len(self._doomed), failure

    async def _delete(self, doomed: Sequence[Object]) -> Exception | None:
        deletions = (self._actions.control.delete(self.job, pod) for pod in doomed)
        found = await asyncio.gather(*deletions, return_exceptions=True)
        failure: Exception | None = None
        for pod, result in zip(doomed, found, strict=True):
            if isinstance(result, ApiError):
                failure = failure or result
            elif isinstance(result, BaseException):
                raise result
            else:
                self._doomed[uid_of(pod)] = None
        return failure

    # Counting

    async def _count(self, end: Condition | None) -> None:
        """Note the pods that ended, then take their finalizers off, then count them: so each counts exactly once, even
        if this controller dies in between."""
        job = self.job
        tracked = [uid_of(pod) for pod in self._pods if is_tracked(pod)]
        job["status"] = policy.settled(self._status, tracked)
        released, complete = self._note(end)
        end = None if end is None else self._interim(end)
        await self._write_if_changed()
        self.noted = True
        await asyncio.gather(*(self._actions.untrack(pod, key_of(job)) for pod in released))
        gone = {uid_of(pod) for pod in released}
        job["status"] = policy.settled(self._status, [uid for uid in tracked if uid not in gone])
        finished = complete and end is not None and self._finish(end)
        await self._write_if_changed()
        if finished and end is not None:
            self._emit_end(end)

    def _may_go(self, pod: Object, end: Condition | None) -> bool:
        job = self.job
        if is_deleting(job) or end is not None or phase_of(pod) == "Succeeded":
            return True
        return has_failed(pod, job) and all(pod is not kept for kept in self._indexes.awaiting.values())

    def _note(self, end: Condition | None) -> tuple[list[Object], bool]:
        """Note pods that ended, and answer those whose finalizer may go by that, and whether these are all."""
        job, released = self.job, []
        succeeded, failed = self._uncounted("succeeded"), self._uncounted("failed")
        lost = end is not None and end["type"] in ("FailureTarget", "Failed")
        fresh = 0
        complete = True
        for pod in self._in_order():
            if not is_tracked(pod) or not self._may_go(pod, end):
                continue
            released.append(pod)
            uid = uid_of(pod)
            if phase_of(pod) == "Succeeded" and uid not in failed:
                if is_indexed(job):
                    fresh += counts(pod, job) and index_of(pod) not in self._indexes.before
                elif uid not in succeeded:
                    succeeded.append(uid)
            elif uid not in failed and (lost or has_failed(pod, job)) and self._is_loss(pod):
                failed.append(uid)
            if fresh + len(succeeded) + len(failed) >= policy.MOST_UNCOUNTED:
                complete = False
                break
        uncounted = {"succeeded": succeeded, "failed": failed}
        self._status["uncountedTerminatedPods"] = {name: uids for name, uids in uncounted.items() if uids}
        if is_indexed(job):
            self._status["succeeded"] = len(self._indexes.succeeded)
            self._status["completedIndexes"] = write_indexes(sorted(self._indexes.succeeded))
            if self._indexes.failed is None:
                self._status.pop("failedIndexes", None)
            else:
                self._status["failedIndexes"] = write_indexes(sorted(self._indexes.failed))
        return released, complete

    def _in_order(self) -> Sequence[Object]:
        if not is_indexed(self.job):
            return self._pods
        return sorted(self._pods, key=lambda pod: -1 if (index := index_of(pod)) is None else index)

    def _is_loss(self, pod: Object) -> bool:
        return counts(pod, self.job) and failure_rule(self.job, pod)[0] != "Ignore"

    def _interim(self, end: Condition) -> Condition:
        """Say how it will end; answers the condition of the end itself."""
        conditions = list(self._status.get("conditions") or ())
        if end["type"] in ("SuccessCriteriaMet", "FailureTarget"):
            if find(conditions, end["type"]) is None:
                self._status["conditions"] = [*conditions, end]
            kind = "Complete" if end["type"] == "SuccessCriteriaMet" else "Failed"
            return policy.condition(kind, end.get("reason", ""), end.get("message", ""), now=self._actions.now())
        return end

    def _finish(self, end: Condition) -> bool:
        """Say that it has ended, unless pods are still to be counted or to go."""
        if not policy.is_count_settled(self._status) or self._status["terminating"] > 0:
            return False
        now = self._actions.now()
        wanted = policy.condition(end["type"], end.get("reason", ""), end.get("message", ""), now=now)
        conditions = policy.ensured(self._status.get("conditions") or (), wanted)
        if conditions is not None:
            self._status["conditions"] = conditions
        if end["type"] == "Complete":
            self._status["completionTime"] = timestamp(now)
        return True

    def _emit_end(self, end: Condition) -> None:
        if end["type"] != "Complete":
            self._actions.emit(self.job, "Warning", end["reason"], end["message"])
            return
        completions = completions_of(self.job)
        if completions is not None and int(self._status.get("succeeded", 0)) > completions:
            text = "Too many succeeded pods running after completion count reached"
            self._actions.emit(self.job, "Warning", "TooManySucceededPods", text)
        self._actions.emit(self.job, "Normal", "Completed", "Job completed")

    async def _write_if_changed(self) -> None:
        status = nonzero(self._status, *_SHOWN_AT_ZERO)
        if status != self._stored:
            self.job["status"] = self._stored = status
            await self._actions.write(self.job)
            self.job["status"] = dict(status)
