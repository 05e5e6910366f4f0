"""What the agent and the controller write on a node, and read of each other. Pure.

``remediation.mews.dev/gpus`` is the agent's (``mews.kube.deviceplugin.remedies``)::

    {"seen": [12.5, 1], "mended": {UUID: 1},
     "gpus": {UUID: {"number": 2, "state": "broken", "cause": "XID 48", "since": 1767225600.0, "bdf": "0000:44:00.0",
                     "pods": ["the uid of a pod"], "reason": ""}}}

``remediation.mews.dev/work`` is the controller's: ``{"incidents": ["UUID/2"], "cordon": "ours", "reset": {UUID: 2}}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from mews.kube.api.objects import Object, annotations_of
from mews.kube.deviceplugin.remedies import GPUS, mended_gpus, read_gpus
from mews.systems.remediation.names import WORK


class IncidentState(StrEnum):
    """How far the repair of a broken GPU has come; one that was mended has no incident any more."""

    BROKEN = "broken"
    """Its pods have to go."""
    RESETTING = "resetting"
    FAILED = "failed"
    """No reset mends it: it stays withheld."""


class Incident(Struct, frozen=True):
    """A GPU that broke: the ``number`` of the time, why, when (unix s), where; uids of the pods that used it since."""

    number: int
    state: IncidentState
    cause: str
    since_s: float
    bdf: str
    pods: tuple[str, ...] = ()
    reason: str = ""


class NodeGpus(Struct, frozen=True):
    """The agent's word. ``seen``: the stamp of the last XID of the kernel log that it has taken in, and how many of
    that stamp; None before its first look."""

    seen: tuple[float, int] | None = None
    incidents: Mapping[str, Incident] = field(default_factory=dict)
    mended: Mapping[str, int] = field(default_factory=dict)

    @property
    def open(self) -> dict[str, Incident]:
        """Those for which something is to be done yet."""
        return {uuid: each for uuid, each in self.incidents.items() if each.state is not IncidentState.FAILED}


class Cordon(StrEnum):
    """Whose doing it is that no pod is scheduled to a node."""

    OURS = "ours"
    FOREIGN = "foreign"
    """It was cordoned before: it stays so."""
    BY_HAND = "by-hand"
    """Somebody took our cordon away: it does not come back for the same incidents."""
    NONE = "none"


class NodeWork(Struct, frozen=True):
    """The controller's word: which incidents it works on, and which resets may begin (UUID -> number)."""

    incidents: tuple[str, ...] = ()
    cordon: Cordon = Cordon.NONE
    reset: Mapping[str, int] = field(default_factory=dict)


def incident_key(uuid: str, number: int) -> str:
    """Return one incident in one word."""
    return f"{uuid}/{number}"


def node_gpus(node: Object | None) -> NodeGpus:
    """Return what the agent wrote; what cannot be read is as if it were not there."""
    incidents = {}
    for uuid, row in read_gpus(node, "gpus").items():
        try:
            incidents[uuid] = Incident(
                int(row["number"]),
                IncidentState(row["state"]),
                str(row["cause"]),
                float(row["since"]),
                str(row["bdf"]),
                tuple(map(str, row.get("pods", ()))),
                str(row.get("reason", "")),
            )
        except (KeyError, TypeError, ValueError):
            continue
    return NodeGpus(_seen(node), incidents, mended_gpus(node))


def _seen(node: Object | None) -> tuple[float, int] | None:
    try:
        stamp, count = json.loads(annotations_of(node or {"metadata": {}})[GPUS])["seen"]
        return float(stamp), int(count)
    except (KeyError, TypeError, ValueError):
        return None


def gpus_annotation(gpus: NodeGpus) -> dict[str, str]:
    """Return the annotation that says this."""
    rows = {uuid: _row(each) for uuid, each in gpus.incidents.items()}
    body = {"seen": list(gpus.seen or (0.0, 0)), "gpus": rows, "mended": dict(gpus.mended)}
    return {GPUS: _text(body)}


def _row(incident: Incident) -> dict[str, Any]:
    row: dict[str, Any] = {
        "number": incident.number,
        "state": incident.state.value,
        "cause": incident.cause,
        "since": round(incident.since_s, 3),
        "bdf": incident.bdf,
        "pods": list(incident.pods),
    }
    return {**row, "reason": incident.reason} if incident.reason else row


def node_work(node: Object | None) -> NodeWork | None:
    """Return what the controller wrote; None where it works on nothing there, or it cannot be read."""
    try:
        read = json.loads(annotations_of(node or {"metadata": {}})[WORK])
        reset = {str(uuid): int(number) for uuid, number in read["reset"].items()}
        return NodeWork(tuple(map(str, read["incidents"])), Cordon(read["cordon"]), reset)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def work_annotation(work: NodeWork | None) -> dict[str, str | None]:
    """Return the annotation that says this; None takes it away, in a merge patch."""
    if work is None:
        return {WORK: None}
    body = {"incidents": list(work.incidents), "cordon": work.cordon.value, "reset": dict(work.reset)}
    return {WORK: _text(body)}


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
