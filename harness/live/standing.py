"""What stands open at a moment of a journal: faults, components that are down, operations under way, lies told.

The journal of a session that stays up is remembered in part; this is what of the forgotten part still matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from mews.kube.system.journal import Line

_LIES_KEPT = 20


class StandingFault(Struct, frozen=True):
    """A fault that was added and not cleared; ``owner`` is ``chassis/A`` or ``host/host-1``, ``t`` when it came, in
    seconds of the journal, ``fired`` how often it has struck, ``left`` how often it may strike yet (None: no limit),
    ``device`` the one that it is about. It has ``ended`` where it may strike no more."""

    owner: str
    number: str
    kind: str
    t: float
    fired: int = 0
    left: int | None = None
    device: str | None = None
    expired: bool = False

    @property
    def ended(self) -> bool:
        """Whether it has struck as often as it may, or its time is over."""
        return self.expired or self.left == 0

    def seen(self, listed: Mapping[str, Any]) -> StandingFault:
        """Return the same with what the hardware says of it now."""
        return replace(
            self,
            fired=int(listed.get("fired", self.fired)),
            left=listed.get("left", self.left),
            device=listed.get("device") or self.device,
            expired=bool(listed.get("ended", self.expired)),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return them as the session's server shows it."""
        return {
            "owner": self.owner,
            "fault": self.number,
            "kind": self.kind,
            "t": round(self.t, 3),
            "fired": self.fired,
            "count": None if self.left is None else self.left + self.fired,
            "left": self.left,
            "device": self.device,
            "since": round(self.t, 3),
            "ended": self.ended,
        }


class StandingTroubles(Struct):
    """Given each line in its order (``take``). ``down``: component -> the line by which it ended; ``operations``:
    (chassis, device) -> the line by which one began; ``lies``: the last answers of chassis that were not true."""

    faults: dict[tuple[str, str], StandingFault] = field(default_factory=dict)
    down: dict[str, Line] = field(default_factory=dict)
    operations: dict[tuple[str, str], Line] = field(default_factory=dict)
    lies: list[Line] = field(default_factory=list)

    def take(self, line: Line) -> None:
        """One more line."""
        match line.layer:
            case "component":
                self._component(line)
            case "fault":
                self._fault(line)
            case "chassis":
                self._chassis(line)

    def _component(self, line: Line) -> None:
        if line.event in ("killed", "crashed"):
            self.down[line.actor] = line
        elif line.event == "started":
            self.down.pop(line.actor, None)

    def _fault(self, line: Line) -> None:
        key = (line.actor, str(line.fields.get("fault", "")))
        known = self.faults.get(key)
        if line.event == "cleared":
            self.faults.pop(key, None)
        elif line.event == "added":
            self.faults[key] = StandingFault(*key, str(line.fields.get("kind", "")), line.t)
        elif line.event == "fired" and known is not None:
            left = line.fields.get("left", None if known.left is None else max(known.left - 1, 0))
            device = line.fields.get("gpuid") or line.fields.get("device") or known.device
            self.faults[key] = replace(known, fired=known.fired + 1, left=left, device=device)

    def _chassis(self, line: Line) -> None:
        device = str(line.fields.get("device", ""))
        if line.event == "table":
            self.operations.clear()
        elif line.event in ("attach-begun", "detach-begun"):
            self.operations[line.actor, device] = line
        elif line.event == "operation-finished":
            self.operations.pop((line.actor, device), None)
            if line.fields.get("answer") in ("true", "false") and line.fields["answer"] != _word(line):
                self.lies = [*self.lies, line][-_LIES_KEPT:]


def _word(line: Line) -> str:
    return str(bool(line.fields.get("truth"))).lower()
