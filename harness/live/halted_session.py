"""The session of a run in virtual time that stands still: all of it can be read, nothing be done to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from msgspec import Struct

from mews.harness.journal import Journal, Line
from mews.harness.live.explanation import PodExplanation
from mews.harness.live.session import READING, LiveSession, step_of
from mews.harness.live.standing import StandingFault
from mews.harness.live.step_answer import StepAnswer
from mews.harness.ports.cluster import MeasuresView, ReachableCluster
from mews.harness.scenario.model import Scenario


class HaltedVerdict(Struct, frozen=True):
    """``violations`` are the lines of the journal so far; ``t`` is when it stopped, in seconds."""

    violations: tuple[Line, ...]
    t: float

    def as_dict(self) -> dict[str, Any]:
        """Return them as that of a session that goes on, but that nothing is said of what waits."""
        found = [{"invariant": int(line.actor), "t": line.t, **line.fields} for line in self.violations]
        first = f"invariant {found[0]['invariant']}: {found[0]['what']}" if found else "a stopped run, so far"
        return {
            "verdict": "failed" if found else "passed",
            "reason": f"{first} (and {len(found) - 1} more)" if len(found) > 1 else first,
            "violations": found,
            "waiting": [],
            "seconds": {"virtual": round(self.t, 3)},
        }


class HaltedSession:
    """``at`` is the line at which it stopped, ``why`` the reply to every change; ``go_on`` lets it
    continue."""

    def __init__(
        self, name: str, scenario: Scenario, cluster: ReachableCluster, *, at: Line, why: str, go_on: Callable[[], None]
    ) -> None:
        self.name = name
        self.journal: Journal = cluster.journal
        self._cluster = cluster
        self._at = at
        self._why = why
        self._live = LiveSession(name, scenario, cluster)
        self.go_on = go_on

    @property
    def measures(self) -> MeasuresView:
        """What it serves to Prometheus."""
        return self._cluster.measures

    async def perform(self, given: Mapping[str, Any]) -> StepAnswer:
        """Do a step that only reads.

        Raises ValueError for any other.
        """
        if step_of(given).action not in READING:
            self._refuse()
        return await self._live.perform(given)

    async def status(self) -> dict[str, Any]:
        """Return what is up, down and wrong."""
        return {**await self._live.status(), "stopped_at": {"line": self._at.number, "t": self._at.t}}

    async def explain(self, namespace: str, name: str) -> PodExplanation:
        """Return why a pod waits."""
        return await self._live.explain(namespace, name)

    async def judged(self) -> HaltedVerdict:
        """Return what the invariants have said so far."""
        return HaltedVerdict(tuple(self.journal.find("invariant", "violated")), self.journal.elapsed_s)

    async def hardware(self) -> dict[str, Any]:
        """Tables and hosts."""
        return await self._live.hardware()

    async def faults(self) -> list[StandingFault]:
        """Return those that were added and not cleared."""
        return await self._live.faults()

    def about(self) -> dict[str, Any]:
        """Return what it is, and what can be done to it."""
        return self._live.about()

    async def snapshot(self, name: str) -> dict[str, Any]:
        """Return no snapshot: it would be one of a cluster that goes on."""
        self._refuse()

    async def restore(self, document: Any) -> list[str]:
        """Nothing is changed."""
        self._refuse()

    def record(self, name: str) -> str:
        """Return no recording: the scenario's file is there."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ValueError(self._why)
