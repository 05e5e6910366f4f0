"""`mews run` with several scenarios: what one of them lacks skips that one, and nothing else."""

import json
from xml.etree import ElementTree

import pytest

import mews.harness.clusters
from mews.harness.cli import exit_code
from mews.harness.errors import RequirementError
from mews.harness.scenario.errors import ScenarioError
from mews.project import DOCUMENTATION

SCENARIO = """apiVersion: mews/v1
kind: Scenario
metadata: {name: NAME, labels: {suite: SUITE}}
hardware: demo
stack: {kubecomp: null}
steps: [{sleep: 1s}]
"""
open_cluster = mews.harness.clusters.open_cluster


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Scenarios of which two cannot be opened here: ``b`` lacks a program, ``d`` names what turns out to be wrong."""
    for name, suite in {"a": "smoke", "b": "smoke", "c": "slow", "d": "slow"}.items():
        (tmp_path / f"{name}.yaml").write_text(SCENARIO.replace("NAME", name).replace("SUITE", suite))

    async def opening(scenario, *arguments, **named):
        if scenario.name == "b":
            raise RequirementError("docker: not found; install it")
        if scenario.name == "d":
            raise ScenarioError("d.yaml:4: hardware: 'demo': wrong")
        return await open_cluster(scenario, *arguments, **named)

    monkeypatch.setattr(mews.harness.clusters, "open_cluster", opening)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return exit_code(["run", *words, "--json", "out.json"])


def verdicts(folder):
    return {each["scenario"]: each["verdict"] for each in json.loads((folder / "out.json").read_text())}


def test_what_one_scenario_lacks_skips_it_and_all_reports_are_written(folder, capsys):
    assert run("a.yaml", "b.yaml", "c.yaml", "--junit", "out.xml", "--html", "out.html") == 0
    assert verdicts(folder) == {"a": "passed", "b": "skipped", "c": "passed"}
    [skipped] = ElementTree.parse(folder / "out.xml").iter("skipped")
    assert skipped.get("message") == "docker: not found; install it"
    assert "docker: not found" in (folder / "out.html").read_text()
    out, err = capsys.readouterr()
    assert "docker: not found; install it" in out
    assert out.endswith("2 passed, 1 skipped\n")
    assert err == ""


def test_strict_lets_none_be_skipped(folder, capsys):
    assert run("a.yaml", "b.yaml", "--strict") == 3
    assert verdicts(folder) == {"a": "passed", "b": "skipped"}
    assert capsys.readouterr().err == "--strict: 1 of 2 were skipped\n"
    assert run("a.yaml", "--strict") == 0


def test_one_scenario_alone_that_lacks_something_is_three(folder, capsys):
    assert run("b.yaml", "--seeds", "1-2") == 3
    assert verdicts(folder) == {"b": "skipped"}
    assert capsys.readouterr().err == f"docker: not found; install it (see {DOCUMENTATION})\n"


def test_a_cluster_that_cannot_be_had_skips_all_and_is_three(folder, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert run("a.yaml", "c.yaml", "--cluster", "kind") == 3
    assert verdicts(folder) == {"a": "skipped", "c": "skipped"}
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("--cluster kind: docker is not on PATH")
    assert err.count("\n") == 1


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 3)])
def test_that_nothing_was_run_is_shown_loudly(strict, code, folder, capsys):
    for name in ("a", "c"):
        path = folder / f"{name}.yaml"
        path.write_text(path.read_text() + "requires: {time: wall}\n")
    assert run("a.yaml", "c.yaml", *strict) == code
    out, err = capsys.readouterr()
    assert out.endswith("2 skipped: NOTHING WAS RUN\n")
    assert err == "WARNING: nothing was run: all 2 were skipped: needs time wall, this run has virtual\n"


def test_files_that_turn_out_to_be_wrong_break_their_run_alone_and_are_two(folder, capsys):
    assert run(".") == 2
    assert verdicts(folder) == {"a": "passed", "b": "skipped", "c": "passed", "d": "error"}
    assert capsys.readouterr().err == "d.yaml:4: hardware: 'demo': wrong\n"


def test_a_sweep_resumed_runs_what_was_lacking(folder, capsys, monkeypatch):
    sweep = ("a.yaml", "b.yaml", "--results", "sweep.jsonl")
    assert run(*sweep) == 0
    assert len((folder / "sweep.jsonl").read_text().splitlines()) == 1
    monkeypatch.setattr(mews.harness.clusters, "open_cluster", open_cluster)
    assert run(*sweep, "--resume") == 0
    assert verdicts(folder) == {"a": "passed", "b": "passed"}
    assert len((folder / "sweep.jsonl").read_text().splitlines()) == 2
    capsys.readouterr()


def test_scenarios_are_selected_by_their_labels(folder, capsys):
    assert run(".", "--select", "suite=smoke") == 0
    assert verdicts(folder) == {"a": "passed", "b": "skipped"}
    assert run(".", "--select", "suite!=smoke,suite in (slow,x)") == 2
    assert set(verdicts(folder)) == {"c", "d"}
    capsys.readouterr()


@pytest.mark.parametrize(
    ("selector", "says"),
    [
        (
            "suite=none",
            "--select suite=none: none of 4 scenarios has such metadata.labels; there are suite=slow, suite=s",
        ),
        ("suite in smoke", "must be labels, such as suite=smoke,speed!=slow"),
        ("", "--select: must be labels"),
    ],
)
def test_labels_that_select_nothing_are_refused(selector, says, folder, capsys):
    assert run(".", "--select", selector) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1
