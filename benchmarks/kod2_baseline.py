"""The experiment's baselines: does the simulator say what the whole stack does?

``python -m benchmarks.kod2_baseline [--seeds 30] [--cell CNN-rand/8 …] [--scoring random] [--deadline 3600]
[--draws 20] [--runs FILE]``: each cell and seed submitted to the whole stack (API server, default scheduler, kubelets,
operator; virtual time, some four seconds of CPU time each) and to the simulator. Chance differs between the two, so
that only their distributions can agree: the means with their 95 % intervals, the mean difference of the pairs with its
own (jobs are the same in both), and how probable a difference as large would be if there were none (a permutation test
of the pairs' signs). With ``--draws N`` each seed's jobs are simulated N times by other chance, too: the stack's run
ranks anywhere among those (0 to 1), so that the mean rank must be near one half. An earlier deadline than the
experiment's, in seconds, costs less: hanging jobs hang for less long. FILE keeps what has been run on the stack, and a
later call goes on from there.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.common import progress, report
from mews.kube.system.statistics import half_width, sign_test
from mews.systems.kod2.experiment.cells import Assumptions
from mews.systems.kod2.experiment.default_scheduler import Scoring
from mews.systems.kod2.experiment.run import VARIANTS, simulate
from mews.systems.kod2.experiment.simulation import JobLife
from tests.systems.kod2.whole_stack import baseline_lives

CELLS = (("CNN-rand", 8), ("VGG-16", 64), ("CNN-rand", 16), ("VGG-16", 128), ("CNN-rand", 32))
Key = tuple[str, int, str, int, float]
"""Model, batch, scoring, seed, deadline."""
Numbers = dict[str, float]

SHOWN: dict[str, Callable[[Iterable[JobLife]], float]] = {
    "dead": lambda lives: sum(life.dead for life in lives),
    "jct_all_s": lambda lives: fmean(life.jct_s or 0.0 for life in lives),
    "longest_s": lambda lives: max(life.jct_s or 0.0 for life in lives),
}
"""What is compared of a run of ten jobs."""


def on_the_stack(key: Key) -> Numbers:
    """Return one run of the whole stack."""
    model, batch, scoring, seed, deadline_s = key
    return _numbers(baseline_lives(model, batch, seed, Scoring(scoring), Assumptions(deadline_s=deadline_s)))


def simulated(key: Key) -> Numbers:
    """Return the same by the simulator."""
    model, batch, scoring, seed, deadline_s = key
    return _numbers(simulate(model, batch, seed, VARIANTS[scoring], Assumptions(deadline_s=deadline_s)).lives)


def rank(key: Key, stack: Numbers, draws: int) -> float:
    """Return where the stack's mean time lies among so many simulations of the same jobs by other chance: from 0 to 1,
    a half of those that are the same counted."""
    model, batch, scoring, seed, deadline_s = key
    given, name = Assumptions(deadline_s=deadline_s), "jct_all_s"
    below = 0.5
    for draw in range(draws):
        chance = random.Random(f"{seed}/{model}/{batch}/{draw}")
        found = _numbers(simulate(model, batch, seed, VARIANTS[scoring], given, chance=chance).lives)[name]
        below += (found < stack[name]) + 0.5 * (found == stack[name])
    return below / (draws + 1)


def _numbers(lives: dict[str, JobLife]) -> Numbers:
    return {name: of(lives.values()) for name, of in SHOWN.items()}


def kept(file: Path | None) -> dict[Key, Numbers]:
    """Return what earlier calls have run."""
    if file is None or not file.exists():
        return {}
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {
        (model, batch, scoring, seed, deadline_s): numbers
        for (model, batch, scoring, seed, deadline_s), numbers in lines
    }


def measured(keys: Iterable[Key], file: Path | None) -> dict[Key, Numbers]:
    """Return each of them on the stack."""
    found = kept(file)
    for key in keys:
        if key in found:
            continue
        progress(f"{key[0]}/{key[1]} {key[2]} seed {key[3]}")
        found[key] = on_the_stack(key)
        if file is not None:
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps([key, found[key]]) + "\n")
    return found


def compared(pairs: list[tuple[Numbers, Numbers]]) -> Iterator[dict[str, Any]]:
    """Yield them for each number the two means, the mean difference, half its interval, and the test."""
    for name in SHOWN:
        stack, ours = [a[name] for a, _ in pairs], [b[name] for _, b in pairs]
        differences = [b - a for a, b in zip(stack, ours, strict=True)]
        yield {
            "number": name,
            "stack": (fmean(stack), half_width(stack)),
            "simulator": (fmean(ours), half_width(ours)),
            "difference": (fmean(differences), half_width(differences)),
            "p": sign_test(differences),
        }


def main() -> None:
    """A line per cell, scoring and number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--cell", action="append", default=[])
    parser.add_argument("--scoring", choices=[each.value for each in Scoring], action="append", default=[])
    parser.add_argument("--deadline", type=float, default=Assumptions().deadline_s)
    parser.add_argument("--draws", type=int, default=0)
    parser.add_argument("--runs", type=Path)
    options = parser.parse_args()
    cells = [(name, int(batch)) for name, _, batch in (cell.partition("/") for cell in options.cell)] or CELLS
    scorings = options.scoring or [each.value for each in Scoring]
    seeds = range(1, options.seeds + 1)
    end_s = options.deadline
    keys = [(model, batch, scoring, seed, end_s) for seed in seeds for scoring in scorings for model, batch in cells]
    stack = measured(keys, options.runs)
    for scoring in scorings:
        for model, batch in cells:
            of_cell = [(model, batch, scoring, seed, end_s) for seed in seeds]
            for row in compared([(stack[key], simulated(key)) for key in of_cell]):
                each = ", ".join(f"{name} {row[name][0]:.2f} ± {row[name][1]:.2f}" for name in list(row)[1:4])
                progress(f"{model}/{batch} {scoring:7} {row['number']:9} {each}, p {row['p']:.2f} ({len(seeds)} seeds)")
                report(f"kod2_baseline_{model}_{batch}_{scoring}_{row['number']}", row["simulator"][0], "",
                       baseline=row["stack"][0], baseline_name="whole stack")  # fmt: skip
            if options.draws:
                ranks = [rank(key, stack[key], options.draws) for key in of_cell]
                by_chance = 1.96 * math.sqrt(1 / 12 / len(ranks))
                progress(f"{model}/{batch} {scoring:7} mean rank {fmean(ranks):.2f}, by chance 0.5 ± {by_chance:.2f}")
                report(f"kod2_baseline_{model}_{batch}_{scoring}_rank", fmean(ranks), "")


if __name__ == "__main__":
    main()
