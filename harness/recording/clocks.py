"""Clocks that differ: chassis keep time by themselves, and dates of a cluster are its API server's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from msgspec import structs

from mews.harness.recording.histories import PodHistory
from mews.harness.recording.observations import ClusterObservations, LostReading, SeenOperation, TableReading
from mews.harness.recording.tables import chassis_histories

NOTICED_S = 3.0
"""Clocks that are no further apart are taken as one."""
_APART_S = 60.0
_ASKED_S = 2.0
"""From the creation of a pod to the first move for it."""


def with_one_clock(seen: ClusterObservations, pods: Sequence[PodHistory]) -> ClusterObservations:
    """Return the chassis' dates by the cluster's clock: moved by what explains the most moves by pods that waited for
    devices, where that is more than a minute and no move is explained without it. A single move may be nobody's, so it
    counts only where the dates of chassis and cluster do not meet. What was watched live has one clock already."""
    if seen.began is not None:
        return seen
    moves = [change.at for box in chassis_histories(seen.readings) for change in box.changes if change.kind == "moved"]
    moves += [each.at for each in seen.operations]
    waits = [(pod.created, pod.started or pod.ended or pod.deleted or float("inf")) for pod in pods if pod.resources()]
    if not moves or not waits:
        return seen

    def explained(offset: float) -> int:
        return sum(any(begun <= t + offset <= until for begun, until in waits) for t in moves)

    candidates = [begun + _ASKED_S - move for begun, _ in waits for move in moves]
    best = max(candidates, key=lambda offset: (explained(offset), -abs(offset)))
    is_sure = explained(best) == len(moves) > 1 or (explained(best) and not _meet(moves, pods))
    if abs(best) < _APART_S or explained(0.0) or not is_sure:
        return seen
    note = (
        f"the chassis' clock is {-best / 60:+.1f} minutes off the cluster's: corrected by when pods waited for devices"
    )
    return structs.replace(shifted_chassis(seen, best), notes=(*seen.notes, note))


def _meet(moves: Sequence[float], pods: Sequence[PodHistory]) -> bool:
    """Return whether a move lies within the time of which the pods' own dates speak."""
    dates = [t for pod in pods for t in (pod.created, pod.bound, pod.started, pod.ended, pod.deleted) if t is not None]
    return any(min(dates) - _APART_S <= t <= max(dates) + _APART_S for t in moves)


def shifted_chassis(seen: ClusterObservations, offset: float) -> ClusterObservations:
    """Return the chassis' dates that much later."""
    return structs.replace(
        seen,
        readings=tuple(_later(seen.readings, offset)),
        lost=tuple(_later(seen.lost, offset)),
        operations=tuple(_later(seen.operations, offset)),
    )


def server_offset(differences: Sequence[float]) -> float:
    """Return what to add to this machine's time for the API server's: ``differences`` are those of objects that were
    seen as they were made, ours less theirs. Dates of objects are whole seconds."""
    if not differences:
        return 0.0
    found = 0.5 - median(differences)
    return found if abs(found) > NOTICED_S else 0.0


def _later(rows: Iterable[TableReading | LostReading | SeenOperation], offset: float) -> Iterable[object]:
    return (each if each.at is None else structs.replace(each, at=each.at + offset) for each in rows)
