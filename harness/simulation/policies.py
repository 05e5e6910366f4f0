"""What ``mews simulate --policy`` may name: baselines of our own, and what systems declare."""

from __future__ import annotations

import random
from collections.abc import Mapping

from mews.harness.errors import BadInputError
from mews.harness.simulation.placers import DefaultPlacer, PackedPlacer
from mews.harness.systems import all_trace_policies
from mews.kube.system.simulation import JobPlacer, SimulatedCluster, TracePolicy
from mews.names import must_be

FCFS, BACKFILL, DEFAULT = "fcfs", "backfill", "default"


def _packed(cluster: SimulatedCluster, rng: random.Random, options: Mapping[str, str]) -> JobPlacer:
    return PackedPlacer(cluster)


def _default(cluster: SimulatedCluster, rng: random.Random, options: Mapping[str, str]) -> JobPlacer:
    return DefaultPlacer(cluster, rng)


BASELINES: Mapping[str, TracePolicy] = {
    FCFS: TracePolicy(FCFS, "fixed nodes, best fit, strictly first come, first served", placer=_packed),
    BACKFILL: TracePolicy(BACKFILL, "fixed nodes, best fit, EASY backfilling", placer=_packed),
    DEFAULT: TracePolicy(DEFAULT, "fixed nodes, the default kube-scheduler's scores", placer=_default),
}
ORDER_OF: Mapping[str, str] = {FCFS: "fcfs", BACKFILL: "backfill"}
"""The order that a baseline's name says; others have the one that is asked for."""


def known_policies() -> dict[str, TracePolicy]:
    """Return all, by name."""
    return {**BASELINES, **all_trace_policies()}


def find_policy(name: str) -> TracePolicy:
    """Return the policy of that name; no system is loaded for a baseline.

    Raises BadInputError naming those there are.
    """
    found = BASELINES.get(name) or all_trace_policies().get(name)
    if found is None:
        raise BadInputError(f"--policy {name}: {must_be(name, known_policies())}")
    return found
