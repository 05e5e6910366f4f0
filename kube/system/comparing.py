"""Numbers beside a paper's, as comparisons and as the text that stands under an experiment's figures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mews.kube.system.experiment import Comparison, Experiment, Row, Tables
from mews.kube.system.statistics import interval


def compared(
    name: str, values: Sequence[float], *, paper: float | None = None, measured: float | None = None
) -> Comparison:
    """Return the mean of several runs with its 95 % interval; one run has none, and no run no mean."""
    if len(values) < 2:
        return Comparison(name, values[0] if values else None, paper, measured)
    mean, low, high = interval(values)
    return Comparison(name, mean, paper, measured, low, high)


def report(experiment: Experiment, tables: Tables, seeds: Mapping[str, range]) -> str:
    """Markdown: the title, what must be known, and the table of comparisons. ``seeds`` by part."""
    counts = {part: len(each) for part, each in seeds.items()}
    if experiment.own_report is not None:
        return experiment.own_report(tables, counts)
    lines = [f"# {experiment.title}", ""]
    for note in (*(note.format_map(counts) for note in experiment.notes), *experiment.found(tables, counts)):
        lines += [note, ""]
    lines += ["| | paper | measured | ours | 95 % |", "|---|---|---|---|---|"]
    for each in experiment.comparisons(tables):
        within = "" if each.low is None or each.high is None else f"{_shown(each.low)} to {_shown(each.high)}"
        numbers = " | ".join(_shown(value) for value in (each.paper, each.measured, each.ours))
        lines.append(f"| {each.name} | {numbers} | {within} |")
    return "\n".join(lines) + "\n"


def picked(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """Return the rows with these values."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
