"""The cell of an autoscaler's metrics (k8s.io/kubernetes/pkg/printers/internalversion formatHPAMetrics)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.emulated.core.tables.cells import none_if_empty

_SHOWN_METRICS = 2


def metric_texts(wanted: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> str:
    """Current and wanted values, the first two of them, as the autoscaler's TARGETS column has them."""
    texts = [_metric(spec, found[index] if index < len(found) else {}) for index, spec in enumerate(wanted)]
    shown = ", ".join(texts[:_SHOWN_METRICS])
    more = len(texts) - _SHOWN_METRICS
    return f"{shown} + {more} more..." if more > 0 else none_if_empty(shown)


def _metric(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    kind = spec.get("type", "")
    field = kind[:1].lower() + kind[1:]
    if field not in ("resource", "containerResource", "pods", "object", "external"):
        return "<unknown type>"
    target = (spec.get(field) or {}).get("target") or {}
    current = (status.get(field) or {}).get("current") or {}
    name = f"{spec[field].get('name', '')}: " if "esource" in field else ""
    if "averageValue" in target:
        average = " (avg)" if field in ("object", "external") else ""
        return f"{name}{current.get('averageValue', '<unknown>')}/{target['averageValue']}{average}"
    if name:
        use = [f"{part['averageUtilization']}%" if "averageUtilization" in part else "" for part in (current, target)]
        return f"{name}{use[0] or '<unknown>'}/{use[1] or '<auto>'}"
    return f"{current.get('value', '<unknown>')}/{target.get('value', '0')}"
