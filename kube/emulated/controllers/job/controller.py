"""Runs Jobs to their end: makes their pods, counts each exactly once, and says how it ended."""

from __future__ import annotations

import asyncio

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, is_deleting, key_of, labels_of, name_of, namespace_of, uid_of
from mews.kube.api.resources import JOBS, PODS
from mews.kube.api.selectors import match_expressions
from mews.kube.client.port import Patch
from mews.kube.component import Context
from mews.kube.emulated.controllers.job import policy
from mews.kube.emulated.controllers.job.failures import Backoff
from mews.kube.emulated.controllers.job.reading import TRACKING, is_finished, is_managed_elsewhere, is_tracked
from mews.kube.emulated.controllers.job.work import JobPass
from mews.kube.emulated.controllers.owners import Informers, controller_of
from mews.kube.emulated.controllers.pod_control import PodControl
from mews.kube.emulated.controllers.syncing import MANAGER, Expectations, SyncLoop
from mews.kube.events import EventRecorder


class JobController:
    """Component: one for a cluster. ``events`` records as ``job-controller``."""

    def __init__(self, context: Context, *, informers: Informers, events: EventRecorder) -> None:
        self._context = context
        self._events = events
        self._jobs = informers.of(JOBS)
        self._pods = informers.owned(PODS)
        self._expectations = Expectations()
        self._backoffs: dict[str, Backoff] = {}
        self._loop = SyncLoop(context, self._sync)
        self._strays = SyncLoop(context, self._let_go)
        self.control = PodControl(context, events, resource=JOBS, pods=self._pods, expectations=self._expectations)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._jobs.synced()
        await self._pods.informer.synced()
        self._jobs.on_change(self._job_changed)
        self._pods.informer.on_change(self._pod_changed)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._loop.run())
            tasks.create_task(self._strays.run())

    def _job_changed(self, old: Object | None, new: Object | None) -> None:
        changed = new or old
        if changed is None:
            return
        if new is None or is_finished(new):
            for pod in self._pods.of(uid_of(changed)):
                self._strays.add(key_of(pod))
        if old is not None and new is not None and _generation(old) == _generation(new):
            self.look_again(new, policy.BATCH_S)
        else:
            self._loop.add(key_of(changed))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        for pod in (old, new):
            job = self._job_of(pod) if pod is not None else None
            if job is not None:
                self.look_again(job, policy.BATCH_S)
        if new is None:
            return
        if controller_of(new) is None:
            self._offer(new)
        if is_tracked(new):
            job = self._job_of(new)
            if job is None or is_finished(job):
                self._strays.add(key_of(new))

    def _offer(self, pod: Object) -> None:
        for job in self._jobs.items() if len(self._jobs) else ():
            selector = job["spec"].get("selector")
            if namespace_of(job) == namespace_of(pod) and selector and match_expressions(selector, labels_of(pod)):
                self.look_again(job, policy.BATCH_S)

    def _job_of(self, pod: Object) -> Object | None:
        owner = controller_of(pod)
        if owner is None or owner.get("kind") != JOBS.kind:
            return None
        job = self._jobs.get(str(owner["name"]), namespace_of(pod))
        return job if job is not None and uid_of(job) == owner.get("uid") else None

    async def _let_go(self, key: str) -> None:
        """Take the finalizer off a pod whose Job is over or gone."""
        pod = self._pods.informer.at(key)
        if pod is None or not is_tracked(pod):
            return
        owner, job = controller_of(pod), self._job_of(pod)
        if owner is not None and owner.get("kind") != JOBS.kind:
            return
        if job is None or (is_finished(job) and not is_managed_elsewhere(job)):
            await self.untrack(pod)

    async def _sync(self, key: str) -> None:
        cached = self._jobs.at(key)
        if cached is None:
            self._expectations.forget(key)
            self._backoffs.pop(key, None)
            return
        if is_finished(cached) or is_managed_elsewhere(cached):
            self._backoffs.pop(key, None)
            return
        if not self._expectations.met(key):
            return
        work = JobPass(self, cached, await self.control.claim(cached, finalizer=TRACKING))
        backoff = self._backoffs.get(key, Backoff()).after(work.succeeded, work.failed)
        try:
            failure = await work.advance(backoff)
        finally:
            if work.noted:
                self._backoffs[key] = backoff
        if failure is not None:
            raise failure

    # What the work on one Job asks for.

    def now(self) -> float:
        """Return the time now, in unix seconds."""
        return self._context.clock.now()

    def look_again(self, job: Object, delay_s: float) -> None:
        """Look at it again after a while."""
        self._loop.add_after(key_of(job), delay_s)

    def emit(self, job: Object, kind: str, reason: str, text: str) -> None:
        """An event about a Job."""
        self._events.event(self.control.about(job), kind, reason, text)

    async def untrack(self, pod: Object, key: str = "") -> None:
        """Take the finalizer off; it may be gone already. ``key``: of the Job that waits until this is seen."""
        body = {"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING]}}
        try:
            changed = await self._context.kube.patch(
                PODS, name_of(pod), body, kind=Patch.STRATEGIC, namespace=namespace_of(pod), field_manager=MANAGER
            )
        except NotFoundError:
            return
        if key and not is_deleting(pod):
            self._expectations.wrote(key, self._pods.informer, changed)

    async def write(self, job: Object) -> None:
        """PUT of the status; the object's new version counts from then on."""
        written = await self._context.kube.replace(JOBS, job, subresource="status", field_manager=MANAGER)
        job["metadata"] = written["metadata"]
        self._expectations.wrote(key_of(job), self._jobs, written)


def _generation(job: Object) -> int:
    return int(job["metadata"].get("generation", 0))
