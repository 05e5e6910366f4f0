"""What the journal of a run says of KubeComp's work. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from mews.kube.system.journal import Line
from mews.systems.kubecomp.records import EVENT_REASON


def reconfigurations(lines: Iterable[Line]) -> int:
    """Return how many demands of pods completed attaches served. A pod that is annotated anew later asks anew, and so
    does each further Reconfig event of a pod whose annotations stayed as they were."""
    served_demands = 0
    asking: dict[str, str] = {}
    targets: dict[str, str] = {}
    noticed: set[str] = set()
    for line in lines:
        if line.layer == "chassis" and line.event == "attached":
            served = next((pod for pod, node in asking.items() if node == line.fields.get("host")), None)
            if served is not None:
                served_demands += 1
                asking[served] = ""
        elif line.layer == "api" and line.event == "annotations":
            _note_demand(asking, line)
            if target := line.fields["annotations"].get("dst_node"):
                targets[line.actor] = target
                noticed.discard(line.actor)
        elif line.layer == "api" and line.event == "event" and line.fields.get("reason") == EVENT_REASON:
            pod = str(line.fields.get("object", ""))
            if pod in noticed and pod in targets:
                asking[pod] = targets[pod]
            noticed.add(pod)
    return served_demands


def _note_demand(asking: dict[str, str], line: Line) -> None:
    """Pod -> the node that it wants devices on, while it wants any; "" once its demand was counted."""
    changed = line.fields["annotations"]
    if "gpu_demand" in changed and changed["gpu_demand"] is None:
        asking.pop(line.actor, None)
    elif changed.get("dst_node"):
        asking[line.actor] = changed["dst_node"]


def detection_seconds(lines: Iterable[Line]) -> dict[str, float]:
    """Pod (``pod/NAMESPACE/NAME``) -> seconds from the last attach for its node until it was bound, for pods whose
    node was short of devices."""
    wanting: dict[str, str] = {}
    attached_s: dict[str, float] = {}
    found: dict[str, float] = {}
    for line in lines:
        if line.layer == "chassis" and line.event == "attached":
            attached_s |= {pod: line.t for pod, node in wanting.items() if node == line.fields.get("host")}
        elif line.layer == "api" and line.event == "annotations":
            if target := line.fields["annotations"].get("dst_node"):
                wanting[line.actor] = target
        elif line.layer == "api" and line.event == "bound":
            here = wanting.pop(line.actor, "") == line.fields.get("node")
            if here and line.actor in attached_s:
                found[line.actor] = line.t - attached_s[line.actor]
    return found
