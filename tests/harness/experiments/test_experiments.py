"""The runner of experiments, on a toy: tasks in processes of their own, rows in their order, files that can be read."""

import asyncio
import csv
import json
import time

import pytest
from msgspec.structs import replace

from mews.harness.cli import exit_code
from mews.harness.clusters.unit import COMPONENT
from mews.harness.experiments.accounting import accounted
from mews.harness.experiments.playing import scenario_of
from mews.harness.experiments.runner import run_experiment
from mews.harness.experiments.tables import csv_text
from mews.harness.experiments.timing import cpu_seconds
from mews.harness.scenario.errors import ScenarioError
from mews.kube.system.experiment import (
    Axis,
    Comparison,
    Experiment,
    ExperimentPart,
    Figure,
    Panel,
    ScenarioPart,
    ScenarioTask,
    Series,
    first_seeds,
)
from mews.kube.system.sweeping import with_curves


def squared(task):
    return task * task


def rows_of(seeds, results):
    return [{"seeds": len(seeds), "sum": sum(results), "all": list(results)}]


TOY = Experiment(
    name="toy",
    summary="squares",
    parts=(
        ExperimentPart("squares", "", 3, lambda seeds: [seed - 1 for seed in seeds], squared, rows_of),
        ExperimentPart("more", "", 1, lambda seeds: [10 for _ in seeds], squared, rows_of),
    ),
    title="Squares",
    notes=("{squares} seeds, {more} more.",),
    found=lambda tables, seeds: [f"sum {tables['squares'][0]['sum']} of {seeds['squares']}"],
    comparisons=lambda tables: [Comparison("sum", ours=float(tables["squares"][0]["sum"]), paper=5.0)],
)

REPORT = """\
# Squares

2 seeds, 1 more.

sum 1 of 2

| | paper | measured | ours | 95 % |
|---|---|---|---|---|
| sum | 5 |  | 1 |  |
"""


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr("mews.harness.systems.all_experiments", lambda: {"toy": TOY})


@pytest.mark.parametrize("processes", [1, 3])
def test_rows_come_in_the_order_of_the_tasks_however_many_processes_run_them(processes):
    tables = run_experiment(TOY, {"squares": first_seeds(4)}, processes=processes)
    assert tables["squares"] == [{"seeds": 4, "sum": 14, "all": [0, 1, 4, 9]}]
    assert tables["more"] == [{"seeds": 1, "sum": 100, "all": [100]}]


def test_the_report_goes_to_standard_output_unless_files_are_asked_for(toy, capsys, tmp_path):
    assert exit_code(["experiment", "toy", "--seeds", "2"]) == 0
    assert capsys.readouterr().out == REPORT
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


