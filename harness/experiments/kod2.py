"""The experiment of the KOD2 paper, section 5, in virtual time through the operator's own policy.

``python -m mews.harness.experiments.kod2 [--seeds 30] [--json FILE] [--markdown FILE] [--plots DIR]``: 20 cells (4
models x 5 batch sizes) of 10 jobs, the elastic operator in both modes, two baselines, three ablations and a sweep of
the starvation limit, beside the paper's figures; and how much of it hangs on the two assumptions that matter most.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean
from typing import Any

from mews.harness.errors import Lacks
from mews.harness.experiments.kod2_cells import BATCHES, MODELS, Assumptions, cells, cluster, jobs_of
from mews.harness.experiments.kod2_report import markdown
from mews.harness.extras import check_installed, install
from mews.harness.simulator.training import Costs, Outcome, Pick, Simulation, pick_default, pick_random
from mews.systems.kod2.model import Mode, Options


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to schedule."""

    options: Options | None = None
    pick: Pick | None = None


STARVE_LIMITS_S = (10.0, 60.0, 120.0, 300.0, math.inf)

VARIANTS: dict[str, Variant] = {
    "kod2": Variant(Options()),
    "literal": Variant(Options(mode=Mode.LITERAL)),
    "random": Variant(pick=pick_random),
    "default": Variant(pick=pick_default),
    "no-preemption": Variant(Options(preemption=False)),
    "no-scale-out": Variant(Options(scale_out=False)),
    "no-affinity": Variant(Options(affinity=False)),
    **{f"starve-{limit_s:g}": Variant(Options(starve_limit_s=limit_s)) for limit_s in STARVE_LIMITS_S},
}
"""random: any node that fits, as the paper says of the default scheduler; default: as kube-scheduler scores."""

GRID_S = 60.0
"""How finely the busy cores over time are kept."""

SIZES: dict[str, tuple[int, ...]] = {"2-5": (2, 3, 4, 5), "3-6": (3, 4, 5, 6), "4-8": (4, 5, 6, 7, 8)}
DEADLINES_S = (3600.0, 7200.0, 10800.0)


def simulate(model: str, batch: int, seed: int, variant: Variant, given: Assumptions) -> Outcome:
    """One run of a cell."""
    costs = Costs(deadline_s=given.deadline_s)
    chance = random.Random(f"{seed}/{model}/{batch}")
    jobs = jobs_of(model, batch, seed, given)
    return Simulation(cluster(), jobs, options=variant.options, pick=variant.pick, costs=costs, rng=chance).run()


def numbers_of(outcome: Outcome) -> dict[str, Any]:
    """What is kept of a run. ``jct_s`` is over completed jobs, ``jct_all_s`` counts dead ones with their time, too."""
    lives = outcome.lives.values()
    done = [life.jct_s for life in lives if life.jct_s is not None and not life.dead]
    every = [life.jct_s for life in lives if life.jct_s is not None]
    return {
        "jct_s": fmean(done) if done else None,
        "jct_all_s": fmean(every) if every else None,
        "dead": sum(life.dead for life in lives),
        "end_s": outcome.end_s,
        "utilisation": outcome.utilisation(),
        "added": outcome.added,
        "removed": outcome.removed,
    }


def run_cell(task: tuple[str, int, int, tuple[str, ...], Assumptions]) -> dict[str, dict[str, Any]]:
    """All variants of one cell and seed: variant -> numbers. Baselines are also measured over the elastic run's time,
    and at batch 64 the utilisation over time is kept."""
    model, batch, seed, names, given = task
    found: dict[str, dict[str, Any]] = {}
    span_s: float | None = None
    for name in names:
        outcome = simulate(model, batch, seed, VARIANTS[name], given)
        found[name] = numbers_of(outcome)
        span_s = outcome.end_s if span_s is None else span_s
        found[name]["utilisation_in_span"] = outcome.utilisation(span_s)
        if batch == 64 and name in ("kod2", "random", "default"):
            found[name]["busy"] = _sampled(outcome)
    return found


def _sampled(outcome: Outcome) -> list[float]:
    """The mean share of busy cores in each minute."""
    edges = range(int(outcome.end_s / GRID_S) + 2)
    totals = [outcome.utilisation(edge * GRID_S) * edge for edge in edges]
    return [round(after - before, 4) for before, after in pairwise(totals)]


