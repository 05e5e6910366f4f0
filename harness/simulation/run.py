"""One trace played by one policy, from the file to the numbers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from mews.emulator.hardware.inventory import Hardware
from mews.harness.errors import BadInputError
from mews.harness.simulation.chassis_moves import ChassisMoves
from mews.harness.simulation.clusters import cluster_of
from mews.harness.simulation.columns import Defaults, TraceFormat
from mews.harness.simulation.costs import KubeletCosts
from mews.harness.simulation.elastic import ElasticEngine
from mews.harness.simulation.engine import StuckTraceError, SubmissionGate, TraceEngine
from mews.harness.simulation.lines import WINDOW, AnyLine, BackfillLine, FcfsLine, JobLine, KubeLine
from mews.harness.simulation.placers import FixedPlacer
from mews.harness.simulation.policies import ORDER_OF
from mews.harness.simulation.statistics import JobRow, TraceStatistics
from mews.harness.simulation.trace_file import TraceFile
from mews.harness.systems import find_profile
from mews.kube.system.simulation import JobPlacer, SimulatedCluster, SimulatedJob, TracePolicy

NO_COSTS, KUBELET = "none", "kubelet"
"""What ``costs`` may be beside the name of a testbed's profile."""
_READS_REST_S = 1.0
"""A node's device manager rests so long between two readings (contract kubecomp.md section 2)."""


class SimulationPlan(Struct, frozen=True):
    """What is played on what. ``costs``: what pods cost on their nodes; ``order`` None: as the policy's name says, else
    strictly first come, first served. ``options`` are the policy's own. ``ready_first``: the first job comes as soon as
    all nodes have told of their devices."""

    trace: Path
    form: TraceFormat
    hardware: Hardware
    defaults: Defaults = field(default_factory=Defaults)
    select: Mapping[str, str] = field(default_factory=dict)
    order: str | None = None
    retry: str = "immediate"
    costs: str = NO_COSTS
    gate: SubmissionGate | None = None
    window: int = WINDOW
    seed: int = 0
    options: Mapping[str, str] = field(default_factory=dict)
    ready_first: bool = False

    def open(self) -> TraceFile:
        """Return the trace.

        Raises BadInputError.
        """
        return TraceFile(self.trace, self.form, self.defaults, self.select)


class TraceOutcome(Struct, frozen=True):
    """What came of it: metrics as ``mews run`` has them, and what plots are drawn from."""

    policy: str
    order: str
    metrics: Mapping[str, Any]
    statistics: TraceStatistics
    seconds: float


def simulate(
    plan: SimulationPlan,
    policy: TracePolicy,
    trace: TraceFile,
    *,
    on_job: Callable[[JobRow], None] | None = None,
    on_progress: Callable[[int], None] = lambda jobs: None,
) -> TraceOutcome:
    """Play the whole trace, which the plan opened; several policies may read the same one after another.

    Raises BadInputError.
    """
    trace.scan()
    began_s = time.perf_counter()
    costs = costs_of(plan)
    usable = None if costs is None else _usable(costs)
    moves = ChassisMoves(plan.hardware, plan.seed, usable) if policy.moves else None
    cluster = cluster_of(plan.hardware, moves)
    statistics = TraceStatistics(sum(node.cpu_milli for node in cluster.nodes))
    rng = random.Random(f"{plan.seed}/simulate/{policy.name}")
    try:
        if policy.elastic is not None:
            scheduler = policy.elastic(cluster, rng, plan.options)
            counted: Any = scheduler
            engine = ElasticEngine(scheduler, statistics, on_job=on_job, on_progress=on_progress)
            engine.run(trace.jobs(whole=True))
        else:
            counted = _placed(plan, policy, cluster, rng, statistics, trace.jobs(), costs, on_job, on_progress)
    except (ValueError, StuckTraceError) as error:
        raise BadInputError(
            f"{plan.trace}: {error}" if isinstance(error, StuckTraceError) else f"--set {error}"
        ) from error
    seconds = time.perf_counter() - began_s
    metrics = {
        **statistics.metrics(),
        "moved_gpus": counted.moved,
        "reconfigurations": counted.reconfigurations,
        "left_out": trace.left_out,
        "jobs_per_s": round(statistics.jobs / seconds, 1) if seconds else 0.0,
    }
    order = "elastic" if policy.elastic is not None else order_of(plan, policy)
    return TraceOutcome(policy.name, order, metrics, statistics, seconds)


def _placed(
    plan: SimulationPlan,
    policy: TracePolicy,
    cluster: SimulatedCluster,
    rng: random.Random,
    statistics: TraceStatistics,
    jobs: Iterator[SimulatedJob],
    costs: KubeletCosts | None,
    on_job: Callable[[JobRow], None] | None,
    on_progress: Callable[[int], None],
) -> JobPlacer:
    assert policy.placer is not None, f"{policy.name} has neither placer nor elastic"
    placer = policy.placer(cluster, rng, plan.options)
    engine = TraceEngine(
        placer,
        statistics,
        costs=costs,
        gate=plan.gate,
        fractions=policy.fractions,
        on_job=on_job,
        on_progress=on_progress,
    )
    engine.run(jobs, line_of(plan, policy, placer, engine))
    return placer


def order_of(plan: SimulationPlan, policy: TracePolicy) -> str:
    """Return who goes first."""
    return policy.order(plan.options) or plan.order or ORDER_OF.get(policy.name, "fcfs")


def line_of(plan: SimulationPlan, policy: TracePolicy, placer: JobPlacer, engine: TraceEngine) -> JobLine:
    """Return the line that the plan asks for.

    Raises BadInputError for one that the policy cannot have.
    """
    order, named = order_of(plan, policy), ORDER_OF.get(policy.name)
    if placer.gives_up and plan.retry != "kube":
        given = ", ".join(f"{name}={value}" for name, value in plan.options.items())
        raise BadInputError(
            f"--retry {plan.retry}: --policy {policy.name} with {given} gives up jobs that waited for devices; only "
            "kube-scheduler's queue retries them: give --retry kube"
        )
    if named is not None and order != named:
        raise BadInputError(f"--order {order}: --policy {policy.name} says {named}")
    if order == "backfill":
        if not isinstance(placer, FixedPlacer):
            raise BadInputError(f"--order backfill: with fixed nodes only, not with --policy {policy.name}")
        if plan.retry == "kube":
            raise BadInputError("--retry kube: kube-scheduler's queue has no reservations: not with --order backfill")
        return BackfillLine(placer, engine.start, engine.ends, plan.window)
    if plan.retry == "kube":
        return KubeLine(placer, engine.start, strict=order == "fcfs", window=plan.window)
    if order == "any":
        return AnyLine(placer, engine.start, plan.window)
    return FcfsLine(placer, engine.start)


def costs_of(plan: SimulationPlan) -> KubeletCosts | None:
    """Return what pods cost.

    Raises BadInputError.
    """
    if plan.costs == NO_COSTS:
        return None
    if plan.costs == KUBELET:
        return KubeletCosts(plan.seed, None, ready_first=plan.ready_first)
    try:
        return KubeletCosts(plan.seed, find_profile(plan.costs), ready_first=plan.ready_first)
    except LookupError as error:
        raise BadInputError(f"--costs {plan.costs}: must be {NO_COSTS}, {KUBELET}, or a {error.args[0]}") from None


def _usable(costs: KubeletCosts) -> Callable[[str, float, float], float]:
    return lambda node, attached_s, reading_s: costs.usable_s(node, attached_s, reading_s, _READS_REST_S)
