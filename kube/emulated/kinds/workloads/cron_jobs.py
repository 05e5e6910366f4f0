"""CronJobs (pkg/apis/batch/v1/defaults.go, pkg/registry/batch/cronjob)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.kinds.pods.warnings import hostname_warnings
from mews.kube.emulated.kinds.workloads.common import default_pods, is_new, job_warnings
from mews.kube.emulated.kinds.workloads.cron_errors import cron_job_change_errors, cron_job_errors


def _default_cron_job(cron_job: Object) -> None:
    default_pods(cron_job["spec"]["jobTemplate"])


def _warn_of_schedules(new: Object, old: Object | None) -> list[str]:
    found = [] if old is not None else hostname_warnings(new)
    if is_new(new, old):
        found += job_warnings(new["spec"]["jobTemplate"].get("spec") or {}, "spec.jobTemplate.spec")
    if old is not None and "TZ" in new["spec"].get("schedule", ""):
        found.append(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/"
            "concepts/workloads/controllers/cron-jobs/ for more details"
        )
    return found


RULES = Rules(
    warn=_warn_of_schedules,
    default=_default_cron_job,
    validate=cron_job_errors,
    validate_update=cron_job_change_errors,
    metadata=MetadataChecks(on_status=()),
)
