"""The paper's figures in a smaller form: what is drawn says what the paper says, and what is compared was run."""

import functools
import random
from itertools import pairwise

import pytest

from mews.harness.experiments.playing import play
from mews.harness.experiments.timing import cpu_seconds
from mews.kube.system.comparing import report
from mews.kube.system.experiment import RecordedJobs, first_seeds
from mews.kube.system.journal import Line
from mews.kube.system.sweeping import CURVES, swept
from mews.systems.kubecomp.experiment import complexity, fig11, fig12, fig13, overhead, runs, table3
from mews.systems.kubecomp.experiment.all import EXPERIMENTS
from mews.systems.kubecomp.experiment.fig8 import FIG8
from mews.systems.kubecomp.experiment.fig9 import FIG9
from mews.systems.kubecomp.experiment.fig10 import FIG10
from mews.systems.kubecomp.experiment.helios import drawn_log
from mews.systems.kubecomp.experiment.simulator import NODE_CPUS, Simulation, nodes_of
from mews.systems.kubecomp.experiment.workloads import WORKLOADS, WorkloadJob, drawn
from mews.systems.kubecomp.policy import Policy
from mews.systems.kubecomp.results import detection_seconds


def by_name(comparisons):
    return {each.name: each for each in comparisons}


# Figs. 8 to 10


@functools.cache
def played():
    """One real run, put in the place of every cell, each a little different."""
    kept = play(runs.keep, runs.task_of("W2", "pool", 1), may_fail=True)
    waits = {"pool": 1.0, "4-4": 1.5, "0-8": 5.0}
    return [{**kept, "workload": w, "setting": s, "mean_wait_s": kept["mean_wait_s"] * waits[s]} for w, s in runs.CELLS]


def test_a_drawn_workload_runs_on_the_testbeds_components_with_the_jobs_of_table_ii():
    kept = played()[0]
    assert kept["verdict"] == "passed"
    assert 300 < kept["mean_jct_s"] - kept["mean_wait_s"] < 330
    assert kept["gpu_used_cdf"][-1][1] == 1.0
    assert kept["simulated_jct_s"] == pytest.approx(kept["mean_jct_s"], rel=0.15)
    assert {task.about["setting"] for task in runs.tasks(first_seeds(1))} == {"pool", "4-4", "0-8"}


@pytest.mark.parametrize("setting", runs.SETTINGS)
def test_only_what_no_node_can_run_is_left_out_and_settings_share_their_jobs(setting):
    whole = drawn(WORKLOADS["W4"], 3)
    jobs = runs.jobs_of("W4", setting, 3)
    assert [job for job in whole if job not in jobs] == (
        [j for j in whole if j.type == "E"] if setting == "4-4" else []
    )
    assert len(whole) == 25
    assert whole[0].arrival_s == 0


def test_fig_8_compares_with_the_measured_runs_and_the_papers_reduction():
    found = by_name(FIG8.comparisons({"runs": played()}))
    assert found["largest reduction of the wait by pooling"].ours == pytest.approx(0.8)
    assert found["W4: how much longer the wait is with 0-8"].ours == pytest.approx(4.0)
    assert found["W4: how much longer the wait is with 0-8"].paper == 0.25
    (figure,) = FIG8.figures({"runs": played()})
    assert [series.label for series in figure.panels[0].series] == ["pool", "4-4", "0-8"]
    assert "| mean wait, s: W3, 4-4 |" in report(FIG8, {"runs": played()}, {"runs": first_seeds(1)})


def test_a_replayed_run_brings_what_was_measured():
    task = runs.task_of("W1", "pool", 1)
    assert task.scenario == "testbed/w1-pool"
    assert task.overrides == {}


def test_fig_9_draws_distributions_that_reach_one():
    (figure,) = FIG9.figures({"runs": played()})
    for panel in figure.panels:
        for series in panel.series:
            assert len(series.values) == 9
            assert series.values[-1] == pytest.approx(1.0)
            assert all(low <= high for low, high in pairwise(series.values))
    assert by_name(FIG9.comparisons({"runs": played()}))["mean GPUs in use: W1, 0-8"].measured == 2.37


def test_fig_10_has_machine_and_simulator_side_by_side():
    found = by_name(FIG10.comparisons({"runs": played()}))
    assert found["mean JCT, s: W3, pool, machine"].measured == 705.5
    assert found["machine against simulator: median difference"].ours < 0.15
    assert [series.label for series in FIG10.figures({"runs": played()})[0].panels[0].series] == [
        "machine",
        "simulator",
    ]


