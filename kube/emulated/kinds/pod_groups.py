"""PodGroups."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.tables.cells import Printer, Row, status_of
from mews.kube.emulated.kinds.composite_pod_groups import group_cells


def _pod_group(obj: Object, _: float) -> Row:
    conditions, state = {each["type"]: each for each in status_of(obj).get("conditions") or ()}, "Pending"
    if scheduled := conditions.get("PodGroupInitiallyScheduled"):
        state = "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    if target := conditions.get("DisruptionTarget"):
        state = target.get("reason", "")
    return [*group_cells(obj, 0.0), state]


RULES = Rules(printer=Printer(_pod_group, is_part=True))
