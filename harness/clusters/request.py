"""What is asked of a backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from mews.harness.run_context import RunContext, begin_run

if TYPE_CHECKING:
    from mews.harness.clusters.session import ClusterSession
    from mews.harness.options import RunOptions
    from mews.harness.scenario.model import Scenario


class ClusterRequest(Struct, frozen=True):
    """A running cluster for a scenario, as the user's options say; ``dialect`` is the one that was settled on.

    ``session`` holds what scenarios share; without one, what can be started for a single scenario is.
    """

    scenario: Scenario
    options: RunOptions
    seed: int
    dialect: str
    session: ClusterSession | None = None

    def begin(self) -> RunContext:
        """Return the run's context, made once: when all that comes before the run's own time is done."""
        return begin_run(self.options, seed=self.seed, dialect=self.dialect)

    def needed_session(self) -> ClusterSession:
        """Return the session, for a backend that cannot do without."""
        assert self.session is not None, "what a real cluster gets is shared by scenarios: its owner ends it"
        return self.session
