"""What becomes of a TFJob is told by an event on it."""

from __future__ import annotations

from types import MappingProxyType

from mews.kube.system.journal import Line
from mews.kube.system.reported_acts import ReportedActs
from mews.systems.kod2.model import State

_TYPES = ("Created", "Running", "Succeeded", "Failed", "Stalled", "Suspended")


def _condition(line: Line) -> tuple[str, ...]:
    fields = line.fields
    if not line.actor.startswith("tfjob/") or fields["status"] != "True" or fields["type"] not in _TYPES:
        return ()
    return (str(fields["reason"]),)


def _state(line: Line) -> tuple[str, ...]:
    is_placed = line.actor.startswith("tfjob/") and line.fields["state"] == State.RUNNING
    return ("Placed",) if is_placed else ()


class Announced(ReportedActs):
    """The training operator writes each condition with an event of the same reason (contract kod2.md; upstream calls
    ``UpdateJobStatus`` with ``recorder.Event``). Our operator also reports where it placed a job that begins to run."""

    number = 77
    name = "what becomes of a TFJob is reported by an event on it"
    of_time = True
    events = frozenset(
        {("api", event) for event in ("event", "condition", "state", "placement", "workers", "stalled", "deleted")}
        | {("component", event) for event in ("started", "killed", "crashed")}
    )
    acts = MappingProxyType({("api", "condition"): _condition, ("api", "state"): _state})
