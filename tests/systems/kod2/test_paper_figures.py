"""Figs. 4, 7 and 8 of the paper in a smaller form."""

from mews.kube.system.experiment import first_seeds
from mews.systems.kod2.experiment import paper
from mews.systems.kod2.experiment.cells import BATCHES, MODELS, Assumptions
from mews.systems.kod2.system import SYSTEM


def by_name(comparisons):
    return {each.name: each for each in comparisons}


def test_all_of_them_have_their_names_beside_the_whole_experiment():
    assert [each.name for each in SYSTEM.studies.experiments()] == ["kod2", "kod2-fig4", "kod2-fig7", "kod2-fig8"]


def test_fig_4_training_time_falls_with_every_worker():
    rows = paper.flat(first_seeds(1), [paper.fig4_run(model) for model in paper.fig4_tasks(first_seeds(1))])
    found = by_name(paper.FIG4.comparisons({"rows": rows}))
    assert found["models whose time falls with every worker"].ours == 4
    assert 0.1 < found["VGG-16: time with 8 workers over 1"].ours < 0.3
    assert len(paper.FIG4.figures({"rows": rows})[0].panels) == 4


def fig7_rows(random_s):
    rows = []
    for model in MODELS:
        for batch in BATCHES:
            for variant in paper.SHOWN:
                jct = 100.0 if variant == "kod2" else random_s(model, batch)
                rows.append({"model": model, "batch": batch, "seed": 1, "variant": variant,
                             "jct_s": jct, "jct_all_s": 2 * jct, "dead": 0, "end_s": 1.0})  # fmt: skip
    return rows


def test_fig_7_all_models_faster_is_a_row_that_can_be_less_than_four():
    slower = fig7_rows(lambda model, batch: 80.0 if (model, batch) == ("VGG-16", 8) else 500.0)
    found = by_name(paper.FIG7.comparisons({"rows": slower}))
    assert found["largest change of the mean JCT of all models at batch 128, completed jobs"].ours == -0.8
    assert found["share of cells in which KOD2 is faster, completed jobs"].ours == 0.95
    assert found["all models faster (completed jobs): models faster at every batch"].ours == 3
    assert found["all models faster (completed jobs): models faster on average"].ours == 4
    assert [figure.name for figure in paper.FIG7.figures({"rows": slower})] == ["kod2-fig7-completed", "kod2-fig7-all"]


def test_the_papers_84_percent_stands_beside_vgg_16_at_batch_128_and_nothing_else():
    largest = fig7_rows(lambda model, batch: 200.0 if (model, batch) == ("VGG-16", 128) else 1000.0)
    found = paper.FIG7.comparisons({"rows": largest})
    beside = [(each.name, each.ours) for each in found if each.paper == -0.84]
    assert beside == [("change of the mean JCT, VGG-16, batch 128, completed jobs", -0.5)]


def test_fig_7_is_swept_by_the_speed_of_a_core_and_by_when_a_job_that_hangs_is_ended():
    given = {task[-1] for task in paper.FIG7.at({"core": 120.0}).at({"deadline": 60.0}).parts[0].tasks(first_seeds(1))}
    assert [(each.core_gflops, each.deadline_s) for each in given] == [(120.0, 60.0)]
    assert {axis.name: axis.shipped for axis in paper.FIG7.axes} == {"core": 30.0, "deadline": 10800.0}


def test_fig_7_is_of_every_cell_with_both_baselines():
    tasks = paper.fig7_tasks(Assumptions(), first_seeds(2))
    assert len(tasks) == 40
    numbers = {name: {"jct_s": 1.0, "jct_all_s": 2.0, "dead": 0, "end_s": 3.0} for name in paper.SHOWN}
    assert len(paper.fig7_rows(Assumptions(), first_seeds(2), [numbers] * 40)) == 120


def test_fig_8_names_start_jump_fall_and_tail_of_the_baselines_curve():
    busy = [0.2] * 10 + [0.3] * 20 + [0.1] * 10 + [0.8] * 12 + [0.2] * 10
    shape = paper._shape(busy, [40])
    assert (round(shape["start"], 9), round(shape["before"], 9)) == (0.2, 0.1)
    assert round(shape["after"], 9) == 0.8
    assert shape["then"] < 0.5
    assert paper._shape(busy[:40], [39])["after"] is None, "nothing goes on after the last death"


def test_fig_8_the_operator_keeps_more_cores_busy_than_the_baseline():
    rows = paper.fig8_rows(first_seeds(1), [paper.fig8_run((model, 3)) for model in MODELS])
    found = by_name(paper.FIG8.comparisons({"rows": rows}))
    assert found["change of CPU utilisation: VGG-16"].ours > 0
    assert found["change of CPU utilisation: VGG-16"].paper == 0.92
    assert 0 < found["baseline, low start: first ten minutes over its peak"].ours <= 1
    single, means = paper.FIG8.figures({"rows": rows})
    assert len(single.panels) == len(means.panels) == 4
