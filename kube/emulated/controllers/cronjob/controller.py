"""Makes Jobs by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mews.kube.api.errors import AlreadyExistsError, ApiError, NotFoundError
from mews.kube.api.objects import Object, is_deleting, key_of, name_of, namespace_of, timestamp, uid_of
from mews.kube.api.resources import CRON_JOBS, JOBS
from mews.kube.client.port import DeleteOptions
from mews.kube.clock import later
from mews.kube.component import Context
from mews.kube.emulated.controllers.cronjob import policy
from mews.kube.emulated.controllers.cronjob.schedule import Schedule, parse
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.pod_control import owners_of_change
from mews.kube.emulated.controllers.syncing import MANAGER, Expectations, SyncLoop
from mews.kube.events import EventRecorder, reference

_LATER_S = 0.1
"""Upstream looks a little after the time, so that it has come."""


class CronJobController:
    """Component: one for a cluster. ``events`` records as ``cronjob-controller``."""

    def __init__(self, context: Context, *, informers: Informers, events: EventRecorder) -> None:
        self._context = context
        self._events = events
        self._cron_jobs = informers.of(CRON_JOBS)
        self._jobs = informers.owned(JOBS)
        self._expectations = Expectations()
        self._loop = SyncLoop(context, self._sync)
        self._due: dict[str, float] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        await self._cron_jobs.synced()
        await self._jobs.informer.synced()
        self._cron_jobs.on_change(self._loop.add_changed)
        self._jobs.informer.on_change(self._job_changed)
        await self._loop.run()

    def _job_changed(self, old: Object | None, new: Object | None) -> None:
        for key in owners_of_change(old, new, CRON_JOBS.kind):
            self._loop.add(key)

    async def _sync(self, key: str) -> None:
        cron_job = self._cron_jobs.at(key)
        if cron_job is None:
            self._expectations.forget(key)
            return
        if not self._expectations.met(key):
            return
        jobs = self._jobs.of(uid_of(cron_job))
        status = self._taken_stock(cron_job, jobs)
        try:
            if not is_deleting(cron_job) and not cron_job["spec"].get("suspend"):
                await self._run_what_is_due(cron_job, status)
        finally:
            await self._write_status(cron_job, status)
        for job in policy.to_clean_up(cron_job, jobs):
            await self._delete(cron_job, job)

    def _taken_stock(self, cron_job: Object, jobs: Sequence[Object]) -> dict[str, Any]:
        """Return the status by the Jobs there are."""
        status = dict(cron_job.get("status") or {})
        known = {uid_of(job): job for job in jobs}
        active: list[Any] = []
        for entry in status.get("active") or ():
            job = known.get(entry.get("uid"))
            end = policy.end_of(job) if job is not None else None
            if job is None:
                self._emit(cron_job, "Normal", "MissingJob", f"Active job went missing: {entry['name']}")
            elif end is not None:
                text = f"Saw completed job: {entry['name']}, condition: {end}"
                self._emit(cron_job, "Normal", "SawCompletedJob", text)
            else:
                active.append(entry)
        noted = {entry.get("uid") for entry in status.get("active") or ()}
        for job in jobs:
            if uid_of(job) not in noted and policy.end_of(job) is None:
                text = f"Saw a job that the controller did not create or forgot: {name_of(job)}"
                self._emit(cron_job, "Warning", "UnexpectedJob", text)
        ends = [job["status"]["completionTime"] for job in jobs if policy.end_of(job) == "Complete"]
        if ends:
            status["lastSuccessfulTime"] = max([*ends, status.get("lastSuccessfulTime", "")])
        status["active"] = active
        return status

    async def _run_what_is_due(self, cron_job: Object, status: dict[str, Any]) -> None:
        now, spec = self._context.clock.now(), cron_job["spec"]
        try:
            schedule = parse(spec["schedule"], spec.get("timeZone"))
        except ValueError as error:
            text = f'unparseable schedule: "{spec["schedule"]}" : {error}'
            self._emit(cron_job, "Warning", "UnparseableSchedule", text)
            return
        due = schedule.last(policy.since(cron_job, now), now)
        self._wake(key_of(cron_job), schedule, now)
        if due is None or timestamp(due) == status.get("lastScheduleTime"):
            return
        running = status["active"]
        if running and spec.get("concurrencyPolicy") == "Forbid":
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._emit(cron_job, "Normal", "JobAlreadyActive", text)
            return
        if spec.get("concurrencyPolicy") == "Replace":
            for entry in running:
                job = self._jobs.informer.get(entry["name"], namespace_of(cron_job))
                if job is not None:
                    await self._delete(cron_job, job)
            status["active"] = []
        job = await self._create(cron_job, schedule, due)
        status["active"] = [*status["active"], policy.reference_to(job)]
        status["lastScheduleTime"] = timestamp(due)

    def _wake(self, key: str, schedule: Schedule, now: float) -> None:
        """Look again at the next time. It goes round for ever, so it counts as rest."""
        due = schedule.after(now)
        if due is not None and self._due.get(key) != due:
            self._due[key] = due
            later(due - now + _LATER_S, lambda: self._loop.add(key))

    async def _create(self, cron_job: Object, schedule: Schedule, due: float) -> Object:
        body, namespace = policy.job_of(cron_job, schedule, due), namespace_of(cron_job)
        name = body["metadata"]["name"]
        try:
            made = await self._context.kube.create(JOBS, body, namespace=namespace, field_manager=MANAGER)
        except AlreadyExistsError:
            return await self._context.kube.get(JOBS, name, namespace=namespace)
        except ApiError as error:
            self._emit(cron_job, "Warning", "FailedCreate", f"Error creating job: {error.message}")
            raise
        self._expectations.wrote(key_of(cron_job), self._jobs.informer, made)
        self._emit(cron_job, "Normal", "SuccessfulCreate", f"Created job {name}")
        return made

    async def _delete(self, cron_job: Object, job: Object) -> None:
        self._expectations.deleted(key_of(cron_job), self._jobs.informer, job)
        options = DeleteOptions(propagation="Background")
        try:
            await self._context.kube.delete(JOBS, name_of(job), namespace=namespace_of(job), options=options)
        except NotFoundError:
            return
        self._emit(cron_job, "Normal", "SuccessfulDelete", f"Deleted job {name_of(job)}")

    def _emit(self, cron_job: Object, kind: str, reason: str, text: str) -> None:
        about = reference({**cron_job, "kind": CRON_JOBS.kind, "apiVersion": CRON_JOBS.api_version})
        self._events.event(about, kind, reason, text)

    async def _write_status(self, cron_job: Object, status: dict[str, Any]) -> None:
        made = {name: value for name, value in status.items() if value}
        if made == {name: value for name, value in (cron_job.get("status") or {}).items() if value}:
            return
        try:
            written = await self._context.kube.replace(
                CRON_JOBS, {**cron_job, "status": made}, subresource="status", field_manager=MANAGER
            )
        except NotFoundError:
            return
        self._expectations.wrote(key_of(cron_job), self._cron_jobs, written)
