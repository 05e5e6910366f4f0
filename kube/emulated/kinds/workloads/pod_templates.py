"""PodTemplates."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.kinds.workloads.common import default_template, warn
from mews.kube.emulated.kinds.workloads.workload_errors import pod_template_errors


def _default_pod_template(pod_template: Object) -> None:
    default_template(pod_template["template"]["spec"])


RULES = Rules(warn=warn, default=_default_pod_template, validate=pod_template_errors)
