"""What a CronJob's controller decides (k8s.io/kubernetes pkg/controller/cronjob)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mews.kube.api.objects import Object, clone, name_of, seconds
from mews.kube.api.resources import CRON_JOBS, JOBS
from mews.kube.emulated.controllers.conditions import find
from mews.kube.emulated.controllers.cronjob.schedule import Schedule
from mews.kube.emulated.controllers.job.reading import is_finished
from mews.kube.emulated.controllers.owners import controller_reference

_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def since(cron_job: Object, now: float) -> float:
    """From when on missed times count, in unix seconds."""
    last = (cron_job.get("status") or {}).get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"]
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    return max(seconds(last), now - deadline) if deadline is not None else seconds(last)


def job_of(cron_job: Object, schedule: Schedule, at: float) -> dict[str, Any]:
    """Return the Job of one time; its name is that time's."""
    template = cron_job["spec"]["jobTemplate"]
    metadata = template.get("metadata") or {}
    stamp = datetime.fromtimestamp(at, schedule.zone).isoformat().replace("+00:00", "Z")
    made: dict[str, Any] = {
        "name": f"{name_of(cron_job)}-{int(at) // 60}",
        "annotations": {**(metadata.get("annotations") or {}), _SCHEDULED: stamp},
        "ownerReferences": [controller_reference(cron_job, CRON_JOBS)],
    }
    if metadata.get("labels"):
        made["labels"] = dict(metadata["labels"])
    return {"metadata": made, "spec": clone(template["spec"])}


def reference_to(job: Object) -> dict[str, Any]:
    """Return the entry of ``status.active`` that stands for a job."""
    metadata = job["metadata"]
    made = {"kind": JOBS.kind, "apiVersion": JOBS.api_version, "name": metadata["name"]}
    return {
        **made,
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }


def end_of(job: Object) -> str | None:
    """Complete or Failed, None while it runs."""
    if not is_finished(job):
        return None
    conditions = job["status"]["conditions"]
    return "Complete" if (find(conditions, "Complete") or {}).get("status") == "True" else "Failed"


def to_clean_up(cron_job: Object, jobs: Sequence[Object]) -> list[Object]:
    """Ended Jobs beyond the history that is kept, the oldest ones."""
    doomed: list[Object] = []
    for end, name, default in (("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1)):
        ended = sorted(
            (job for job in jobs if end_of(job) == end),
            key=lambda job: (job["status"].get("startTime", ""), name_of(job)),
        )
        doomed += ended[: max(len(ended) - int(cron_job["spec"].get(name, default)), 0)]
    return doomed