def test_each_outcome_of_the_toss_counts_once():
    rows = [{"first": "a", "x": 1.0}, {"first": "a", "x": 3.0}, {"first": "b", "x": 8.0}]
    assert sorted(runs.tossed(rows, "x")) == [2.0, 8.0]


# The simulator and Figs. 11 to 13


def simulated_jobs(split, *, pooled, policy=Policy.BOTH, seed=1, mix="W3"):
    jobs = drawn(WORKLOADS[mix], seed)
    return Simulation(nodes_of(split), jobs, pooled, random.Random(seed), policy).run()


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("seed", range(1, 6))
def test_jobs_start_in_the_order_of_arrival_and_no_node_has_more_than_it_has(pooled, seed):
    done = simulated_jobs((4, 4), pooled=pooled, seed=seed)
    starts = [job.start_s for job in done]
    assert starts == sorted(starts)
    assert all(job.wait_s >= 0 for job in done)
    for moment in starts:
        running = [job for job in done if job.start_s <= moment < job.end_s]
        assert sum(job.job.gpus for job in running) <= 8
        for node in {job.node for job in running}:
            there = [job.job for job in running if job.node == node]
            assert sum(job.cpus for job in there) <= NODE_CPUS
            assert pooled or sum(job.gpus for job in there) <= 4


def test_a_fixed_split_moves_nothing_and_a_job_too_large_for_it_never_runs():
    done = simulated_jobs((4, 4), pooled=False, mix="W4")
    assert sum(job.moved for job in done) == 0
    assert any(job.start_s is None and job.job.type == "E" for job in done)
    assert all(job.start_s is not None for job in simulated_jobs((4, 4), pooled=True, mix="W4"))


def run_part(experiment, seeds):
    (part, *_) = experiment.parts
    wanted = first_seeds(seeds)
    return {part.name: part.rows(wanted, [part.run(task) for task in part.tasks(wanted)])}


def test_a_gated_job_comes_when_the_one_before_it_runs():
    jobs = [WorkloadJob(name, "B", 1, 40, 0.0, 100.0) for name in "ab"]
    for gate_s, second_s in ((None, 0.0), (1.8, 6.8)):
        done = Simulation(
            nodes_of((4, 4)), jobs, False, random.Random(1), start_s=lambda idle: 5.0, gate_s=gate_s
        ).run()
        assert [job.start_s for job in done] == [0.0, second_s]


def test_a_reconfiguration_takes_its_own_time_beside_that_of_its_moves():
    jobs = [WorkloadJob("d", "D", 4, 40, 0.0, 100.0)]
    for split, start_s in (((3, 3), 26.9), ((4, 2), 0.0)):
        (done,) = Simulation(nodes_of(split), jobs, True, random.Random(1), move_s=20.9, reconfigure_s=6.0).run()
        assert done.start_s == pytest.approx(start_s)


def test_fig_11_has_both_costs_of_a_move_side_by_side_and_no_bar_for_a_split_that_cannot_run_the_mix():
    tables = run_part(fig11.FIG11, 3)
    found = by_name(fig11.FIG11.comparisons(tables))
    assert found["mean wait, s: 50 %, 6-6-6-6, 20.9 s a move"].ours is None
    alone = [found[f"mean wait, s: 100 % A, {split}, 20.9 s a move"].ours for split in ("pool", "6-6-6-6")]
    assert alone[0] == alone[1]
    assert found["mixes in which the pool waits least (2 % allowed), 0 s a move"].ours == 6
    dear, free = (found[f"mean wait, s: 100 % E, pool, {move_s} s a move"].ours for move_s in ("20.9", "0"))
    assert free < dear
    (figure,) = fig11.FIG11.figures(tables)
    assert [panel.title for panel in figure.panels] == ["mix of A and E, 20.9 s a move", "mix of A and E, 0 s a move"]
    assert figure.same_scale


def test_fig_12_normalises_by_one_fixed_pool_and_pooling_waits_less(monkeypatch):
    monkeypatch.setattr(fig12, "JOBS", 150)
    found = by_name(fig12.comparisons(run_part(fig12.FIG12, 1)))
    assert found["normalised wait: fixed, 1 pool"].ours == 1.0
    assert 0.1 < found["reduction of the wait by pooling, 1 pool"].ours < 0.6
    assert found["normalised wait: fixed, 6 pools"].ours < found["normalised wait: fixed, 2 pools"].ours < 1.0


