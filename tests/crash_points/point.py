"""What happens to a scenario, and when: crashes and faults at lines of its journal."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mews.harness.journal import Line

DELAYS_S = (0.0, 45.0)
"""How long a crashed component stays away: not at all, and longer than any of its leases is young."""
DRAWN_S = (0.0, 1.0, 10.0, 45.0)
"""What one delay for each point is drawn from."""

FAULTS: dict[str, dict[str, object]] = {
    "slow-attach": {"kind": "slow-operation", "operation": "attach", "count": 2, "extra_s": 20.0},
    "lying-attach": {"kind": "lying-result", "operation": "attach", "count": 2},
    "lying-detach": {"kind": "lying-result", "operation": "detach", "count": 2},
    "dropped-attach": {"kind": "dropped-connection", "operation": "attach", "when": "after"},
    "dropped-detach": {"kind": "dropped-connection", "operation": "detach", "when": "before"},
    "dropped-reads": {"kind": "dropped-connection", "operation": "read", "count": 5},
    "partial-lists": {"kind": "partial-list", "count": 5},
    "stale-lists": {"kind": "stale-list", "count": 5},
    "http-error": {"kind": "http-error", "count": 2},
    "timeout-attach": {"kind": "timeout", "operation": "attach"},
    "timeout-detach": {"kind": "timeout", "operation": "detach"},
    "half-applied-attach": {"kind": "half-applied-attach", "count": 1},
    "management-reboot": {"kind": "management-reboot", "down_s": 60},
    "events-out-of-order": {"kind": "events-out-of-order", "count": 2},
}
"""Faults that pass by themselves: after them, too, everything must come to its end."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something happens while the journal writes line number ``line``, counted from the incident before: component
    ``what`` crashes and is started ``after_s`` later, or (None) the fault ``what`` is played on every chassis."""

    line: int
    what: str
    after_s: float | None = None

    def __str__(self) -> str:
        return f"{self.line}:{self.what}" + ("" if self.after_s is None else f":{self.after_s:g}")


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """A scenario with the incidents that befall it. As text, ``demo 57:reconfig-manager:45 12:timeout-attach``."""

    scenario: str
    incidents: tuple[Incident, ...]

    def __str__(self) -> str:
        return " ".join((self.scenario, *map(str, self.incidents)))

    @classmethod
    def parse(cls, text: str) -> CrashPoint:
        """The point of such a text.

        Raises ValueError saying what is allowed.
        """
        scenario, *given = text.split()
        return cls(scenario, tuple(_incident(each) for each in given))


def _incident(text: str) -> Incident:
    line, *rest = text.split(":")
    if not line.isdigit() or len(rest) not in (1, 2):
        raise ValueError(f"{text!r}: must be LINE:COMPONENT:SECONDS or LINE:FAULT")
    if len(rest) == 1 and rest[0] not in FAULTS:
        raise ValueError(f"{text!r}: {rest[0]!r}: must be COMPONENT:SECONDS or one of {', '.join(FAULTS)}")
    return Incident(int(line), rest[0], float(rest[1]) if len(rest) == 2 else None)


def single_points(scenario: str, lines: Sequence[Line], components: Sequence[str]) -> Iterator[CrashPoint]:
    """Each component at each of these lines, away for each delay."""
    for line in lines:
        for component in components:
            for after_s in DELAYS_S:
                yield CrashPoint(scenario, (Incident(line.number, component, after_s),))


def once_each(scenario: str, lines: Sequence[Line], components: Sequence[str], seed: int) -> Iterator[CrashPoint]:
    """Each component at each of these lines, away for a delay drawn by seed."""
    for line in lines:
        for component in components:
            after_s = random.Random(f"{seed}/{scenario}/{line.number}/{component}").choice(DRAWN_S)
            yield CrashPoint(scenario, (Incident(line.number, component, after_s),))


def pair(scenario: str, lines: Sequence[Line], components: Sequence[str], rng: random.Random) -> CrashPoint:
    """Two crashes with a fault of the chassis between them: the first at one of these lines, what follows soon after,
    as the rest of the journal is another one from there on."""
    first = Incident(rng.choice(lines).number, rng.choice(components), rng.choice(DELAYS_S))
    fault = Incident(rng.randint(1, 10), rng.choice(sorted(FAULTS)))
    second = Incident(rng.randint(1, 10), rng.choice(components), rng.choice(DELAYS_S))
    return CrashPoint(scenario, (first, fault, second))
