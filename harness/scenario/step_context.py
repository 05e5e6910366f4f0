"""What the steps and checks of one run share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mews.harness.ports.cluster import Cluster
from mews.harness.scenario.brought import BroughtPrograms
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.model import Scenario

if TYPE_CHECKING:
    from mews.harness.scenario.driver import Driver


class Finding(Struct, frozen=True):
    """What a look at the world found: whether the expectation holds, what it was, what is there instead.

    ``about`` names the things that it is about (``pod/default/a``), so that related events can be shown. ``line``: the
    number of the journal line that must not be there, or that made what is there, where that is known.
    """

    holds: bool
    awaited: str
    seen: str = ""
    about: tuple[str, ...] = ()
    line: int | None = None


def all_of(findings: list[Finding]) -> Finding:
    """Several expectations as one: the first that does not hold speaks for all."""
    for finding in findings:
        if not finding.holds:
            return finding
    awaited = " and ".join(finding.awaited for finding in findings)
    return Finding(True, awaited, about=tuple(thing for finding in findings for thing in finding.about))


@dataclass(slots=True)
class StepContext:
    """One run: ``first_line`` is the journal's length as it began, ``marks`` the same for each named step, ``held``
    the devices per container that a check of ``gpus`` last found, by the pod's uid; ``deadline_s`` (loop seconds) ends
    the whole of it. ``outputs`` is what steps gave out, by name. ``field_manager`` is the name under which steps write
    objects; ``brought`` are the user's programs in the stack."""

    scenario: Scenario
    cluster: Cluster
    deadline_s: float
    first_line: int = 0
    marks: dict[str, int] = field(default_factory=dict)
    held: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    driver: Driver | None = None
    field_manager: str = "mews"
    brought: BroughtPrograms = field(init=False)

    def __post_init__(self) -> None:
        self.brought = BroughtPrograms(self.scenario.stack, self.cluster.journal)

    def pooled_resource(self, named: str | None) -> str:
        """Return the resource that an expectation is about: the one it names, else what the stack pools.

        Raises ScenarioError where neither is.
        """
        pooled = self.scenario.stack.pooled
        if named is None and pooled is None:
            raise ScenarioError("resource: must be named: the stack has no system that pools devices")
        return named or (pooled.resource if pooled is not None else "")

    def remaining_s(self, wanted_s: float) -> float:
        """Return a step's time limit within that of the scenario, in loop seconds."""
        return max(0.0, min(wanted_s, self.deadline_s - asyncio.get_running_loop().time()))
