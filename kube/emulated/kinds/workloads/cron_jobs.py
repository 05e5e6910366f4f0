"""CronJobs (pkg/apis/batch/v1/defaults.go, pkg/registry/batch/cronjob)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.tables.cells import Printer, Row, selector_text, spec_of, status_of
from mews.kube.emulated.core.tables.durations import age
from mews.kube.emulated.kinds.pods.warnings import hostname_warnings
from mews.kube.emulated.kinds.workloads.common import default_pods, is_new, job_warnings, layout
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


def _cron_job(obj: Object, now_s: float) -> Row:
    spec, status = spec_of(obj), status_of(obj)
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    last = status.get("lastScheduleTime")
    suspended = str(spec.get("suspend", "<unset>"))
    schedule = [spec.get("schedule", ""), spec.get("timeZone", "<none>"), suspended, len(status.get("active") or ())]
    since = age(last, now_s) if last else "<none>"
    return [*schedule, since, *layout(job.get("template") or {}), selector_text(job.get("selector"))]


RULES = Rules(
    printer=Printer(_cron_job, is_part=True),
    warn=_warn_of_schedules,
    default=_default_cron_job,
    validate=cron_job_errors,
    validate_update=cron_job_change_errors,
    metadata=MetadataChecks(on_status=()),
)
