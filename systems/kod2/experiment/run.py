"""One cell of the experiment, scheduled in each of several ways: what is run, and what is kept of it. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from msgspec import Struct

from mews.kube.system.statistics import half_width
from mews.systems.kod2.experiment.cells import Assumptions, cluster, jobs_of
from mews.systems.kod2.experiment.default_scheduler import Scoring
from mews.systems.kod2.experiment.simulation import Costs, SimulationOutcome, TrainingSimulation
from mews.systems.kod2.model import Mode, Options


class Variant(Struct, frozen=True):
    """One way to schedule."""

    options: Options | None = None
    scoring: Scoring | None = None


STARVE_LIMITS_S = (10.0, 60.0, 120.0, 300.0, math.inf)

VARIANTS: dict[str, Variant] = {
    "kod2": Variant(Options()),
    "literal": Variant(Options(mode=Mode.LITERAL)),
    "random": Variant(scoring=Scoring.RANDOM),
    "default": Variant(scoring=Scoring.DEFAULT),
    "no-preemption": Variant(Options(preemption=False)),
    "no-scale-out": Variant(Options(scale_out=False)),
    "no-affinity": Variant(Options(affinity=False)),
    **{f"starve-{limit_s:g}": Variant(Options(starve_limit_s=limit_s)) for limit_s in STARVE_LIMITS_S},
}
"""random: any node that fits, as the paper says of the default scheduler; default: as kube-scheduler scores."""

GRID_S = 60.0
"""How finely the busy cores over time are kept."""


def simulate(
    model: str, batch: int, seed: int, variant: Variant, given: Assumptions, *, chance: random.Random | None = None
) -> SimulationOutcome:
    """Return one run of a cell. ``chance`` in place of the seed's decides what is left to it; the jobs are the
    seed's."""
    costs = Costs(deadline_s=given.deadline_s)
    chance = chance or random.Random(f"{seed}/{model}/{batch}")
    jobs = jobs_of(model, batch, seed, given)
    return TrainingSimulation(
        cluster(), jobs, options=variant.options, scoring=variant.scoring, costs=costs, rng=chance
    ).run()


def numbers_of(outcome: SimulationOutcome) -> dict[str, Any]:
    """Return what is kept of a run. ``jct_s`` is over completed jobs, ``jct_all_s`` counts dead ones with their time,
    too; ``end_s`` is when the last job ended, ``done_s`` when the last one that was completed did."""
    lives = outcome.lives.values()
    done = [life.jct_s for life in lives if life.jct_s is not None and not life.dead]
    every = [life.jct_s for life in lives if life.jct_s is not None]
    return {
        "jct_s": fmean(done) if done else None,
        "jct_all_s": fmean(every) if every else None,
        "dead": sum(life.dead for life in lives),
        "end_s": outcome.end_s,
        "done_s": max((life.ended_s for life in lives if life.ended_s is not None and not life.dead), default=None),
        "utilisation": outcome.utilisation(),
        "added": outcome.added,
        "removed": outcome.removed,
    }


def run_cell(task: tuple[str, int, int, tuple[str, ...], Assumptions]) -> dict[str, dict[str, Any]]:
    """Return all variants of one cell and seed: variant -> numbers. Baselines are also measured over the elastic run's
    time, and by how much later than that they end (``later_s``; their last completed job: ``done_later_s``); at batch
    64 the utilisation over time is kept."""
    model, batch, seed, names, given = task
    found: dict[str, dict[str, Any]] = {}
    span_s: float | None = None
    for name in names:
        outcome = simulate(model, batch, seed, VARIANTS[name], given)
        found[name] = numbers_of(outcome)
        span_s = outcome.end_s if span_s is None else span_s
        found[name]["utilisation_in_span"] = outcome.utilisation(span_s)
        found[name]["later_s"] = outcome.end_s - span_s
        done_s = found[name]["done_s"]
        found[name]["done_later_s"] = None if done_s is None else done_s - span_s
        if batch == 64 and name in ("kod2", "random", "default"):
            found[name]["busy"] = sampled(outcome)
    return found


def sampled(outcome: SimulationOutcome) -> list[float]:
    """Return the mean share of busy cores in each minute."""
    edges = range(int(outcome.end_s / GRID_S) + 2)
    totals = [outcome.utilisation(edge * GRID_S) * edge for edge in edges]
    return [round(after - before, 4) for before, after in pairwise(totals)]


def mean_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean over seeds of every number; None where no run has it."""
    keys = [key for key in rows[0] if key != "busy"]
    found: dict[str, Any] = {}
    for key in keys:
        values = [row[key] for row in rows if row[key] is not None]
        found[key] = fmean(values) if values else None
    if "busy" in rows[0]:
        length = max(len(row["busy"]) for row in rows)
        padded = [row["busy"] + [0.0] * (length - len(row["busy"])) for row in rows]
        found["busy"] = [round(fmean(column), 4) for column in zip(*padded, strict=True)]
    return found


def intervals_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Number + ``_ci`` -> half of the 95 % interval of its mean, None where there are fewer than two; ``seeds``: of so
    many runs."""
    found: dict[str, Any] = {"seeds": len(rows)}
    for key in _SURE:
        values = [row[key] for row in rows if row.get(key) is not None]
        found[f"{key}_ci"] = half_width(values) if len(values) > 1 else None
    return found


_SURE = ("jct_s", "jct_all_s", "dead", "end_s", "later_s", "done_later_s", "utilisation_in_span")


def reduction(ours: float | None, theirs: float | None) -> float:
    """Return it by which share ours is smaller; nan where there is nothing to compare with."""
    return 1.0 - ours / theirs if ours is not None and theirs else math.nan
