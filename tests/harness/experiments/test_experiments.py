"""The runner of experiments, on a toy: tasks in processes of their own, rows in their order, files that can be read."""

import csv
import json

import pytest

from mews.harness.cli import exit_code
from mews.harness.experiments.runner import run_experiment
from mews.harness.experiments.tables import csv_text
from mews.kube.system.experiment import Comparison, Experiment, ExperimentPart


def squared(task):
    return task * task


def rows_of(seeds, results):
    return [{"seeds": seeds, "sum": sum(results), "all": list(results)}]


TOY = Experiment(
    name="toy",
    summary="squares",
    parts=(
        ExperimentPart("squares", "", 3, lambda seeds: list(range(seeds)), squared, rows_of),
        ExperimentPart("more", "", 1, lambda seeds: [10] * seeds, squared, rows_of),
    ),
    report=lambda tables, seeds: f"sum {tables['squares'][0]['sum']} of {seeds['squares']}\n",
    comparisons=lambda tables: [Comparison("sum", ours=float(tables["squares"][0]["sum"]), paper=5.0)],
)


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr("mews.harness.systems.all_experiments", lambda: {"toy": TOY})


@pytest.mark.parametrize("processes", [1, 3])
def test_rows_come_in_the_order_of_the_tasks_however_many_processes_run_them(processes):
    tables = run_experiment(TOY, {"squares": 4}, processes=processes)
    assert tables["squares"] == [{"seeds": 4, "sum": 14, "all": [0, 1, 4, 9]}]
    assert tables["more"] == [{"seeds": 1, "sum": 100, "all": [100]}]


def test_the_report_goes_to_standard_output_unless_files_are_asked_for(toy, capsys, tmp_path):
    assert exit_code(["experiment", "toy", "--seeds", "2"]) == 0
    assert capsys.readouterr().out == "sum 1 of 2\n"
    assert exit_code(["experiment", "toy", "--json", str(tmp_path / "toy.json")]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads((tmp_path / "toy.json").read_text())["squares"][0]["all"] == [0, 1, 4]


def test_a_folder_gets_the_comparison_the_tables_and_a_page(toy, tmp_path):
    assert exit_code(["experiment", "toy", "--seeds", "1-3", "--seeds", "more=2", "--out", str(tmp_path / "out")]) == 0
    made = tmp_path / "out"
    assert json.loads((made / "result.json").read_text()) == {
        "experiment": "toy",
        "rows": [{"name": "sum", "ours": 5.0, "paper": 5.0, "measured": None, "low": None, "high": None}],
    }
    assert list(csv.DictReader((made / "more.csv").read_text().splitlines())) == [{"seeds": "2", "sum": "200"}]
    assert "sum 5 of 3" in (made / "index.html").read_text()


@pytest.mark.parametrize("arguments", [["none"], ["toy", "--seeds", "0"], ["toy", "--seeds", "less=2"], []])
def test_what_cannot_be_run_is_refused_in_one_line(toy, arguments, capsys):
    assert exit_code(["experiment", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_columns_that_hold_lists_stay_out_of_the_csv():
    assert csv_text([{"a": 1, "b": [1, 2]}]) == "a\n1\n"
