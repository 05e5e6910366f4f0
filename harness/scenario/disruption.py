"""A step that runs during the others, as a file has it."""

# No annotations from __future__: pydantic would have to read each of them from its text again.
from typing import ClassVar, Self

from pydantic import Field, model_validator

from mews.harness.scenario.actions import Step
from mews.harness.scenario.quantity import Seconds


class Disruption(Step):
    """A step that runs during the others: at a time, or as the journal writes a line."""

    ON_ANY: ClassVar[tuple[str, ...]] = (*Step.ON_ANY, "at", "since", "line")

    at: Seconds | None = Field(default=None, description="emulated seconds after since begins; default: 0")
    since: str | None = Field(default=None, description="the name of a step; default: the first step")
    line: int | None = Field(
        default=None, ge=0, description="instead of at: as the journal writes the line of that number; virtual time"
    )

    @model_validator(mode="after")
    def _one_moment(self) -> Self:
        if self.line is not None and (self.at is not None or self.since is not None):
            raise ValueError("line: replaces at and since")
        if self.outputs:
            raise ValueError("outputs: a disruption has none: no later step waits for it")
        if self.action == "workload":
            raise ValueError("workload: belongs among steps")
        return self

    @property
    def component(self) -> str | None:
        """The component that it kills."""
        killing = self.kill or self.restart
        return None if killing is None else killing.component
