"""Workloads of apps and batch: what depends on other fields than their own (pkg/apis/*/v1/defaults.go).

Defaults that hold wherever a type stands are in the table of types (``types/*.json``), and only there. Here are those
that hold under a condition: numbers of a RollingUpdate, of a Job's spec in a Job but not in a CronJob's template.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object, annotations_of, clone, labels_of
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks, label_named
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.kinds.pods.pods import default_spec
from mews.kube.emulated.kinds.pods.warnings import hostname_warnings, pod_warnings
from mews.kube.emulated.kinds.volumes.claims import claim_spec_warnings
from mews.kube.emulated.kinds.workloads.cron_errors import cron_job_change_errors, cron_job_errors
from mews.kube.emulated.kinds.workloads.job_errors import job_change_errors, job_errors
from mews.kube.emulated.kinds.workloads.job_status_errors import job_status_errors
from mews.kube.emulated.kinds.workloads.status_errors import (
    daemon_set_status_errors,
    deployment_status_errors,
    replica_set_status_errors,
    stateful_set_status_errors,
)
from mews.kube.emulated.kinds.workloads.workload_errors import (
    daemon_set_errors,
    deployment_errors,
    pod_template_errors,
    replica_set_errors,
    replication_controller_errors,
    stateful_set_change_errors,
    stateful_set_errors,
)
from mews.kube.emulated.types.decoding import zero

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.kinds import Kind
    from mews.kube.emulated.core.store.store import Store

_NO_LIMIT = 2**31 - 1
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_CONTROLLER_UID = ("controller-uid", "batch.kubernetes.io/controller-uid")
_JOB_NAME = ("job-name", "batch.kubernetes.io/job-name")


def _default_template(spec: dict[str, Any]) -> None:
    """As of a pod; an empty overhead, which admission refuses of pods, is none here."""
    if not spec.get("overhead"):
        spec.pop("overhead", None)
    default_spec(spec)


def _default_pods(obj: Object) -> None:
    _default_template(obj["spec"]["template"]["spec"])


def _rolling(strategy: dict[str, Any], **numbers: Any) -> None:
    """The numbers of a RollingUpdate."""
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {**numbers, **strategy.get("rollingUpdate", {})}


def _default_pod_template(pod_template: Object) -> None:
    _default_template(pod_template["template"]["spec"])


def _default_deployment(deployment: Object) -> None:
    _default_pods(deployment)
    _rolling(deployment["spec"]["strategy"], **zero("apps/v1.RollingUpdateDeployment"))


def _default_replication_controller(controller: Object) -> None:
    spec = controller["spec"]
    if "template" not in spec:
        return
    _default_pods(controller)
    labels = labels_of(spec["template"])
    if labels:
        spec.setdefault("selector", dict(labels))
        if not labels_of(controller):
            controller["metadata"]["labels"] = dict(labels)


def _default_daemon_set(daemon_set: Object) -> None:
    _default_pods(daemon_set)
    _rolling(daemon_set["spec"]["updateStrategy"], maxUnavailable=1, maxSurge=0)


def _prepare_daemon_set(daemon_set: Object, _: User) -> None:
    _note_template(daemon_set, 1)


def _daemon_set_change(new: Object, old: Object, subresource: str) -> list[FieldError]:
    """Every change of the template is counted."""
    if subresource:
        return []
    known = annotations_of(old).get(_TEMPLATE_GENERATION, "1")
    changed = new["spec"].get("template") != old["spec"].get("template")
    _note_template(new, int(known) + changed if known.isdecimal() else 1)
    return [*_selector_change(new, old), *daemon_set_errors(new)]


def _note_template(daemon_set: Object, generation: int) -> None:
    metadata = daemon_set["metadata"]
    metadata["annotations"] = {**annotations_of(daemon_set), _TEMPLATE_GENERATION: str(generation)}


def _default_stateful_set(stateful_set: Object) -> None:
    _default_pods(stateful_set)
    spec = stateful_set["spec"]
    _rolling(spec["updateStrategy"], **zero("apps/v1.RollingUpdateStatefulSetStrategy"))
    if "persistentVolumeClaimRetentionPolicy" not in spec:
        spec["persistentVolumeClaimRetentionPolicy"] = zero("apps/v1.StatefulSetPersistentVolumeClaimRetentionPolicy")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}


def _default_job(job: Object) -> None:
    _default_pods(job)
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


def _default_cron_job(cron_job: Object) -> None:
    _default_pods(cron_job["spec"]["jobTemplate"])


def _selector_change(new: Object, old: Object) -> list[FieldError]:
    if new["spec"].get("selector") == old["spec"].get("selector"):
        return []
    return [refusals.bad("spec.selector", new["spec"].get("selector"), "field is immutable")]


def _is_annotated_anew(new: Object, old: Object) -> bool:
    """A Deployment's annotations are its ReplicaSets', so they count."""
    return annotations_of(new) != annotations_of(old)


def _warn(new: Object, old: Object | None) -> list[str]:
    """Return those of the pods of a template, if they are new."""
    path = "spec.template" if "spec" in new else "template"
    template = new["spec"].get("template") if "spec" in new else new.get("template")
    return pod_warnings(template or {}, path) if _is_new(new, old) else []


def _warn_of_old(new: Object, old: Object | None) -> list[str]:
    """Return those of an update of a ReplicationController upstream looks at the old template."""
    if old is None:
        return _warn_of_name(new, old)
    return pod_warnings(old["spec"].get("template") or {}, "spec.template") if _is_new(new, old) else []


def _warn_of_name(new: Object, old: Object | None) -> list[str]:
    return [*([] if old is not None else hostname_warnings(new)), *_warn(new, old)]


def _is_new(new: Object, old: Object | None) -> bool:
    return old is None or any(new.get(part) != old.get(part) for part in ("spec", "template"))


def _warn_of_claims(new: Object, old: Object | None) -> list[str]:
    found, part = _warn(new, old), "" if old is None else ".Spec"
    for index, claim in enumerate(new["spec"].get("volumeClaimTemplates") or ()):
        found += claim_spec_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}]{part}")
    if new["spec"].get("revisionHistoryLimit", 0) < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        found.append(f"spec.revisionHistoryLimit: {text}")
    return found


_MANY_COMPLETIONS, _MANY_AT_ONCE = 100_000, 10_000


def _job_warnings(spec: Mapping[str, Any], path: str) -> list[str]:
    found, (completions, parallelism) = [], (spec.get(name) or 0 for name in ("completions", "parallelism"))
    if spec.get("completionMode") == "Indexed" and completions > _MANY_COMPLETIONS and parallelism > _MANY_AT_ONCE:
        found.append(
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
            "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    return found + pod_warnings(spec.get("template") or {}, f"{path}.template")


def _warn_of_jobs(new: Object, old: Object | None) -> list[str]:
    found = [] if old is not None else hostname_warnings(new)
    return found + (_job_warnings(new["spec"], "spec") if _is_new(new, old) else [])


def _warn_of_schedules(new: Object, old: Object | None) -> list[str]:
    found = [] if old is not None else hostname_warnings(new)
    if _is_new(new, old):
        found += _job_warnings(new["spec"]["jobTemplate"].get("spec") or {}, "spec.jobTemplate.spec")
    if old is not None and "TZ" in new["spec"].get("schedule", ""):
        found.append(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/"
            "concepts/workloads/controllers/cron-jobs/ for more details"
        )
    return found


def _keep_gate_shut(new: Object, old: Object) -> None:
    """DeploymentReplicaSetTerminatingReplicas is off by default in 1.34."""
    if "terminatingReplicas" not in (old.get("status") or {}):
        (new.get("status") or {}).pop("terminatingReplicas", None)


DEPLOYMENTS = Rules(
    warn=_warn_of_name,
    prepare_update=_keep_gate_shut,
    validate_status_update=deployment_status_errors,
    makes_generation=_is_annotated_anew,
    default=_default_deployment,
    validate=deployment_errors,
    compare=_selector_change,
    metadata=MetadataChecks(status_leaves=("labels",)),
)
REPLICA_SETS = Rules(
    warn=_warn_of_name,
    prepare_update=_keep_gate_shut,
    validate_status_update=replica_set_status_errors,
    default=_default_pods,
    validate=replica_set_errors,
    compare=_selector_change,
)
DAEMON_SETS = Rules(
    warn=_warn,
    validate_status_update=daemon_set_status_errors,
    default=_default_daemon_set,
    prepare_create=_prepare_daemon_set,
    validate=daemon_set_errors,
    validate_update=_daemon_set_change,
)


def _close_gates(new: Object, old: Object) -> None:
    """MaxUnavailableStatefulSet is off by default in 1.34: nobody gets the field who did not have it."""
    if _max_unavailable(old) is None:
        _shut(new)


def _prepare_stateful_set(stateful_set: Object, _: User) -> None:
    _shut(stateful_set)


def _shut(stateful_set: Object) -> None:
    rolling = (stateful_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    rolling.pop("maxUnavailable", None)


def _max_unavailable(stateful_set: Object) -> Any:
    rolling = (stateful_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return rolling.get("maxUnavailable")


STATEFUL_SETS = Rules(
    warn=_warn_of_claims,
    prepare_update=_close_gates,
    prepare_create=_prepare_stateful_set,
    default=_default_stateful_set,
    validate=stateful_set_errors,
    validate_update=stateful_set_change_errors,
    validate_status_update=stateful_set_status_errors,
    metadata=MetadataChecks(name_texts=label_named),
)
REPLICATION_CONTROLLERS = Rules(
    warn=_warn_of_old,
    validate_status_update=replica_set_status_errors,
    default=_default_replication_controller,
    validate=replication_controller_errors,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA_UPDATE, OBJECT, CHANGE)),
)
JOBS = Rules(
    warn=_warn_of_jobs,
    default=_default_job,
    admit=_admit_job,
    validate=job_errors,
    validate_update=job_change_errors,
    validate_status_update=job_status_errors,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA_UPDATE, CHANGE)),
)
CRON_JOBS = Rules(
    warn=_warn_of_schedules,
    default=_default_cron_job,
    validate=cron_job_errors,
    validate_update=cron_job_change_errors,
    metadata=MetadataChecks(on_status=()),
)
POD_TEMPLATES = Rules(warn=_warn, default=_default_pod_template, validate=pod_template_errors)
