"""Jobs: defaults, labels of their pods, warnings (pkg/apis/batch/v1/defaults.go, pkg/registry/batch/job)."""

from __future__ import annotations

from typing import Any

from mews.kube.api.objects import Object, clone, condition_of, labels_of, seconds
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.tables.cells import Printer, Row, meta_age
from mews.kube.emulated.core.tables.durations import age
from mews.kube.emulated.kinds.pods.warnings import hostname_warnings
from mews.kube.emulated.kinds.workloads.common import default_pods, described, is_new, job_warnings
from mews.kube.emulated.kinds.workloads.job_errors import job_change_errors, job_errors
from mews.kube.emulated.kinds.workloads.job_status_errors import job_status_errors

_NO_LIMIT = 2**31 - 1


_CONTROLLER_UID = ("controller-uid", "batch.kubernetes.io/controller-uid")


_JOB_NAME = ("job-name", "batch.kubernetes.io/job-name")


def _default_job(job: Object) -> None:
    default_pods(job)
    spec: dict[str, Any] = job["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    defaults = {
        "parallelism": 1,
        "backoffLimit": _NO_LIMIT if "backoffLimitPerIndex" in spec else 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
    }
    for name, value in defaults.items():
        spec.setdefault(name, value)
    labels = labels_of(spec["template"])
    if labels and not labels_of(job):
        job["metadata"]["labels"] = dict(labels)


def _admit_job(store: Store, _kind: Kind, job: Object) -> None:
    """The selector and the labels by which a Job knows its pods, unless the user knows better."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    uid = metadata["uid"] = store.new_uid()
    template = spec["template"]["metadata"]
    given = dict(template.get("labels") or {})
    labels = template["labels"] = dict(given)
    for name in _JOB_NAME:
        labels.setdefault(name, metadata.get("name", ""))
    for name in _CONTROLLER_UID:
        labels.setdefault(name, uid)
    selector = spec.setdefault("selector", {})
    selector["matchLabels"] = {_CONTROLLER_UID[1]: uid, **(selector.get("matchLabels") or {})}
    if labels_of(job) in ({}, given):  # upstream's default is the very map of the template
        metadata["labels"] = clone(labels)


def _warn_of_jobs(new: Object, old: Object | None) -> list[str]:
    found = [] if old is not None else hostname_warnings(new)
    return found + (job_warnings(new["spec"], "spec") if is_new(new, old) else [])


def _job(obj: Object, now_s: float) -> Row:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    wanted, at_once = spec.get("completions"), spec.get("parallelism", 0)
    if wanted is None:
        wanted = f"1 of {at_once}" if at_once > 1 else 1
    begun, ended = status.get("startTime"), status.get("completionTime")
    took = "" if not begun else age(begun, now_s if not ended else seconds(ended))
    return [
        obj["metadata"]["name"],
        _job_status(obj),
        f"{status.get('succeeded', 0)}/{wanted}",
        took,
        meta_age(obj, now_s),
        *described(obj),
    ]


def _job_status(job: Object) -> str:
    for kind, word in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")):
        found = condition_of(job, kind)
        if found is not None and found.get("status") == "True":
            return word
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return "Running"


_ORPHANS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
RULES = Rules(
    orphan_warning=_ORPHANS,
    printer=Printer(_job),
    warn=_warn_of_jobs,
    default=_default_job,
    admit=_admit_job,
    validate=job_errors,
    validate_update=job_change_errors,
    validate_status_update=job_status_errors,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA_UPDATE, CHANGE)),
)
