"""An experiment's tables as files that other programs read: JSON, CSV, and a page of HTML. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from mews.kube.system.experiment import Comparison, Experiment, Row, Tables

STYLE = "body { font-family: sans-serif; margin: 2em } td, th { border: 1px solid #ccc; padding: .2em .5em }"


def document(experiment: Experiment, tables: Tables, seeds: Mapping[str, int]) -> dict[str, Any]:
    """All rows. ``seeds`` is the number of the first part, the others' by their names."""
    first, *others = experiment.parts
    counts = {"seeds": seeds[first.name], **{f"{part.name}_seeds": seeds[part.name] for part in others}}
    return {"experiment": experiment.name, **counts, **(experiment.about or {}), **tables}


def result(experiment: Experiment, tables: Tables) -> dict[str, Any]:
    """The numbers beside the paper's."""
    return {"experiment": experiment.name, "rows": [asdict(each) for each in experiment.comparisons(tables)]}


def csv_text(rows: Sequence[Row]) -> str:
    """A header and a line per row; what is no single value is left out."""
    columns = [name for name, value in rows[0].items() if not isinstance(value, list | dict)] if rows else []
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def html_page(experiment: Experiment, tables: Tables, report: str, figures: Iterable[str]) -> str:
    """A page with the comparison, the figures by their files' names, and the report as it is."""
    body = [f"<h1>{escape(experiment.name)}</h1>", f"<p>{escape(experiment.summary)}</p>"]
    body += [_compared(experiment.comparisons(tables))]
    body += [f'<p><img src="{escape(name)}" alt="{escape(name)}"></p>' for name in figures]
    body += [f"<pre>{escape(report)}</pre>"]
    head = f'<meta charset="utf-8"><title>{escape(experiment.name)}</title><style>{STYLE}</style>'
    return f"<!doctype html>\n<html><head>{head}</head><body>\n" + "\n".join(body) + "\n</body></html>\n"


def _compared(comparisons: Sequence[Comparison]) -> str:
    lines = ["<table><tr><th></th><th>paper</th><th>measured</th><th>ours</th><th>low</th><th>high</th></tr>"]
    for each in comparisons:
        numbers = (each.paper, each.measured, each.ours, each.low, each.high)
        cells = "".join(f"<td>{'' if number is None else f'{number:g}'}</td>" for number in numbers)
        lines.append(f"<tr><td>{escape(each.name)}</td>{cells}</tr>")
    return "\n".join([*lines, "</table>"])


def json_text(value: Mapping[str, Any]) -> str:
    """As it is written into files."""
    return json.dumps(value, indent=1) + "\n"
