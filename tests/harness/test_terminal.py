"""Texts of strangers on terminals and in reports: control characters are shown, never sent."""

from __future__ import annotations

import ast
import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mews.harness
from mews.harness import terminal
from mews.harness.cli import exit_code
from mews.harness.commands.log_handler import stderr_handler
from mews.harness.journal import Line
from mews.harness.report.html import html_page
from mews.harness.report.junit_writer import JUnitCase, JUnitSuite, junit_document
from mews.harness.report.page import inline_json
from mews.harness.report.run import Run
from mews.harness.report.text import TextReport
from mews.harness.scenario.result import Result

HOSTILE = "a\x1b[2J\x07b\x9b31m\u202ec\r\x00d\u2028"
SHOWN = r"a\u001b[2J\u0007b\u009b31m\u202ec\u000d\u0000d\u2028"


def test_control_characters_are_shown_as_escapes_and_lines_stay_lines():
    assert terminal.escaped(HOSTILE) == SHOWN
    assert terminal.escaped("één\tcolumn\nline €") == "één\tcolumn\nline €"


@given(st.text())
def test_json_that_was_escaped_for_a_terminal_says_the_same(text):
    for ascii_only in (True, False):
        assert json.loads(terminal.escaped(json.dumps({"a": text}, ensure_ascii=ascii_only))) == {"a": text}


@given(st.text(alphabet=st.sampled_from('\\u001b"\x1b\x9b\u202e\n\ta0')))
def test_json_of_a_page_shows_what_a_terminal_shows(text):
    """But for the short escapes of JSON, which do no harm on a page."""
    found = json.loads(terminal.escaped_json(json.dumps(text, ensure_ascii=False)))
    assert found == terminal.escaped(text)


def run() -> Run:
    violation = {"invariant": 1, "name": "n", "what": HOSTILE, "t": 0.0, "first": None}
    result = Result(HOSTILE, "", "embedded", "virtual", 1, "failed", HOSTILE, report=HOSTILE, violations=(violation,))
    return Run(result, [Line(0, 0.0, "api", HOSTILE, HOSTILE, {"message": HOSTILE})])


def test_no_report_carries_a_control_character(capsys: pytest.CaptureFixture[str]):
    report = TextReport()
    report.ended(run())
    report.finish([run()])
    case = JUnitCase("c", HOSTILE, bad="failure", message=HOSTILE, text=HOSTILE, output=HOSTILE)
    texts = {
        "text": capsys.readouterr().out,
        "junit": junit_document(JUnitSuite("t", "n", 0.0, [case], HOSTILE, {"p": HOSTILE})),
        "html": html_page([run()]),
        "inline": inline_json({"a": HOSTILE}),
    }
    for name, text in texts.items():
        assert "u001b" in text, name
        assert terminal.escaped(text) == text, name


def test_log_records_on_standard_error_carry_no_control_character(capsys: pytest.CaptureFixture[str]):
    handler = stderr_handler(logging.WARNING)
    handler.emit(logging.LogRecord("mews", logging.WARNING, "", 0, "%s said", (HOSTILE,), None))
    assert f"{SHOWN} said\n" in capsys.readouterr().err


def test_a_commands_error_carries_no_control_character(capsys: pytest.CaptureFixture[str]):
    assert exit_code(["validate", "no\x1b[31mthing.yaml"]) == 2
    assert r"no\u001b[31mthing.yaml" in capsys.readouterr().err


def writers(tree: ast.AST) -> list[int]:
    """Lines that write to a standard stream by hand."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "write" and isinstance(node.value, ast.Attribute):
            stream = node.value
            if stream.attr in ("stdout", "stderr") and isinstance(stream.value, ast.Name) and stream.value.id == "sys":
                found.append(node.lineno)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            found.append(node.lineno)
    return found


ELSEWHERE = ("terminal.py", "sweeps.py", "clusters", "conformance/guard.py")
"""Of results that are JSON, and processes of their own in containers or behind a pipe."""


def test_commands_write_to_the_terminal_in_one_place():
    root = Path(mews.harness.__file__).parent
    by_hand = {
        str(path.relative_to(root)): lines
        for path in sorted(root.rglob("*.py"))
        if not str(path.relative_to(root)).startswith(ELSEWHERE)
        and (lines := writers(ast.parse(path.read_text("utf-8"))))
    }
    assert by_hand == {}
