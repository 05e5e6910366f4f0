"""What people and programs read about runs."""

import io
from xml.etree import ElementTree

import pytest

from mews.harness.journal import Journal
from mews.harness.report.junit import junit_xml
from mews.harness.report.line import plain
from mews.harness.report.run import Run, exit_code_of
from mews.harness.report.text import TextReport, count
from mews.harness.scenario.result import Result


def a_run(verdict="passed", reason="", lines=3, **fields):
    now = [0.0]
    journal = Journal(lambda: now[0])
    for number in range(lines):
        now[0] = number * 1.5
        journal.write("chassis", "chassis/A", "detached", gpuid=f"0-{number}", uid="u1")
    result = Result("demo", "scenarios/demo.yaml", "embedded", "virtual", 1, verdict, reason, 12.5, 0.25, **fields)
    return Run(result, journal.lines())


class Terminal(io.StringIO):
    def isatty(self):
        return True


def said(runs, stream=None):
    stream = stream or io.StringIO()
    report = TextReport(stream)
    for run in runs:
        report.ended(run)
    report.finish(runs)
    return stream.getvalue()


def test_a_pipe_gets_plain_lines_with_verdict_times_and_metrics():
    text = said([a_run(metrics={"moved_gpus": 1, "mean_wait_s": 82.71234, "phase_seconds": {}})])
    assert "\x1b" not in text
    assert text.splitlines()[0].split() == [
        *("passed", "demo", "seed", "1", "12.5", "s", "virtual,", "0.25", "s"),
        *("mean_wait_s=82.71", "moved_gpus=1"),
    ]
    assert text.splitlines()[-1] == "1 passed"


def test_a_failure_tells_reason_violations_report_and_the_end_of_the_time_line():
    violation = {"invariant": 2, "name": "in use", "what": "0-a moved"}
    run = a_run("failed", "step 2 wait: no", 40, violations=(violation,), report="awaited: x\nseen: y")
    text = said([run])
    for part in ("step 2 wait: no", "invariant 2 (in use): 0-a moved", "awaited: x", "the last 25 of 40 lines"):
        assert part in text
    assert "gpuid=0-39" in text
    assert "gpuid=0-5 " not in text


def test_the_line_that_broke_an_invariant_is_told_even_if_it_is_long_ago():
    run = a_run("failed", "broken", 40)
    journal = Journal(lambda: 100.0)
    for line in run.lines:
        journal.write(line.layer, line.actor, line.event, **line.fields)
    journal.write("invariant", "2", "violated", what="x", first=3)
    assert "gpuid=0-3\n" in said([Run(run.result, journal.lines())])


def test_a_terminal_gets_a_table_with_the_verdict_of_each():
    text = said([a_run(), a_run("skipped", "needs root")], Terminal())
    assert "verdict" in text
    assert "needs root" in text
    assert "1 passed, 1 skipped" in text


def test_text_of_scenarios_is_never_read_as_markup():
    text = said([a_run("failed", "[bold]expected [/nothing] at all")], Terminal())
    assert "[bold]expected [/nothing] at all" in text


def test_a_journal_line_for_people_leaves_out_what_only_programs_need():
    assert plain(a_run().lines[1]).split() == ["1.500", "chassis", "chassis/A", "detached", "gpuid=0-1"]


def test_what_a_metric_is_held_against_stands_beside_it():
    text = said([a_run(metrics={"mean_wait_s": 78.25}, expected={"mean_wait_s": 82.7})])
    assert "mean_wait_s=78.25 (expected 82.7: -5.4 %)" in text


def test_all_skipped_is_a_warning():
    assert count([a_run("skipped")]) == "1 skipped: NOTHING WAS RUN"


@pytest.mark.parametrize(
    ("verdicts", "code"), [([], 0), (["passed", "skipped"], 0), (["passed", "failed"], 1), (["error"], 1)]
)
def test_the_worst_verdict_is_the_exit_code(verdicts, code):
    assert exit_code_of([a_run(verdict) for verdict in verdicts]) == code


def test_junit_counts_each_kind_and_keeps_metrics_and_the_reason():
    runs = [
        a_run(metrics={"moved_gpus": 1}),
        a_run("failed", "no & <never>\x00"),
        a_run("error"),
        a_run("skipped", "root"),
    ]
    root = ElementTree.fromstring(junit_xml(runs))
    suite = root.find("testsuite")
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
        "time": "1.000",
    }
    cases = suite.findall("testcase")
    assert (cases[0].get("classname"), cases[0].get("name")) == ("scenarios.demo", "demo[seed=1]")
    assert cases[0].find("properties/property").attrib == {"name": "moved_gpus", "value": "1"}
    assert cases[1].find("failure").get("message") == r"no & <never>\u0000"
    assert "detached" in cases[1].find("system-out").text
    assert cases[2].find("error") is not None
    assert cases[3].find("skipped").get("message") == "root"
