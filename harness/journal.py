"""One time line over chassis, kubelet, API and scheduler.

A line is ``{"t", "layer", "actor", "event", …}``: ``t`` in seconds from the start, ``layer`` one of ``LAYERS``.
API lines come from watches and hardware lines from the chassis' event feed, in all four ways to run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

LAYERS = ("chassis", "host", "kubelet", "api", "scheduler", "component", "fault", "step", "invariant")


@dataclass(frozen=True, slots=True)
class Line:
    """One event. ``fields`` hold what belongs to it, JSON-serialisable, in a fixed order."""

    number: int
    t: float
    layer: str
    actor: str
    event: str
    fields: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The line as it is written out; t to the microsecond."""
        return {"t": round(self.t, 6), "layer": self.layer, "actor": self.actor, "event": self.event, **self.fields}

    def as_json(self) -> str:
        """The line as JSON, byte for byte the same for the same content."""
        return json.dumps(self.as_dict(), separators=(",", ":"), ensure_ascii=False)


class Journal:
    """Append-only; listeners hear each line as it is written and must not wait."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self._lines: list[Line] = []
        self._listeners: list[Callable[[Line], None]] = []

    def write(self, layer: str, actor: str, event: str, /, **fields: Any) -> Line:
        """Append one line, stamped with the elapsed seconds.

        Raises ValueError for a layer that is not in ``LAYERS``.
        """
        if layer not in LAYERS:
            raise ValueError(f"layer {layer!r}: must be one of {', '.join(LAYERS)}")
        line = Line(len(self._lines), self._elapsed(), layer, actor, event, fields)
        self._lines.append(line)
        for listener in list(self._listeners):
            listener(line)
        return line

    def listen(self, listener: Callable[[Line], None]) -> Callable[[], None]:
        """Hear every later line; call the result to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def lines(self, since: int = 0) -> list[Line]:
        """All lines from that number on."""
        return self._lines[since:]

    def as_jsonl(self) -> str:
        """All lines, one JSON object each."""
        return "".join(line.as_json() + "\n" for line in self._lines)
