"""A judgement as HTML: what failed comes first with why and what to do, and requests are folded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape

from mews.harness.conformance.exchange import Exchange, cut
from mews.harness.conformance.explain import explanation
from mews.harness.conformance.judge import (
    ERROR,
    FAILED,
    NOTED,
    PASSED,
    QUIRK,
    READ_ONLY,
    SKIPPED,
    WAIVED,
    WARNING,
    ClauseResult,
)
from mews.harness.conformance.report.outcome import ConformanceOutcome, left_open, notes, summary, wrong
from mews.harness.report.html_writer import html_document
from mews.harness.report.quantities import size_text, span_text

MOST_EXCHANGES = 20
MOST_TEXT = 1000
SECTIONS = {
    FAILED: "Failed",
    ERROR: "Expired waivers",
    WARNING: "Recommended, not met",
    QUIRK: "Known quirks",
    WAIVED: "Waived",
    NOTED: "Optional, not met",
    SKIPPED: "Not judged",
    PASSED: "Passed",
}
"""The verdicts in the order of the page, and their headings."""
OPEN = (FAILED, ERROR)
"""These are shown in full; of the others a line is."""
ADVICE = {
    FAILED: "Correct the chassis. If the deviation is known, list it in --quirks or --waivers.",
    ERROR: "Correct the chassis, or renew or remove the waiver in the --waivers file.",
    WARNING: "The run passes. Correct the chassis to follow the recommendation.",
    SKIPPED: "Resolve the reason, and run again.",
}


def html_page(outcome: ConformanceOutcome) -> str:
    """Return the whole page."""
    title = f"mews conform: {outcome.verdict}, {summary(outcome)}"
    body = "".join([*_head(outcome), *_wrong(outcome), *_sections(outcome), *_notes(outcome)])
    bar = '<header class="top"><nav><span class="brand">mews</span><span>conform</span></nav></header>'
    return html_document(title, f'{bar}<main class="conform">{body}</main>', styles=("conform.css",))


def _head(outcome: ConformanceOutcome) -> Iterator[str]:
    yield f"<h1>{_verdict(outcome.verdict)} {escape(outcome.url)}</h1>"
    yield f'<p class="faint">{escape(summary(outcome))} · {span_text(outcome.seconds)}</p>'
    versions = {**outcome.versions.service, **outcome.versions.schemas}
    yield _facts(
        {
            "dialect": outcome.dialect,
            "run": f"moved {', '.join(outcome.devices)}" if outcome.changes else "read-only",
            "profile": outcome.profile,
            "quirks": outcome.quirks,
            "versions": ", ".join(f"{name} {value}" for name, value in versions.items()),
        }
    )


def _wrong(outcome: ConformanceOutcome) -> Iterator[str]:
    """Yield what fails the run besides its clauses."""
    lines = wrong(outcome)
    if lines:
        yield f'<section class="violations"><h2>Besides the clauses</h2>{_list(lines)}</section>'
    if outcome.restored:
        yield "<p>Attach these devices again as listed, or restore them with mews conform --restore.</p>"


def _notes(outcome: ConformanceOutcome) -> Iterator[str]:
    lines = [*notes(outcome), *left_open(outcome)]
    if lines:
        yield f'<section class="notes"><h2>Notes</h2>{_list(lines)}</section>'


def _sections(outcome: ConformanceOutcome) -> Iterator[str]:
    for verdict, heading in SECTIONS.items():
        results = [result for result in outcome.results if result.verdict == verdict]
        if not results:
            continue
        yield f'<section class="clauses {verdict}"><h2>{heading} <span class="faint">{len(results)}</span></h2>'
        withheld = sum(result.reason == READ_ONLY for result in results)
        if withheld:
            yield f'<p class="faint">{withheld} of them move devices: run again with --allow-changes.</p>'
        yield '<div class="list">'
        for result in results:
            yield from _card(result, outcome.dialect) if verdict in OPEN else _folded(result)
        yield "</div></section>"


def _card(result: ClauseResult, dialect: str) -> Iterator[str]:
    """Yield a clause in full."""
    yield f'<article class="failure {result.verdict}"><h3>{_name(result)}</h3>'
    yield _body(result)
    text = escape(explanation(result.clause, dialect))
    yield f"<details><summary>Text of the clause</summary><pre>{text}</pre></details>"
    yield f"{_evidence(result)}{_exchanges(result)}</article>"


def _folded(result: ClauseResult) -> Iterator[str]:
    """Yield a line, the rest folded, the exchange that shows the finding first."""
    reason = "" if result.reason == READ_ONLY else result.reason or result.note
    shown = f'<span class="faint">{escape(reason)}</span>' if reason else ""
    yield f'<details class="clause {result.verdict}"><summary>{_name(result)} {shown}</summary>'
    yield f"{_evidence(result)}{_body(result)}{_exchanges(result)}</details>"


def _name(result: ClauseResult) -> str:
    return f"<code>{escape(result.clause.id)}</code> <span>{escape(result.clause.title)}</span>"


def _body(result: ClauseResult) -> str:
    assumed = " (assumed)" if result.clause.assumed else ""
    advice = "Run again with --allow-changes." if result.reason == READ_ONLY else ADVICE.get(result.verdict, "")
    source = f"{result.clause.reference}{assumed}"
    facts = {"reason": result.reason, "note": result.note, "what to do": advice, "source": source}
    return _facts({**facts, "grade": result.grade})


def _exchanges(result: ClauseResult) -> str:
    """Return the last requests and replies, each folded."""
    count, shown = len(result.exchanges), result.exchanges[-MOST_EXCHANGES:]
    if not shown:
        return ""
    head = f"{count} request{'s' if count > 1 else ''}"
    if count > len(shown):
        head += f", the last {len(shown)} of them"
    inner = "".join(map(_exchange, shown))
    return f'<details class="exchanges"><summary>{head}</summary>{inner}</details>'


def _evidence(result: ClauseResult) -> str:
    """Return the one exchange that shows a finding, whatever its grade; nothing where there is none."""
    exchange = result.evidence
    if exchange is None:
        return ""
    answer = exchange.error if exchange.status is None else str(exchange.status)
    request = escape(f"{exchange.method} {exchange.path} {cut(exchange.body, MOST_TEXT)}".rstrip())
    reply = escape(cut(exchange.reply, MOST_TEXT))
    return f'<div class="evidence"><code>{request}</code><pre>{escape(answer)} {reply}</pre></div>'


def _exchange(exchange: Exchange) -> str:
    answer = "no reply" if exchange.status is None else str(exchange.status)
    bad = " bad" if exchange.status is None or exchange.status >= 500 else ""
    cost = f"{span_text(exchange.seconds)} · {size_text(len(exchange.reply.encode()))}"
    request = _message(exchange.headers, exchange.body)
    reply = exchange.error if exchange.status is None else _message(exchange.reply_headers, exchange.reply)
    return (
        f'<details class="exchange"><summary><code>{escape(exchange.method)} {escape(exchange.path)}</code>'
        f'<b class="status{bad}">{answer}</b><span class="faint">{cost}</span></summary>'
        f"<h4>Request</h4><pre>{escape(request)}</pre><h4>Reply</h4><pre>{escape(reply)}</pre></details>"
    )


def _message(headers: Mapping[str, str], body: str) -> str:
    return f"{json.dumps(dict(headers))}\n{cut(body, MOST_TEXT)}".rstrip()


def _verdict(verdict: str) -> str:
    return f'<span class="verdict {verdict}">{verdict}</span>'


def _facts(facts: Mapping[str, str]) -> str:
    rows = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items() if text)
    return f'<dl class="facts">{rows}</dl>'


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
