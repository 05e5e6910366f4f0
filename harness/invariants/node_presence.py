"""Whether a node's kubelet is there to act: what keeps it away, and since when nothing does. A reducer over lines."""

from __future__ import annotations

from msgspec import Struct, field

from mews.harness.journal import Line

POWER, KUBELET, READY, NODE = "power", "kubelet", "Ready", "node"
"""Why it is away: its host is off, it is down itself, it reports nothing, its Node is gone."""

_SERVERS = "kube-"
"""Components of the control plane are called so."""

PRESENCE_EVENTS = frozenset(
    {
        *(("api", event) for event in ("created", "deleted", "condition")),
        *(("component", event) for event in ("started", "killed", "crashed")),
        ("chassis", "host-power"),
    }
)
"""The lines that ``NodePresence.take`` looks at."""


class _Place(Struct):
    away: set[str] = field(default_factory=set)
    back_s: float = 0.0


class NodePresence:
    """Which nodes of a run are there; one that was never heard of is present."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    def take(self, line: Line) -> str:
        """Take in one line; the node of which it says something, "" for none, "*" for all."""
        kind, _, name = line.actor.partition("/")
        fields, event = line.fields, line.event
        if kind == "node" and event in ("created", "deleted"):
            return self._set(name, NODE, event == "deleted", line.t)
        if kind == "node" and event == "condition" and fields["type"] == READY:
            return self._set(name, READY, fields["status"] != "True", line.t)
        if kind == KUBELET and line.layer == "component":
            return self._set(name, KUBELET, event != "started", line.t)
        if event == "host-power":
            return self._set(str(fields["host"]), POWER, not fields["on"], line.t)
        if event == "started" and kind.startswith(_SERVERS):
            for place in self._places.values():
                place.back_s = line.t
            return "*"
        return ""

    def is_away(self, node: str) -> bool:
        """Return whether nobody acts for the node."""
        place = self._places.get(node)
        return place is not None and bool(place.away)

    def back_s(self, node: str) -> float:
        """Since when somebody acts for it without a break."""
        place = self._places.get(node)
        return place.back_s if place is not None else 0.0

    def _set(self, node: str, why: str, is_away: bool, t: float) -> str:
        place = self._places.setdefault(node, _Place())
        if is_away:
            place.away.add(why)
        elif why in place.away:
            place.away.discard(why)
            place.back_s = t
        return node
