"""The conformance report as a page: its order, what is folded, its units and its policy."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from mews.harness.conformance.clause import Clause
from mews.harness.conformance.exchange import Exchange
from mews.harness.conformance.judge import (
    ERROR,
    FAILED,
    NOTED,
    PASSED,
    QUIRK,
    READ_ONLY,
    SKIPPED,
    VERDICTS,
    WAIVED,
    WARNING,
    ClauseResult,
)
from mews.harness.conformance.report.html import MOST_EXCHANGES, html_page
from mews.harness.conformance.report.outcome import ConformanceOutcome
from mews.harness.conformance.table import Versions
from mews.harness.report.quantities import size_text, span_text

EVIL = '<script>alert(1)</script><b onclick="x">&amp;'


class Page(HTMLParser):
    """Elements in order, the texts outside and inside folds, and the style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.style = ""
        self.open_text: list[str] = []
        self.folded_text: list[str] = []
        self._folds = 0
        self._summary = False
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        self._folds += tag == "details" and "open" not in dict(attrs)
        self._summary |= tag == "summary"

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""
        self._folds -= tag == "details"
        self._summary &= tag != "summary"

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.style += data
            return
        outside = not self._folds or (self._folds == 1 and self._summary)
        (self.open_text if outside else self.folded_text).append(data)

    @property
    def shown(self) -> str:
        return " ".join(self.open_text)

    @property
    def folded(self) -> str:
        return " ".join(self.folded_text)


def result(verdict: str, reason: str = "", exchanges: int = 0, title: str = "a rule") -> ClauseResult:
    clause = Clause(f"2.{verdict}", title, "chassis.md 2: GET /h3api/v1/resources", lambda bench: None)
    made = tuple(
        Exchange("GET", f"/path/{n}", {"Accept": "*/*"}, "", 200, {"Server": "box"}, "x" * 2048, 0.01234)
        for n in range(exchanges)
    )
    return ClauseResult(clause, verdict, reason, "", 0.5, made)


def page(*results: ClauseResult, restored: tuple[str, ...] | None = None) -> Page:
    versions = Versions({"Server": "box/1"}, {})
    return Page(
        html_page(
            ConformanceOutcome(
                "http://box", "h3api", False, (), "stack", "", versions, results, restored, (), (), (), 125.04
            )
        )
    )


def test_what_failed_comes_first_whatever_the_order_of_judging() -> None:
    made = page(*(result(verdict) for verdict in (PASSED, SKIPPED, WARNING, ERROR, FAILED)))
    ids = re.findall(r"2\.[a-z]+", made.shown)
    assert ids == [f"2.{verdict}" for verdict in (FAILED, ERROR, WARNING, SKIPPED, PASSED)]


def test_each_verdict_has_its_place() -> None:
    assert set(re.findall(r"2\.[a-z]+", page(*map(result, VERDICTS)).shown)) == {f"2.{each}" for each in VERDICTS}


def test_a_failed_clause_shows_its_reason_and_what_to_do_and_folds_its_requests_and_its_text() -> None:
    made = page(result(FAILED, "the box lies", exchanges=2))
    assert "the box lies" in made.shown
    assert "Correct the chassis." in made.shown
    assert "2 requests" in made.shown
    assert "/path/0" not in made.shown
    assert "/path/0" in made.folded
    assert "Text (chassis.md 2: GET /h3api/v1/resources)" in made.folded


def test_the_exchange_that_shows_a_failure_is_shown_and_that_of_a_warning_comes_first_in_its_fold() -> None:
    seen = Exchange("DELETE", "/the/one", {}, '{"dev": 7}', 418, {}, "no tea", 0.1)
    silent = Exchange("PUT", "/silent", {}, "", None, {}, "", 0.1, error="no answer within 4 s")
    failed = page(replace(result(FAILED, "bad", exchanges=1), evidence=seen))
    assert 'DELETE /the/one {"dev": 7} 418 no tea' in failed.shown
    assert "/the/one" not in page(result(FAILED, "bad", exchanges=1)).shown
    for verdict in (WARNING, NOTED, QUIRK, WAIVED):
        made = page(replace(result(verdict, "bad", exchanges=1), evidence=silent))
        assert "PUT /silent no answer within 4 s" in made.folded
        assert made.folded.index("/silent") < made.folded.index("chassis.md 2") < made.folded.index("/path/0")
        assert "/silent" not in made.shown


def test_a_passed_clause_is_one_line() -> None:
    made = page(result(PASSED, exchanges=1))
    assert "a rule" in made.shown
    assert "chassis.md 2" not in made.shown
    assert "chassis.md 2" in made.folded


def test_a_fold_says_how_many_requests_it_leaves_out() -> None:
    made = page(result(FAILED, exchanges=MOST_EXCHANGES + 5))
    assert f"{MOST_EXCHANGES + 5} requests, the last {MOST_EXCHANGES} of them" in made.shown
    assert "/path/4 " not in made.folded
    assert "/path/5 " in f"{made.folded} "


def test_times_and_sizes_have_the_readers_units() -> None:
    made = page(result(FAILED, exchanges=1))
    assert "12.3 ms · 2.0 KiB" in made.folded
    assert "2 min 05 s" in made.shown
    assert "0.01234" not in made.shown + made.folded


def test_read_only_runs_say_once_how_to_judge_the_rest() -> None:
    made = page(result(SKIPPED, READ_ONLY), result(SKIPPED, READ_ONLY), result(SKIPPED, "no such link"))
    assert "2 of them move devices: run again with --allow-changes." in made.shown
    assert made.shown.count("--allow-changes.") == 1
    assert "no such link" in made.shown


def test_devices_that_are_not_back_come_before_the_clauses() -> None:
    made = page(result(FAILED), restored=("device 7 is lost",))
    assert made.shown.index("NOT RESTORED: device 7 is lost") < made.shown.index("2.failed")
    assert "mews conform --restore" in made.shown


def test_the_page_runs_no_script_and_its_policy_names_its_style() -> None:
    made = page(result(FAILED, EVIL, exchanges=1, title=EVIL), result(PASSED, title=EVIL))
    assert EVIL in made.shown
    assert not any(tag == "script" for tag, _ in made.elements)
    names = [name for _, attributes in made.elements for name in attributes]
    assert [name for name in names if name.startswith("on") or name == "style"] == []
    [policy] = [a["content"] for _, a in made.elements if a.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(made.style.encode()).digest()).decode()
    assert policy is not None
    parts = policy.split("; ")
    assert parts[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert not any(part.startswith("script-src") for part in parts)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 µs"), (0.00002249, "22 µs"), (0.0012, "1.2 ms"), (0.99, "990 ms"), (0.9996, "1 s"), (1.257, "1.26 s"),
        (59.9, "59.9 s"), (59.96, "1 min 00 s"), (125.04, "2 min 05 s"),
    ],
)  # fmt: skip
def test_spans(seconds: float, text: str) -> None:
    assert span_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB")]
)
def test_sizes(count: int, text: str) -> None:
    assert size_text(count) == text