def test_any_seeds_may_be_chosen(tmp_path, toy):
    out = tmp_path / "toy.json"
    assert exit_code(["experiment", "toy", "--seeds", "2001-2003", "--seeds", "more=7-8", "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    assert found["squares"] == [{"seeds": 3, "sum": 2000**2 + 2001**2 + 2002**2, "all": [2000**2, 2001**2, 2002**2]}]
    assert (found["seeds"], found["first_seed"], found["more_seeds"], found["more_first_seed"]) == (3, 2001, 2, 7)


@pytest.mark.parametrize(
    ("seeds", "why"),
    [
        ("5-3", "the first must not be above the last"),
        ("0-3", "must be N or A-B"),
        ("1-", "must be N or A-B"),
        ("-3", "must be N or A-B"),
        ("1-2-3", "must be N or A-B"),
        ("more=x", "must be N or A-B"),
    ],
)
def test_seeds_that_are_none_are_refused_in_one_line(seeds, why, toy, capsys):
    assert exit_code(["experiment", "toy", "--seeds", seeds]) == 2
    assert capsys.readouterr().err.startswith(f"--seeds {seeds}: {why}")


@pytest.mark.parametrize("arguments", [["none"], ["toy", "--seeds", "0"], ["toy", "--seeds", "less=2"], []])
def test_what_cannot_be_run_is_refused_in_one_line(toy, arguments, capsys):
    assert exit_code(["experiment", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_columns_that_hold_lists_stay_out_of_the_csv():
    assert csv_text([{"a": 1, "b": [1, 2]}]) == "a\n1\n"


def verdict_kept(task, played):
    return {**task.about, "verdict": played.verdict, "moved": played.metrics["moved_gpus"], "lines": len(played.lines)}


def asking_for(scenario, **overrides):
    part = ScenarioPart(
        "runs",
        "",
        1,
        lambda seeds: [ScenarioTask(scenario, seed, overrides, {"seed": seed}) for seed in seeds],
        verdict_kept,
        lambda seeds, results: list(results),
    )
    return Experiment("toy", "a scenario", (part,))


def test_a_part_may_ask_for_a_shipped_scenario_which_the_harness_plays():
    (row,) = run_experiment(asking_for("demo"), {}, processes=1)["runs"]
    assert (row["seed"], row["verdict"], row["moved"]) == (1, "passed", 1)
    assert row["lines"] > 50


def test_a_scenario_that_must_pass_and_does_not_ends_the_experiment_with_one_line(monkeypatch, capsys):
    failing = asking_for("demo", **{"steps.5.wait": {"hosts": {"host-1": 9}}, "steps.5.timeout": "1s"})
    monkeypatch.setattr("mews.harness.systems.all_experiments", lambda: {"toy": failing})
    assert exit_code(["experiment", "toy", "--jobs", "1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("experiment toy: scenario demo, seed 1: failed: ")


def test_a_scenario_that_is_not_shipped_is_named():
    with pytest.raises(ScenarioError, match="nowhere: no included scenario has that name"):
        scenario_of(ScenarioTask("nowhere", 1))


def test_decisions_are_timed_by_what_one_call_costs():
    def prepare(count):
        return lambda: sum(range(count))

    assert cpu_seconds(prepare, 30_000) > 3 * cpu_seconds(prepare, 3_000) > 0


def test_cpu_time_is_booked_on_the_component_in_whose_context_it_is_spent():
    def burn():
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            pass

    async def component(name, burns):
        COMPONENT.set(name)
        for _ in range(burns):
            burn()
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(asyncio.create_task(component("busy", 4)), asyncio.create_task(component("idle", 1)))
        await asyncio.sleep(0.2)

    with accounted(0.1) as account:
        asyncio.run(main())
    assert set(account.shares) == {"busy", "idle"}
    assert sum(account.shares["busy"]) > 2 * sum(account.shares["idle"]) > 0


def compared_panels(**options):
    low, high = (Series("one", (1.0, top), at=(0.0, 1.0)) for top in (2.0, 8.0))
    other = Series("a name that is longer than the plot is wide, as long names are", (1.0, 1.0), at=(0.0, 4.0))
    panels = (Panel("a", (low, other), x_label="s", band=(0.5, 0.7)), Panel("b", (high, other), x_label="s"))
    return Figure("it", "lines", "y", panels, **options)


def test_panels_share_their_axes_unless_they_show_different_quantities():
    pytest.importorskip("matplotlib")
    from mews.harness.experiments.drawing import drawn_of

    left, right = drawn_of(compared_panels()).axes
    assert (left.get_ylim(), left.get_xlim()) == (right.get_ylim(), right.get_xlim())
    left, right = drawn_of(compared_panels(same_scale=False)).axes
    assert left.get_ylim() != right.get_ylim()


def test_a_legend_lies_below_the_plots_and_names_the_papers_band():
    pytest.importorskip("matplotlib")
    from mews.harness.experiments.drawing import drawn_of

    drawn = drawn_of(compared_panels())
    drawn.draw_without_rendering()
    (legend,) = drawn.legends
    assert {text.get_text() for text in legend.get_texts()} >= {"one", "paper"}
    box = legend.get_window_extent()
    assert not any(box.overlaps(axis.get_tightbbox()) for axis in drawn.axes)
    assert box.x1 - box.x0 > 0


def test_without_what_draws_the_numbers_are_written_first_and_then_one_line_says_what_is_missing(
    toy, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("mews.harness.extras.find_spec", lambda module: None)
    drawn = replace(TOY, figures=lambda tables: [compared_panels()])
    monkeypatch.setattr("mews.harness.systems.all_experiments", lambda: {"toy": drawn})
    assert exit_code(["experiment", "toy", "--out", str(tmp_path / "out"), "--jobs", "1"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "numbers are written, figures are not: matplotlib is not installed; pip install" in line
    assert json.loads((tmp_path / "out" / "result.json").read_text())["rows"][0]["ours"] == 5.0
    assert (tmp_path / "out" / "index.html").is_file()


SWEPT = Experiment(
    name="swept",
    summary="a factor",
    parts=TOY.parts[:1],
    title="Factors",
    notes=("{squares} seeds.",),
    comparisons=lambda tables: [Comparison("sum", ours=float(tables["squares"][0]["sum"]))],
    axes=(Axis("factor", "times", 2.0, (1.0, 2.0), 0.0, 9.0),),
    at=lambda values: replace(SWEPT, parts=(scaled(int(values["factor"])),)),
    curve=lambda tables: [Comparison("sum", ours=float(tables["squares"][0]["sum"]), paper=5.0)],
)


def scaled(factor):
    def tasks(seeds):
        return [factor * (seed - 1) for seed in seeds]

    return ExperimentPart("squares", "", 3, tasks, squared, rows_of)


def test_a_sweep_has_a_point_for_each_value_and_a_value_may_be_set_alone(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("mews.harness.systems.all_experiments", lambda: {"swept": SWEPT})
    assert exit_code(["experiment", "swept", "--set", "factor=3"]) == 0
    assert "| sum |  |  | 45 |  |" in capsys.readouterr().out
    out = tmp_path / "out"
    assert exit_code(["experiment", "swept", "--sweep", "factor=3,1", "--seeds", "4", "--json", str(out)]) == 0
    rows = json.loads(out.read_text())["curves"]
    assert [(row["axis"], row["value"], row["ours"], row["paper"]) for row in rows] == [
        ("factor", 1.0, 14.0, 5.0),
        ("factor", 3.0, 126.0, 5.0),
    ]


def test_curves_beside_an_experiment_are_of_the_shipped_values_with_the_papers_band():
    both = with_curves(SWEPT, 2)
    tables = run_experiment(both, {"squares": first_seeds(3)}, processes=1)
    (figure,) = both.figures(tables)
    (panel,) = figure.panels
    assert panel.series[0].at == (1.0, 2.0)
    assert panel.series[0].values == (1.0, 4.0)
    assert panel.band == (4.95, 5.05)
    assert [each.name for each in both.comparisons(tables)] == ["sum", "factor=1: sum", "factor=2: sum"]


@pytest.mark.parametrize("kind", ["bars", "lines", "steps", "points"])
def test_every_kind_of_figure_is_drawn_as_svg(kind, tmp_path):
    pytest.importorskip("matplotlib")
    from mews.harness.experiments.drawing import draw

    series = (Series("one", (1.0, 2.0), spread=(0.1, 0.2)), Series("two", (2.0, 3.0), at=(0.0, 1.0)))
    (path,) = draw([Figure("it", kind, "y", (Panel("title", series, places=("a", "b")),))], tmp_path)
    assert path.read_text().startswith("<?xml")
