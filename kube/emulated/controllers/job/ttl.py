"""Deletes Jobs that ended a while ago and said how long they are to be kept."""

from __future__ import annotations

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, is_deleting, key_of, name_of, namespace_of, seconds, uid_of
from mews.kube.api.resources import JOBS
from mews.kube.client.port import DeleteOptions, Preconditions
from mews.kube.component import Context
from mews.kube.emulated.controllers.job.reading import is_finished
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.syncing import SyncLoop


def left_s(job: Object, now: float) -> float | None:
    """Return seconds for which an ended Job is still kept; None for one that is kept for ever."""
    span_s = job["spec"].get("ttlSecondsAfterFinished")
    if span_s is None or is_deleting(job) or not is_finished(job):
        return None
    conditions = job["status"]["conditions"]
    end = next(c for c in conditions if c["type"] in ("Complete", "Failed") and c["status"] == "True")
    return float(seconds(end["lastTransitionTime"]) + span_s - now)


class TtlAfterFinished:
    """Component: one for a cluster."""

    def __init__(self, context: Context, *, informers: Informers) -> None:
        self._context = context
        self._jobs = informers.of(JOBS)
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._jobs.synced()
        self._jobs.on_change(self._changed)
        await self._loop.run()

    def _changed(self, _old: Object | None, new: Object | None) -> None:
        if new is not None and left_s(new, self._context.clock.now()) is not None:
            self._loop.add(key_of(new))

    async def _sync(self, key: str) -> None:
        job = self._jobs.at(key)
        left = left_s(job, self._context.clock.now()) if job is not None else None
        if job is None or left is None:
            return
        if left > 0:
            self._loop.add_after(key, left)
            return
        options = DeleteOptions(preconditions=Preconditions(uid=uid_of(job)), propagation="Foreground")
        try:
            await self._context.kube.delete(JOBS, name_of(job), namespace=namespace_of(job), options=options)
        except NotFoundError:
            return
