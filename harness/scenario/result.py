"""What a run of a scenario came to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

Verdict = Literal["passed", "failed", "error", "skipped"]


class Result(Struct, frozen=True):
    """One scenario with one seed. ``reason`` is one line, ``report`` several; virtual seconds are emulated ones (None
    in wall-clock time), wall ones those of this machine (None in a sweep, whose results are the same
    everywhere); ``expected`` has the values that metrics are held against (measured ones); ``violations`` are
    those of the invariants, as JSON objects, and ``known`` those of laws that a published system breaks by design, for
    which a run does not fail; ``failure`` is the step that did not come out, with what was awaited, what
    was seen last, the journal line that made it, and the chain of what it waits for (of a run that broke off, its last
    line alone); ``evidence`` what the steps of ``catch`` came to, by name; ``artefacts`` is the folder that was
    written on failure; ``ignored`` are keys of the scenario that this way to run does not honour, with the reason."""

    scenario: str
    path: str
    cluster: str
    time: str
    seed: int
    verdict: Verdict
    reason: str = ""
    virtual_s: float | None = None
    wall_s: float | None = 0.0
    metrics: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, float] = field(default_factory=dict)
    violations: tuple[Mapping[str, Any], ...] = ()
    known: tuple[Mapping[str, Any], ...] = ()
    journal: str | None = None
    report: str = ""
    artefacts: Path | None = None
    failure: Mapping[str, Any] | None = None
    evidence: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[Mapping[str, str], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the object of ``--json``."""
        return {
            "scenario": self.scenario,
            "path": self.path,
            "cluster": self.cluster,
            "time": self.time,
            "seed": self.seed,
            "verdict": self.verdict,
            "reason": self.reason,
            "seconds": {"virtual": self.virtual_s, "wall": None if self.wall_s is None else round(self.wall_s, 3)},
            "metrics": dict(self.metrics),
            "expected": dict(self.expected),
            "violations": [dict(violation) for violation in self.violations],
            "known": [dict(violation) for violation in self.known],
            "failure": None if self.failure is None else dict(self.failure),
            "journal": self.journal,
            "artefacts": str(self.artefacts) if self.artefacts else None,
            "ignored": [dict(each) for each in self.ignored],
        }


class StepProgress(Struct, frozen=True):
    """A step of a run as it begins (``verdict`` None) and ends; ``t`` in seconds from the start."""

    scenario: str
    step: int
    steps: int
    do: str
    name: str
    t: float
    verdict: Literal["passed", "failed"] | None = None
    reason: str = ""


Observer = Callable[[StepProgress], None]
"""Hears of each step as it begins and ends; must not wait."""
