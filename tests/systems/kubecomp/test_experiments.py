"""The paper's figures in a smaller form: what is drawn says what the paper says, and what is compared was run."""

import functools
import random
from itertools import pairwise

import pytest

from mews.harness.experiments.playing import play
from mews.harness.experiments.timing import cpu_seconds
from mews.kube.system.comparing import report
from mews.kube.system.journal import Line
from mews.systems.kubecomp.experiment import complexity, overhead, runs, simulated, table3
from mews.systems.kubecomp.experiment.all import EXPERIMENTS
from mews.systems.kubecomp.experiment.fig8 import FIG8
from mews.systems.kubecomp.experiment.fig9 import FIG9
from mews.systems.kubecomp.experiment.fig10 import FIG10
from mews.systems.kubecomp.experiment.simulator import NODE_CPUS, Simulation, nodes_of
from mews.systems.kubecomp.experiment.workloads import WORKLOADS, drawn
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
    assert {task.about["setting"] for task in runs.tasks(1)} == {"pool", "4-4", "0-8"}


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
    assert "| mean wait, s: W3, 4-4 |" in report(FIG8, {"runs": played()}, {"runs": 1})


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


def test_fig_11_has_no_bar_for_a_split_that_cannot_run_the_mix_and_pooling_beats_the_uneven_split():
    rows = simulated.flat(3, [simulated.run_11(task) for task in simulated.tasks_11(3)])
    found = by_name(simulated.FIG11.comparisons({"rows": rows}))
    assert found["mean wait, s: 50 %, 6-6-6-6"].ours is None
    assert found["mean wait, s: 100 % A, pool"].ours == found["mean wait, s: 100 % A, 6-6-6-6"].ours
    assert found["mean wait, s: 50 %, pool"].ours < found["mean wait, s: 50 %, 4-4-8-8"].ours
    assert simulated.FIG11.figures({"rows": rows})[0].panels[0].places == tuple(simulated.MIXES)


def test_fig_12_normalises_by_one_fixed_pool_and_pooling_waits_less(monkeypatch):
    monkeypatch.setattr(simulated, "TRACE_JOBS", 150)
    rows = simulated.flat(1, [simulated.run_12(1)])
    found = by_name(simulated.FIG12.comparisons({"rows": rows}))
    assert found["normalised wait: fixed, 1 pools"].ours == 1.0
    assert 0.1 < found["reduction of the wait by pooling, 1 pools"].ours < 0.6
    assert found["normalised wait: fixed, 6 pools"].ours < found["normalised wait: fixed, 2 pools"].ours < 1.0


def test_fig_13_both_branches_of_equation_1_move_fewer_than_either_and_none_moves_most():
    rows = simulated.flat(4, [simulated.run_13(task) for task in simulated.tasks_13(4)])
    found = by_name(simulated.FIG13.comparisons({"rows": rows}))
    for policy in ("best-fit", "least-demand", "both"):
        assert found[f"intervals at which {policy} moves fewer than none"].ours == 3
    every_minute = [found[f"GPUs moved: every 60 s, {policy.value}"].ours for policy in simulated.POLICIES]
    assert max(every_minute) == every_minute[0]


# Table III, overhead, complexity


@functools.cache
def reconfigurations():
    tasks = [task for task in table3.tasks(1) if task.about["asked"] in (1, 2, 5)]
    return table3.rows(1, [play(table3.keep, task) for task in tasks])


def test_table_iii_has_all_six_rows_and_reallocation_alone_grows_with_the_gpus_moved():
    found = by_name(table3.TABLE3.comparisons({"reconfigurations": reconfigurations()}))
    assert [each.paper for name, each in found.items() if name.startswith("R, ")] == list(table3.PAPER_R.values())
    assert found["R, reallocation"].ours == pytest.approx(0.992, abs=0.01)
    assert found["seconds a GPU, reallocation"].ours == pytest.approx(20.885, rel=0.1)
    for phase in table3.PAPER_R:
        assert found[f"seconds, {phase}" if phase != "reallocation" else "seconds a GPU, reallocation"].ours > 0
    assert len(table3.TABLE3.figures({"reconfigurations": reconfigurations()})[0].panels) == 6


def test_the_coefficient_is_none_where_nothing_varies():
    assert table3.r_of([{"moved_gpus": 1, "total": 2.0}, {"moved_gpus": 1, "total": 3.0}], "total") is None


def test_a_pod_that_an_orphaned_gpu_keeps_from_its_node_is_counted_and_ends_nothing():
    [task] = [task for task in table3.tasks(92) if task.seed == 736]
    kept = play(table3.keep, task, may_fail=True)
    assert [row["bound"] for row in kept] == [False]
    assert kept[0][table3.TOTAL] is None
    text = report(table3.TABLE3, {"reconfigurations": kept}, {"reconfigurations": 92})
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
    timed = complexity.timed_rows(1, [0.001 * n for _, n in complexity.timed_tasks(1)])
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
    rows = overhead.rows(1, [play(overhead.keep, task) for task in overhead.tasks(1)])
    found = by_name(overhead.OVERHEAD.comparisons({"intervals": rows}))
    for component in overhead.PAPER:
        assert 0 < found[f"CPUs, mean of 1 s: {component}"].ours < 1
    assert overhead.OVERHEAD.figures({"intervals": rows})[0].panels[0].series


def test_every_experiment_of_the_paper_has_a_name():
    names = [f"kubecomp-fig{n}" for n in range(8, 14)]
    names += ["kubecomp-table3", "kubecomp-overhead", "kubecomp-complexity"]
    assert [each.name for each in EXPERIMENTS] == names
