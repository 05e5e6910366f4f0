"""PodTemplates."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.tables.cells import Printer, Row, labels_text
from mews.kube.emulated.kinds.workloads.common import default_template, layout, warn
from mews.kube.emulated.kinds.workloads.workload_errors import pod_template_errors


def _default_pod_template(pod_template: Object) -> None:
    default_template(pod_template["template"]["spec"])


def _pod_template(obj: Object, _: float) -> Row:
    template = obj.get("template") or {}
    return [*layout(template), labels_text((template.get("metadata") or {}).get("labels"))]


RULES = Rules(
    printer=Printer(_pod_template, is_part=True), warn=warn, default=_default_pod_template, validate=pod_template_errors
)
