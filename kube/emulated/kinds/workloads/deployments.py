"""Deployments (pkg/apis/apps/v1/defaults.go, pkg/registry/apps/deployment)."""

from __future__ import annotations

from mews.kube.api.objects import Object, annotations_of
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.tables.cells import Printer, Row, meta_age
from mews.kube.emulated.kinds.workloads.common import (
    default_pods,
    described,
    keep_gate_shut,
    rolling,
    selector_change,
    warn_of_name,
)
from mews.kube.emulated.kinds.workloads.status_errors import deployment_status_errors
from mews.kube.emulated.kinds.workloads.workload_errors import deployment_errors
from mews.kube.emulated.types.decoding import zero


def _default_deployment(deployment: Object) -> None:
    default_pods(deployment)
    rolling(deployment["spec"]["strategy"], **zero("apps/v1.RollingUpdateDeployment"))


def _is_annotated_anew(new: Object, old: Object) -> bool:
    """A Deployment's annotations are its ReplicaSets', so they count."""
    return annotations_of(new) != annotations_of(old)


def _deployment(obj: Object, now_s: float) -> Row:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return [
        obj["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        meta_age(obj, now_s),
        *described(obj),
    ]


RULES = Rules(
    printer=Printer(_deployment),
    warn=warn_of_name,
    prepare_update=keep_gate_shut,
    validate_status_update=deployment_status_errors,
    makes_generation=_is_annotated_anew,
    default=_default_deployment,
    validate=deployment_errors,
    compare=selector_change,
    metadata=MetadataChecks(status_leaves=("labels",)),
)