def mean_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean over seeds of every number; None where no run has it."""
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


def experiment(seeds: int, given: Assumptions, *, processes: int = 2) -> list[dict[str, Any]]:
    """Every cell and variant: rows with model, batch, variant and the means over the seeds."""
    names = tuple(VARIANTS)
    tasks = [(model, batch, seed, names, given) for model, batch in cells() for seed in range(1, seeds + 1)]
    with Pool(processes) as pool:
        runs = pool.map(run_cell, tasks, chunksize=1)
    rows = []
    for number, (model, batch) in enumerate(cells()):
        of_cell = runs[number * seeds : (number + 1) * seeds]
        for name in names:
            rows.append({"model": model, "batch": batch, "variant": name, **mean_of([run[name] for run in of_cell])})
    return rows


def sensitivity(seeds: int, given: Assumptions, *, processes: int = 2) -> list[dict[str, Any]]:
    """How the reduction at batch 128 and the utilisation at batch 64 hang on how many workers jobs want and on when a
    job that hangs is ended."""
    rows = []
    with Pool(processes) as pool:
        for size, workers in SIZES.items():
            for deadline_s in DEADLINES_S:
                changed = replace(given, workers=workers, deadline_s=deadline_s)
                rows.append({"workers": size, "deadline_s": deadline_s, **_effect(pool, seeds, changed)})
    return rows


def _effect(pool: Any, seeds: int, given: Assumptions) -> dict[str, float]:
    def means(batch: int) -> dict[str, dict[str, Any]]:
        names = ("kod2", "random")
        tasks = [(model, batch, seed, names, given) for model in MODELS for seed in range(1, seeds + 1)]
        runs = pool.map(run_cell, tasks, chunksize=4)
        return {name: mean_of([run[name] for run in runs]) for name in names}

    large, medium = means(128), means(64)
    return {
        "reduction": reduction(large["kod2"]["jct_s"], large["random"]["jct_s"]),
        "reduction_all": reduction(large["kod2"]["jct_all_s"], large["random"]["jct_all_s"]),
        "dead": large["random"]["dead"],
        "utilisation": medium["kod2"]["utilisation_in_span"] / medium["random"]["utilisation_in_span"] - 1.0,
    }


def reduction(ours: float | None, theirs: float | None) -> float:
    """By which share ours is smaller; nan where there is nothing to compare with."""
    return 1.0 - ours / theirs if ours is not None and theirs else math.nan


def _some(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number of at least 1")
    return int(text)


def _file(text: str) -> Path:
    if Path(text).is_dir() or not Path(text).absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r}: must be a file in a folder that exists")
    return Path(text)


def _folder(text: str) -> Path:
    if Path(text).exists() and not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text!r}: must be a folder")
    return Path(text)


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the experiment and write what is asked for; the markdown goes to standard output without a file."""
    parser = argparse.ArgumentParser(prog="python -m mews.harness.experiments.kod2", description=__doc__)
    parser.add_argument("--seeds", type=_some, default=30, help="of each cell; default: %(default)s")
    parser.add_argument("--sensitivity-seeds", type=_some, default=10, help="of each assumption; default: %(default)s")
    parser.add_argument("--processes", type=_some, default=2, help="at once; default: %(default)s")
    parser.add_argument("--json", type=_file, metavar="FILE", help="all figures")
    parser.add_argument("--markdown", type=_file, metavar="FILE", help="the tables; default: standard output")
    parser.add_argument("--plots", type=_folder, metavar="DIR", help=f"needs matplotlib ({install('plots')})")
    options = parser.parse_args(None if arguments is None else list(arguments))
    if options.plots is not None:
        try:  # before minutes of work, not after them
            check_installed("plots")
        except Lacks as error:
            sys.stderr.write(f"{error}\n")
            return 3
    given = Assumptions()
    rows = experiment(options.seeds, given, processes=options.processes)
    grid = sensitivity(options.sensitivity_seeds, given, processes=options.processes)
    document = {"seeds": options.seeds, "batches": list(BATCHES), "rows": rows, "sensitivity": grid}
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    text = markdown(rows, grid, seeds=options.seeds)
    if options.markdown is not None:
        options.markdown.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    if options.plots is not None:
        from mews.harness.experiments.kod2_plots import plot

        plot(rows, options.plots)
    return 0


if __name__ == "__main__":
    sys.exit(main())
