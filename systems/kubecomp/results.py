"""What the journal of a run says of KubeComp's work. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from mews.kube.system.journal import Line


def reconfigurations(lines: Iterable[Line]) -> int:
    """How many demands of pods completed attaches served (a pod that is annotated anew later asks anew)."""
    served_demands = 0
    asking: dict[str, str] = {}
    for line in lines:
        if line.layer == "chassis" and line.event == "attached":
            served = next((pod for pod, node in asking.items() if node == line.fields.get("host")), None)
            if served is not None:
                served_demands += 1
                asking[served] = ""
        elif line.layer == "api" and line.event == "annotations":
            _note_demand(asking, line)
    return served_demands


def _note_demand(asking: dict[str, str], line: Line) -> None:
    """Pod -> the node that it wants devices on, while it wants any; "" once its demand was counted."""
    changed = line.fields["annotations"]
    if "gpu_demand" in changed and changed["gpu_demand"] is None:
        asking.pop(line.actor, None)
    elif changed.get("dst_node"):
        asking[line.actor] = changed["dst_node"]
