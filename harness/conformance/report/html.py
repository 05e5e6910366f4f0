"""A judgement as HTML: a row per clause, its exchanges folded away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape

from mews.harness.conformance.exchange import Exchange, cut
from mews.harness.conformance.judge import ClauseResult
from mews.harness.conformance.report.outcome import ConformanceOutcome, about, after, summary
from mews.harness.report.html_writer import html_document

STYLE = """
table { width: 100% } td, th { padding: .3em .8em .3em 0; vertical-align: top; border-top: 1px solid #e5e5e5 }
pre { white-space: pre-wrap; word-break: break-word } td:first-child, td:nth-child(2) { white-space: nowrap }
.why { color: #555 }
"""
MOST_EXCHANGES = 20


def html_page(outcome: ConformanceOutcome) -> str:
    """The whole page."""
    title = f"mews conform: {outcome.verdict}, {summary(outcome)}"
    lines = "".join(f"<p>{escape(text)}</p>" for text in (*about(outcome), *after(outcome)))
    rows = "\n".join(part for result in outcome.results for part in _row(result))
    table = f"<table><tr><th>verdict</th><th>clause</th><th>rule</th></tr>\n{rows}\n</table>"
    body = f'<h1 class="{outcome.verdict}">{escape(title)}</h1>{lines}{table}'
    return html_document(title, body, style=STYLE)


def _row(result: ClauseResult) -> Iterator[str]:
    clause = result.clause
    assumed = " (assumed)" if clause.assumed else ""
    yield f'<tr><td class="{result.verdict}">{result.verdict}</td><td>{escape(clause.id)}</td>'
    yield f"<td>{escape(clause.title)}"
    yield f'<div class="why">{escape(clause.reference)}{assumed}</div>'
    for text in (result.reason, result.note):
        if text:
            yield f"<div>{escape(text)}</div>"
    if result.exchanges:
        yield f"<details><summary>{len(result.exchanges)} exchanges</summary>"
        for exchange in result.exchanges[-MOST_EXCHANGES:]:
            yield f"<pre>{escape(_exchange(exchange))}</pre>"
        yield "</details>"
    yield "</td></tr>"


def _exchange(exchange: Exchange) -> str:
    asked = f"> {exchange.method} {exchange.path}\n> {json.dumps(dict(exchange.headers))}\n{cut(exchange.body, 1000)}"
    answer = f"< {exchange.status or exchange.error}\n< {json.dumps(dict(exchange.reply_headers))}"
    return f"{asked.rstrip()}\n{answer}\n{cut(exchange.reply, 1000)}".rstrip()
