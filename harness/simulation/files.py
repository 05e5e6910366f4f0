"""What a simulation leaves in a folder: a table, and figures as experiments draw them."""

from __future__ import annotations

from collections.abc import Sequence

from mews.harness.simulation.run import TraceOutcome
from mews.kube.system.experiment import Figure, Panel, Series

_PERCENT = tuple(number / 100 for number in range(101))


def summary_csv(outcomes: Sequence[TraceOutcome]) -> str:
    """Return a row for each policy; what is no single value is left out."""
    names = list(
        dict.fromkeys(
            name for outcome in outcomes for name, value in outcome.metrics.items() if not isinstance(value, list)
        )
    )
    rows = [",".join(("policy", *names))]
    rows += [",".join((each.policy, *(str(each.metrics.get(name, "")) for name in names))) for each in outcomes]
    return "\n".join(rows) + "\n"


def figures(outcomes: Sequence[TraceOutcome]) -> list[Figure]:
    """Mean wait and completion, how waits are distributed, how many GPUs are in use for what share of the time, and
    over time."""
    labels = tuple(outcome.policy for outcome in outcomes)

    def bars(name: str) -> tuple[Series, ...]:
        return (Series(name, tuple(float(each.metrics.get(name, 0.0)) for each in outcomes)),)

    waits = tuple(
        Series(each.policy, tuple(each.statistics.waits.at(share) for share in _PERCENT)) for each in outcomes
    )
    return [
        Figure(
            "means",
            "bars",
            "seconds",
            (Panel("mean wait", bars("mean_wait_s"), labels), Panel("mean JCT", bars("mean_jct_s"), labels)),
            same_scale=False,
        ),
        Figure("waits", "lines", "wait, s", (Panel("waits", waits, x_label="percent of jobs"),)),
        Figure(
            "gpus-used",
            "lines",
            "share of the time",
            (Panel("at most so many in use", tuple(map(_cdf, outcomes)), x_label="GPUs"),),
        ),
        Figure("use-over-time", "lines", "GPUs in use", tuple(map(_over_time, outcomes))),
    ]


def _cdf(outcome: TraceOutcome) -> Series:
    steps = outcome.metrics.get("gpu_used_cdf") or [[0, 1.0]]
    values: list[float] = []
    share = 0.0
    for gpus, until in steps:
        values += [share] * (int(gpus) - len(values))
        share = float(until)
        values.append(share)
    return Series(outcome.policy, tuple(values))


def _over_time(outcome: TraceOutcome) -> Panel:
    slice_s, means = outcome.statistics.use.means()
    at = tuple(slice_s * number for number in range(len(means)))
    return Panel(outcome.policy, (Series(outcome.policy, tuple(means), at=at),), x_label="time, s")
