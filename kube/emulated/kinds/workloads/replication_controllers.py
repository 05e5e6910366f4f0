"""ReplicationControllers (pkg/apis/core/v1/defaults.go, pkg/apis/core/validation)."""

from __future__ import annotations

from mews.kube.api.objects import Object, labels_of
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.tables.cells import Printer, Row, labels_text, spec_of
from mews.kube.emulated.kinds.pods.warnings import pod_warnings
from mews.kube.emulated.kinds.workloads.common import default_pods, is_new, layout, numbers, warn_of_name
from mews.kube.emulated.kinds.workloads.status_errors import replica_set_status_errors
from mews.kube.emulated.kinds.workloads.workload_errors import replication_controller_errors


def _default_replication_controller(controller: Object) -> None:
    spec = controller["spec"]
    if "template" not in spec:
        return
    default_pods(controller)
    labels = labels_of(spec["template"])
    if labels:
        spec.setdefault("selector", dict(labels))
        if not labels_of(controller):
            controller["metadata"]["labels"] = dict(labels)


def _warn_of_old(new: Object, old: Object | None) -> list[str]:
    """Return those of an update of a ReplicationController upstream looks at the old template."""
    if old is None:
        return warn_of_name(new, old)
    return pod_warnings(old["spec"].get("template") or {}, "spec.template") if is_new(new, old) else []


def _controller(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    counts = [spec.get("replicas", 1), *numbers(obj, "replicas", "readyReplicas")]
    return [*counts, *layout(spec.get("template") or {}), labels_text(spec.get("selector"))]


RULES = Rules(
    printer=Printer(_controller, is_part=True),
    warn=_warn_of_old,
    validate_status_update=replica_set_status_errors,
    default=_default_replication_controller,
    validate=replication_controller_errors,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA_UPDATE, OBJECT, CHANGE)),
)
