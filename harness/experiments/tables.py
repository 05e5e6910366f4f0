"""An experiment's tables as files that other programs read: JSON, CSV, and a page of HTML. Pure."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from mews.harness.report.page import data_block, html_file
from mews.kube.system.experiment import Experiment, Row, Tables


def document(experiment: Experiment, tables: Tables, seeds: Mapping[str, range]) -> dict[str, Any]:
    """Return all rows. ``seeds`` is how many the first part has, the others' by their names; ``first_seed`` likewise
    where it is not 1."""
    first, *others = experiment.parts
    named = {"": first, **{f"{part.name}_": part for part in others}}
    counts = {f"{name}seeds": len(seeds[part.name]) for name, part in named.items()}
    counts |= {f"{name}first_seed": n for name, part in named.items() if (n := seeds[part.name].start) != 1}
    return {"experiment": experiment.name, **counts, **(experiment.about or {}), **tables}


def result(experiment: Experiment, tables: Tables) -> dict[str, Any]:
    """Return the numbers beside the paper's."""
    return {"experiment": experiment.name, "rows": [asdict(each) for each in experiment.comparisons(tables)]}


def csv_text(rows: Sequence[Row]) -> str:
    """Return a header and a line per row; what is no single value is left out."""
    columns = [name for name, value in rows[0].items() if not isinstance(value, list | dict)] if rows else []
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def html_page(experiment: Experiment, tables: Tables, report: str, figures: Mapping[str, bytes]) -> str:
    """Return one file with the comparison as plot and table, the figures (name -> SVG) and the report as it is."""
    shown = [
        {"name": name, "source": f"data:image/svg+xml;base64,{base64.b64encode(image).decode('ascii')}"}
        for name, image in figures.items()
    ]
    data = {
        "kind": "experiment",
        "experiment": experiment.name,
        "summary": experiment.summary,
        "rows": [asdict(each) for each in experiment.comparisons(tables)],
        "figures": shown,
        "report": report,
    }
    fallback = f"<main><h1>{escape(experiment.name)}</h1><pre>{escape(report)}</pre></main>"
    return html_file(
        f"mews · {experiment.name}",
        start="ReportData.start();",
        scripts=("report.js",),
        blocks=[data_block("mews-data", data)],
        fallback=fallback,
    )


def json_text(value: Mapping[str, Any]) -> str:
    """Return it as it is written into files."""
    return json.dumps(value, indent=1) + "\n"
