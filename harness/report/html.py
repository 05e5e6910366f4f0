"""Runs as HTML: per run the verdict, the metrics and the time line as inline SVG."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape

from mews.harness.journal import LAYERS, Line
from mews.harness.report.html_writer import html_document
from mews.harness.report.line import fields_text
from mews.harness.report.run import Run
from mews.harness.report.text import count, details

WIDTH, MARGIN, ROW = 1000, 110, 26
MOST_LINES = 2000
"""Of a time line; beyond it every n-th is drawn."""

COLOURS = {
    "chassis": "#1f77b4",
    "host": "#17becf",
    "kubelet": "#2ca02c",
    "api": "#7f7f7f",
    "scheduler": "#9467bd",
    "component": "#8c564b",
    "fault": "#ff7f0e",
    "step": "#444444",
    "invariant": "#d62728",
}

STYLE = """
h2 { font-size: 1.05em; margin: 1.6em 0 .3em } table { margin: .5em 0 } td, th { padding: .15em 1em .15em 0 }
svg { width: 100%; height: auto; background: #fafafa } svg text { font: 12px system-ui, sans-serif; fill: #444 }
"""


def html_page(runs: Sequence[Run]) -> str:
    """The whole page."""
    body = "\n".join(part for run in runs for part in _run(run))
    heading = f"<h1>mews run: {escape(count(runs))}</h1>"
    return html_document(f"mews: {count(runs)}", f"{heading}\n{body}\n", style=STYLE)


def _run(run: Run) -> Iterator[str]:
    result = run.result
    verdict = f'<span class="{result.verdict}">{result.verdict}</span>'
    yield f"<section><h2>{verdict} {escape(result.scenario)}, seed {result.seed}</h2>"
    took = f"{result.wall_s:.2f} s"
    virtual = "" if result.virtual_s is None else f", {result.virtual_s:.1f} s of virtual time"
    yield f"<p>{escape(result.path)}; cluster {escape(result.cluster)}, {escape(result.time)} time; {took}{virtual}</p>"
    texts = list(details(run))
    if texts:
        yield f"<pre>{escape(chr(10).join(texts))}</pre>"
    if result.metrics:
        yield from _metrics(run)
    if run.lines:
        yield timeline_svg(run.lines)
    yield "</section>"


def _metrics(run: Run) -> Iterator[str]:
    yield "<table><tr><th>metric</th><th>value</th><th>expected</th></tr>"
    for name, value in run.result.metrics.items():
        expected = run.result.expected.get(name, "")
        yield f"<tr><td>{escape(name)}</td><td>{escape(json.dumps(value))}</td><td>{expected}</td></tr>"
    yield "</table>"


def timeline_svg(lines: Sequence[Line]) -> str:
    """A row per layer, a tick per line; its text shows on hovering. Time runs to the right, in seconds."""
    layers = [layer for layer in LAYERS if any(line.layer == layer for line in lines)]
    first, last = min(line.t for line in lines), max(line.t for line in lines)
    scale = (WIDTH - MARGIN - 10) / ((last - first) or 1.0)
    height = ROW * len(layers) + 30
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="time line">']
    for row, layer in enumerate(layers):
        y = ROW * row + ROW // 2
        parts.append(f'<text x="4" y="{y + 4}">{layer}</text>')
        parts.append(f'<line x1="{MARGIN}" x2="{WIDTH - 10}" y1="{y}" y2="{y}" stroke="#ddd"/>')
    for line in lines[:: max(1, len(lines) // MOST_LINES)]:
        x, y = MARGIN + (line.t - first) * scale, ROW * layers.index(line.layer) + 4
        text = escape(f"{line.t:.3f} s  {line.actor}  {line.event}  {fields_text(line.fields)}")
        mark = f'<rect x="{x:.1f}" y="{y}" width="3" height="{ROW - 8}" fill="{COLOURS[line.layer]}">'
        parts.append(f"{mark}<title>{text}</title></rect>")
    for share in (0, 0.25, 0.5, 0.75, 1):
        x = MARGIN + share * (WIDTH - MARGIN - 10)
        anchor = "end" if share == 1 else "start" if share == 0 else "middle"
        t = first + share * (last - first)
        parts.append(f'<text x="{x:.0f}" y="{height - 8}" text-anchor="{anchor}">{t:.1f} s</text>')
    return "".join([*parts, "</svg>"])
