"""The paper's experiment, on two of its cells and one seed: what is measured, tabulated and drawn."""

import functools

import pytest

from mews.kube.system.experiment import first_seeds
from mews.kube.system.statistics import sign_test
from mews.systems.kod2.experiment.cells import Assumptions
from mews.systems.kod2.experiment.figures import figures
from mews.systems.kod2.experiment.parts import sensitivity_rows, sensitivity_tasks, speed_rows, speed_tasks
from mews.systems.kod2.experiment.report import markdown
from mews.systems.kod2.experiment.run import STARVE_LIMITS_S, VARIANTS, intervals_of, reduction, run_cell


@functools.cache
def rows():
    found = []
    for batch in (64, 128):
        cell = run_cell(("VGG-16", batch, 3, tuple(VARIANTS), Assumptions()))
        found += [
            {"model": "VGG-16", "batch": batch, "variant": name, **numbers, **intervals_of([numbers, numbers])}
            for name, numbers in cell.items()
        ]
    return found


def of(variant, batch=64):
    return next(row for row in rows() if (row["variant"], row["batch"]) == (variant, batch))


def test_both_modes_both_baselines_the_ablations_and_the_sweep_are_run():
    names = {"kod2", "literal", "random", "default", "no-preemption", "no-scale-out", "no-affinity"}
    assert names | {f"starve-{limit_s:g}" for limit_s in STARVE_LIMITS_S} == set(VARIANTS)
    assert {row["variant"] for row in rows()} == set(VARIANTS)


def test_what_is_switched_off_does_not_happen():
    assert of("kod2")["removed"] > 0
    assert of("no-preemption")["removed"] == 0
    assert of("no-scale-out")["added"] == 0 < of("kod2")["added"]
    assert of("starve-inf")["removed"] <= of("kod2")["removed"]


def test_a_baseline_that_hangs_has_dead_jobs_and_holds_cores_it_does_not_use():
    random, ours = of("random"), of("kod2")
    assert ours["dead"] == 0 < random["dead"]
    assert random["jct_all_s"] > random["jct_s"]
    assert random["utilisation_in_span"] < ours["utilisation_in_span"] <= 1.0
    assert max(ours["busy"]) <= 1.0
    assert set(random["busy"][60:120]) == {0.0}, "from the first hour to the second all that is held lies idle"


def test_the_tables_name_every_cell_and_what_the_paper_found():
    grid = [{"workers": "3-6", "deadline_s": 3600.0, "reduction": 0.1, "reduction_all": 0.2, "dead": 1.5,
             "utilisation": 0.5}]  # fmt: skip
    speeds = [{"core_gflops": 120.0, "deadline_s": 7200.0, "faster_completed": 17, "faster_all": 20,
               "change_completed": -0.8, "change_all": None}]  # fmt: skip
    text = markdown(rows(), grid, speeds, seeds=1)
    for line in ("| 64 | VGG-16 |", "| 128 | VGG-16 |", "-84 %", "+92 %", "| no-affinity |", "| never |"):
        assert line in text
    assert "| 120 | 7200 | 17 / 20 | -80 % / – |" in text
    assert "| 3-6 | 3600 | -10 % / -20 % | 1.5 | +50 % |" in text


def test_how_sure_means_are_and_when_the_whole_work_ends_are_printed_with_the_number_of_seeds():
    text = markdown(rows(), [], [], seeds=2)
    assert "over 2 seeds, ± half of its 95 % interval" in text
    ours, random = of("kod2"), of("random")
    later = f"{random['done_later_s'] / 60:.0f} ± 0 / {random['later_s'] / 60:.0f} ± 0"
    assert f"| 64 | VGG-16 | {ours['end_s'] / 60:.0f} ± 0 | {later} |" in text
    assert random["later_s"] == random["end_s"] - ours["end_s"] > 0 == ours["later_s"]
    assert f"({random['dead']:.1f} ± 0.0)" in text


def test_an_interval_needs_two_runs_and_shrinks_with_more():
    one, two, many = ([{"dead": float(n % 2)} for n in range(count)] for count in (1, 2, 30))
    assert intervals_of(one)["dead_ci"] is None
    assert intervals_of(two)["dead_ci"] == pytest.approx(12.71 * 0.5**0.5 / 2**0.5)
    assert intervals_of(many)["dead_ci"] == pytest.approx(2.045 * 0.5085 / 30**0.5, rel=1e-2)
    assert intervals_of(many)["seeds"] == 30


def test_a_difference_that_is_always_there_is_no_chance_and_one_of_either_sign_is():
    assert sign_test([1.0] * 12) < 0.01
    assert sign_test([1.0, -1.0] * 6) > 0.5


def test_the_figures_show_completion_and_busy_cores():
    completion, busy = figures({"rows": rows()})
    assert [panel.title for panel in completion.panels] == ["batch 64", "batch 128"]
    [series, *_] = completion.panels[0].series
    assert (series.label, series.values) == ("KOD2", (of("kod2")["jct_all_s"],))
    assert [panel.title for panel in busy.panels] == ["VGG-16, batch 64"]
    assert max(busy.panels[0].series[0].values) <= 100.0


def test_the_figures_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (pip install 'falcon-mews[plots]')")
    from mews.harness.experiments.drawing import draw

    draw(figures({"rows": rows()}), tmp_path)
    assert all("<svg" in (tmp_path / f"kod2-{name}.svg").read_text() for name in ("jct", "cpu"))


def test_tasks_and_rows_of_the_sensitivity_belong_together():
    tasks = sensitivity_tasks(first_seeds(2))
    assert len(tasks) == len(set(tasks)) == 9 * 2 * 4 * 2
    numbers = [{name: {"jct_s": 1.0, "jct_all_s": 2.0, "dead": 0, "utilisation_in_span": 0.5, "end_s": float(n)}
                for name in ("kod2", "random")} for n in range(len(tasks))]  # fmt: skip
    for number, (_, batch, *_) in enumerate(tasks):
        numbers[number]["kod2"]["jct_s"] = 0.5 if batch == 128 else 1e9
    found = sensitivity_rows(first_seeds(2), numbers)
    assert [(row["workers"], row["deadline_s"]) for row in found][:2] == [("2-5", 3600.0), ("2-5", 7200.0)]
    assert {row["reduction"] for row in found} == {0.5}


def test_the_speeds_of_a_core_are_counted_over_all_cells():
    tasks = speed_tasks(first_seeds(1))
    assert len(tasks) == len(set(tasks)) == 5 * 3 * 20
    # KOD2 is slower in CNN-rand's cells where jobs hang for an hour, and nowhere else.
    numbers = [
        {"kod2": {"jct_s": 2.0 if (model, given.deadline_s) == ("CNN-rand", 3600.0) else 0.5, "jct_all_s": None},
         "random": {"jct_s": 1.0, "jct_all_s": 1.0}}
        for model, _, _, _, given in tasks
    ]  # fmt: skip
    found = speed_rows(first_seeds(1), numbers)
    assert [row["faster_completed"] for row in found] == [15, 20, 20] * 5
    assert {(row["change_completed"], row["change_all"], row["faster_all"]) for row in found} == {(-0.5, None, 0)}
    assert [(row["core_gflops"], row["deadline_s"]) for row in found][2:4] == [(15.0, 10800.0), (30.0, 3600.0)]


def test_a_reduction_is_the_share_saved():
    assert reduction(20.0, 100.0) == pytest.approx(0.8)
    assert reduction(None, 100.0) != reduction(None, 100.0), "nothing to compare with"
