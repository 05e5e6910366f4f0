"""ReplicaSets (pkg/registry/apps/replicaset)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.tables.cells import Printer, Row, meta_age
from mews.kube.emulated.kinds.workloads.common import (
    default_pods,
    described,
    keep_gate_shut,
    selector_change,
    warn_of_name,
)
from mews.kube.emulated.kinds.workloads.status_errors import replica_set_status_errors
from mews.kube.emulated.kinds.workloads.workload_errors import replica_set_errors


def _replicaset(obj: Object, now_s: float) -> Row:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return [
        obj["metadata"]["name"],
        spec.get("replicas", 1),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        meta_age(obj, now_s),
        *described(obj),
    ]


RULES = Rules(
    printer=Printer(_replicaset),
    warn=warn_of_name,
    prepare_update=keep_gate_shut,
    validate_status_update=replica_set_status_errors,
    default=default_pods,
    validate=replica_set_errors,
    compare=selector_change,
)
