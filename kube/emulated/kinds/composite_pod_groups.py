"""CompositePodGroups."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of


def group_cells(obj: Object, _: float) -> Row:
    """Return the policy and the workload of a group."""
    spec = spec_of(obj)
    gang = (spec.get("schedulingPolicy") or {}).get("gang") is not None
    return ["Gang" if gang else "Basic", (spec.get("workloadRef") or {}).get("workloadName") or "<none>"]


RULES = Rules(printer=Printer(group_cells, is_part=True))