def test_the_shipped_point_of_fig_12_lies_on_the_curve_that_a_sweep_of_its_load_draws(monkeypatch):
    monkeypatch.setattr(fig12, "JOBS", 60)
    shipped = fig12.reductions(run_part(fig12.FIG12, 2))
    curve = run_part(swept(fig12.FIG12, {"load": (0.9, 8.0)}), 2)[CURVES]
    assert [row["ours"] for row in curve if row["value"] == 8.0] == [each.ours for each in shipped]
    light, heavy = (row["ours"] for row in curve if row["name"].endswith("1 pool"))
    assert light > heavy
    assert {row["paper"] for row in curve} == {0.30}


def test_the_generated_log_asks_for_what_its_axes_say():
    log = drawn_log(3, jobs=4000, load=2.0, eights=0.25, cpus_per_gpu=6.0, pool_gpus=24)
    assert sum(job.gpus == 8 for job in log) / 4000 == pytest.approx(0.25, abs=0.03)
    assert all(job.cpus == 6.0 * job.gpus for job in log)
    asked = sum(job.gpus * job.duration_s for job in log)
    assert asked / 24 / log[-1].submitted_s == pytest.approx(2.0, rel=0.1)


def test_fig_12_plays_the_jobs_of_a_log_at_its_own_load_and_says_what_it_leaves_out():
    # No GPU, more than a fixed node has, more CPUs than a node has: none of them can run on both clusters.
    log = RecordedJobs("log", (0, 0, 10, 20, 40), (9, 60, 9, 9, 30), (0, 8, 16, 1, 4), (1, 8, 1, 193, 4), left_out=2)
    experiment = fig12.played(log)
    assert {row["jobs"] for row in run_part(experiment, 1)["rows"]} == {2}
    assert fig12.load_of(log) == pytest.approx((8 * 60 + 4 * 30) / (24 * 40))
    note = experiment.notes[0]
    assert "2 jobs with the log's CPUs, at 0.625 times" in note
    assert "1 jobs without GPUs, 2 that need more" in note
    assert "2 that had not ended" in note
    twice = fig12.jobs_of(fig12.Fig12Assumptions(load=1.25, cpus=3.0, log=log), 1)
    assert [(job.arrival_s, job.cpus) for job in twice] == [(0.0, 24), (20.0, 12)]
    assert "eights" not in {axis.name for axis in experiment.axes}
    with pytest.raises(ValueError, match="no job has 1 to 8 GPUs"):
        fig12.played(RecordedJobs("log", (0,), (1,), (16,), (1,)))


def test_fig_13_both_branches_of_equation_1_move_fewer_than_either_and_none_moves_most():
    found = by_name(fig13.FIG13.comparisons(run_part(fig13.FIG13, 4)))
    for policy in ("best-fit", "least-demand", "both"):
        assert found[f"intervals at which {policy} moves fewer than none"].ours == 3
    every_minute = [found[f"GPUs moved: every 60 s, {policy.value}"].ours for policy in fig13.POLICIES]
    assert max(every_minute) == every_minute[0]


@pytest.mark.parametrize("experiment", [each for each in EXPERIMENTS if each.axes], ids=lambda each: each.name)
def test_a_shipped_value_of_an_axis_is_among_those_of_its_curve_and_changes_nothing(experiment):
    (part, *_) = experiment.parts
    for axis in experiment.axes:
        assert axis.shipped in axis.values
        assert axis.least <= min(axis.values) <= max(axis.values) <= axis.most
        again = experiment.at({axis.name: axis.shipped}).parts[0]
        task, same = part.tasks(first_seeds(1))[0], again.tasks(first_seeds(1))[0]
        first, second = part.run(task), again.run(same)
        assert second == (first[: len(second)] if isinstance(first, list) else first)


# Table III, overhead, complexity


@functools.cache
def reconfigurations():
    tasks = [task for task in table3.tasks(first_seeds(1)) if task.about["asked"] in (1, 2, 5)]
    return table3.rows(first_seeds(1), [play(table3.keep, task) for task in tasks])


