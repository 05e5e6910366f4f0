"""The lines of a run's journal, as systems read them and write them of their own kinds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from mews.kube.api.objects import Object


class Line(Struct, frozen=True):
    """One event of a run. ``fields`` hold what belongs to it, JSON-serialisable, in a fixed order; ``t`` is in seconds
    from the start. What layers, actors and events there are: ``mews.harness.journal``."""

    number: int
    t: float
    layer: str
    actor: str
    event: str
    fields: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the line as it is written out; t to the microsecond."""
        return {"t": round(self.t, 6), "layer": self.layer, "actor": self.actor, "event": self.event, **self.fields}

    def as_json(self) -> str:
        """Return the line as JSON, byte for byte the same for the same content."""
        return json.dumps(self.as_dict(), separators=(",", ":"), ensure_ascii=False)


def condition_changes(old: Object, new: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a ``condition`` event for each condition of an object's status whose status or reason is new."""
    before = {c["type"]: c for c in (old.get("status") or {}).get("conditions") or ()}
    for condition in (new.get("status") or {}).get("conditions") or ():
        known = before.get(condition["type"], {})
        now = {"type": condition["type"], "status": condition.get("status"), "reason": condition.get("reason", "")}
        if (known.get("status"), known.get("reason", "")) != (now["status"], now["reason"]):
            yield "condition", now
