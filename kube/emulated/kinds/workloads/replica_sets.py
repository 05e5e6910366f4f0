"""ReplicaSets (pkg/registry/apps/replicaset)."""

from __future__ import annotations

from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.kinds.workloads.common import default_pods, keep_gate_shut, selector_change, warn_of_name
from mews.kube.emulated.kinds.workloads.status_errors import replica_set_status_errors
from mews.kube.emulated.kinds.workloads.workload_errors import replica_set_errors

RULES = Rules(
    warn=warn_of_name,
    prepare_update=keep_gate_shut,
    validate_status_update=replica_set_status_errors,
    default=default_pods,
    validate=replica_set_errors,
    compare=selector_change,
)