def test_table_iii_has_all_six_rows_and_reallocation_alone_grows_with_the_gpus_moved():
    found = by_name(table3.TABLE3.comparisons({"reconfigurations": reconfigurations()}))
    assert [each.paper for name, each in found.items() if name.startswith("R, ")] == list(table3.PAPER_R.values())
    assert found["R, reallocation (input by GPU)"].ours == pytest.approx(0.992, abs=0.01)
    results = [name.split()[1] for name in found if name.startswith("R, ") and name.endswith("(result)")]
    assert results == ["detection_binding", "total"]
    assert found["seconds a GPU, reallocation"].ours == pytest.approx(20.885, rel=0.1)
    for phase in table3.PAPER_R:
        assert found[f"seconds, {phase}" if phase != "reallocation" else "seconds a GPU, reallocation"].ours > 0
    assert len(table3.TABLE3.figures({"reconfigurations": reconfigurations()})[0].panels) == 6


def test_the_coefficient_is_none_where_nothing_varies():
    assert table3.r_of([{"moved_gpus": 1, "total": 2.0}, {"moved_gpus": 1, "total": 3.0}], "total") is None


def test_a_pod_that_an_orphaned_gpu_keeps_from_its_node_is_counted_and_ends_nothing():
    [task] = [task for task in table3.tasks(first_seeds(92)) if task.seed == 736]
    kept = play(table3.keep, task, may_fail=True)
    assert [row["bound"] for row in kept] == [False]
    assert kept[0][table3.TOTAL] is None
    text = report(table3.TABLE3, {"reconfigurations": kept}, {"reconfigurations": first_seeds(92)})
    assert "1 of the 736 pods were never bound" in text


def test_detection_counts_from_the_last_attach_for_the_pods_node_until_it_is_bound():
    def line(t, layer, actor, event, **fields):
        return Line(0, t, layer, actor, event, fields)

    lines = [
        line(1.0, "api", "pod/default/a", "annotations", annotations={"dst_node": "n1"}),
        line(5.0, "chassis", "chassis/A", "attached", host="n1"),
        line(6.0, "chassis", "chassis/A", "attached", host="n2"),
        line(9.0, "api", "pod/default/a", "bound", node="n1"),
        line(9.5, "api", "pod/default/b", "bound", node="n1"),
    ]
    assert detection_seconds(lines) == {"pod/default/a": 4.0}
    assert detection_seconds([lines[0], line(9.0, "api", "pod/default/a", "bound", node="n1")]) == {}


def test_decisions_grow_linearly_with_the_nodes():
    for decision in complexity.TIMED:
        points = [(float(n), cpu_seconds(complexity.prepare, (decision, n))) for n in (100, 800)]
        assert 0.5 < complexity.exponent(points) < 1.7, decision  # square would be 2; the machine has other work


def test_complexity_is_drawn_from_both_tables():
    timed = complexity.timed_rows(first_seeds(1), [0.001 * n for _, n in complexity.timed_tasks(first_seeds(1))])
    moved = [
        {"moved_gpus": m, "allocation_retrieval": 3.0, "reallocation": 20.0 * m, "detection_binding": 5.0}
        for m in (1, 2, 4, 8)
    ]
    found = by_name(complexity.COMPLEXITY.comparisons({"nodes": timed, "moved": moved}))
    assert found["node selection: exponent of n, from 100 nodes on"].ours == pytest.approx(1.0)
    assert found["reallocation: exponent of m"].ours == pytest.approx(1.0)
    assert found["detection_binding: seconds for each GPU more"].ours == pytest.approx(0.0)
    assert len(complexity.COMPLEXITY.figures({"nodes": timed, "moved": moved})) == 2


@pytest.mark.wall
def test_the_overhead_of_each_component_is_measured_in_wall_clock_time(monkeypatch):
    monkeypatch.setattr(overhead, "EVERY_S", 1.0)
    monkeypatch.setattr(overhead, "JOBS", ("D",))
    monkeypatch.setattr(overhead, "JOB_S", 2)
    rows = overhead.rows(first_seeds(1), [play(overhead.keep, task) for task in overhead.tasks(first_seeds(1))])
    found = by_name(overhead.OVERHEAD.comparisons({"intervals": rows}))
    for component in overhead.PAPER:
        assert 0 < found[f"CPUs, mean of 1 s: {component}"].ours < 1
    assert overhead.OVERHEAD.figures({"intervals": rows})[0].panels[0].series


def test_every_experiment_of_the_paper_has_a_name():
    names = [f"kubecomp-fig{n}" for n in range(8, 14)]
    names += ["kubecomp-table3", "kubecomp-overhead", "kubecomp-complexity"]
    assert [each.name for each in EXPERIMENTS] == names
