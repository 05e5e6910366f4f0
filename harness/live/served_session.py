"""What the server of a session asks: a cluster's session answers all of it, a proxy's what there is of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from mews.harness.journal import Journal
from mews.harness.live.standing import StandingFault
from mews.harness.live.step_answer import StepAnswer
from mews.harness.ports.cluster import MeasuresView


class AsDict(Protocol):
    """What is shown as a JSON object."""

    def as_dict(self) -> dict[str, Any]:
        """Return the object."""
        ...


class ServedSession(Protocol):
    """``mews.harness.live.session.LiveSession`` says what each of it is; ValueError, in one line, says what there is
    not."""

    name: str

    @property
    def journal(self) -> Journal:
        """Its timeline."""
        ...

    @property
    def measures(self) -> MeasuresView:
        """What it serves to Prometheus."""
        ...

    async def perform(self, given: Mapping[str, Any]) -> StepAnswer:
        """Do one step."""
        ...

    async def snapshot(self, name: str) -> dict[str, Any]:
        """Return all of it, to be restored."""
        ...

    async def restore(self, document: Any) -> list[str]:
        """Make it so; what is not as it was."""
        ...

    def go_on(self) -> None:
        """Let time pass again."""
        ...

    async def explain(self, namespace: str, name: str) -> AsDict:
        """Return why a pod waits."""
        ...

    def record(self, name: str) -> str:
        """Return a scenario of what was done."""
        ...

    async def judged(self) -> AsDict:
        """Return what the invariants say."""
        ...

    async def hardware(self) -> dict[str, Any]:
        """Tables and hosts."""
        ...

    async def status(self) -> dict[str, Any]:
        """Return what is up, down and wrong."""
        ...

    async def faults(self) -> list[StandingFault]:
        """Return those that were added and not cleared."""
        ...

    def about(self) -> dict[str, Any]:
        """Return what it is, and what can be done to it."""
        ...
