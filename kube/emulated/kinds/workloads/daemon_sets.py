"""DaemonSets (pkg/apis/apps/v1/defaults.go, pkg/registry/apps/daemonset)."""

from __future__ import annotations

from mews.kube.api.objects import Object, annotations_of
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.core.tables.cells import Printer, Row, labels_text, selector_text, spec_of
from mews.kube.emulated.kinds.workloads.common import default_pods, layout, numbers, rolling, selector_change, warn
from mews.kube.emulated.kinds.workloads.status_errors import daemon_set_status_errors
from mews.kube.emulated.kinds.workloads.workload_errors import daemon_set_errors

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _default_daemon_set(daemon_set: Object) -> None:
    default_pods(daemon_set)
    rolling(daemon_set["spec"]["updateStrategy"], maxUnavailable=1, maxSurge=0)


def _prepare_daemon_set(daemon_set: Object, _: User) -> None:
    _note_template(daemon_set, 1)


def _daemon_set_change(new: Object, old: Object, subresource: str) -> list[FieldError]:
    """Every change of the template is counted."""
    if subresource:
        return []
    known = annotations_of(old).get(_TEMPLATE_GENERATION, "1")
    changed = new["spec"].get("template") != old["spec"].get("template")
    _note_template(new, int(known) + changed if known.isdecimal() else 1)
    return [*selector_change(new, old), *daemon_set_errors(new)]


def _note_template(daemon_set: Object, generation: int) -> None:
    metadata = daemon_set["metadata"]
    metadata["annotations"] = {**annotations_of(daemon_set), _TEMPLATE_GENERATION: str(generation)}


_DAEMON_COUNTS = (
    "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable",
)  # fmt: skip


def _daemon_set(obj: Object, _: float) -> Row:
    template = spec_of(obj).get("template") or {}
    nodes = labels_text((template.get("spec") or {}).get("nodeSelector"))
    return [*numbers(obj, *_DAEMON_COUNTS), nodes, *layout(template), selector_text(spec_of(obj).get("selector"))]


RULES = Rules(
    printer=Printer(_daemon_set, is_part=True),
    warn=warn,
    validate_status_update=daemon_set_status_errors,
    default=_default_daemon_set,
    prepare_create=_prepare_daemon_set,
    validate=daemon_set_errors,
    validate_update=_daemon_set_change,
)
