"""Clusters behind one narrow Cluster protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from mews.dialects import DEFAULT
from mews.harness.backends import backend_of, load
from mews.harness.options import RunOptions

if TYPE_CHECKING:
    from mews.harness.clusters.session import ClusterSession
    from mews.harness.ports.cluster import ReachableCluster
    from mews.harness.scenario.model import Scenario


async def open_cluster(
    scenario: Scenario,
    options: RunOptions | None = None,
    *,
    seed: int = 1,
    session: ClusterSession | None = None,
) -> ReachableCluster:
    """Return a running cluster for a scenario, on the running loop; close it.

    ``session`` is what a cluster may find running from the one before, and leave; without it each starts its own.

    Raises ScenarioError for hardware or options that cannot be read, RequirementError where this machine lacks
    something.
    """
    from mews.harness.clusters.request import ClusterRequest

    options = options or RunOptions()
    backend = backend_of(options.cluster)
    backend.check_available()
    dialect = options.dialect or scenario.stack.dialect or DEFAULT
    request = ClusterRequest(scenario, options, seed, dialect, session)
    opener: Callable[[ClusterRequest], Awaitable[ReachableCluster]] = load(backend.opener)
    return await opener(request)
