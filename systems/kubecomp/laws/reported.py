"""What a pod waits for is reported (contract kubecomp.md section 2, the scheduler)."""

from __future__ import annotations

from types import MappingProxyType

from mews.kube.system.journal import Line
from mews.kube.system.reported_acts import ReportedActs
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.laws.board import Board
from mews.systems.kubecomp.records import DST_NODE, EVENT_REASON, USE_FALCON


def _wanted(line: Line) -> tuple[str, ...]:
    noted = line.fields["annotations"]
    return (EVENT_REASON,) if noted.get(DST_NODE) and noted.get(USE_FALCON) == "true" else ()


class WaitIsReported(ReportedActs):
    """The scheduler writes onto a pod which node is to be composed for it, and reports this by an event."""

    number = 98
    name = "a pod that waits for devices has an event that says so"
    of_time = True
    events = frozenset(
        {("api", event) for event in ("event", "annotations", "bound", "condition", "deleting", "deleted")}
        | {("component", event) for event in ("started", "killed", "crashed")}
    )
    acts = MappingProxyType({("api", "annotations"): _wanted})

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        super().__init__()
