import pytest

from mews.harness.journal import Journal
from mews.harness.scenario.metrics import (
    JobTimes,
    bound_broken,
    cpu_utilisation,
    cumulative,
    gpu_shares,
    hardware_metrics,
    workload_metrics,
)
from mews.harness.scenario.model import MetricBound
from mews.harness.scenario.trace import TraceJob


def job(name, arrival, start, end, *, gpus=1, cpus="40"):
    facts = TraceJob(name, "", gpus, cpus, arrival, 300.0)
    return JobTimes(facts, created_s=arrival, started_s=start, began_s=start, ended_s=end)


def test_waits_and_completion_times_count_from_the_planned_arrival():
    metrics = workload_metrics([job("a", 0, 0, 100), job("b", 10, 30, 130)], cpus=160)
    assert metrics["mean_wait_s"] == 10
    assert metrics["mean_jct_s"] == 110
    assert metrics["makespan_s"] == 130


def test_the_gpus_in_use_are_weighed_by_time():
    times = [job("a", 0, 0, 100, gpus=2), job("b", 10, 50, 100, gpus=1), job("c", 20, 100, 200, gpus=4)]
    assert gpu_shares(times) == {2: 0.25, 3: 0.25, 4: 0.5}
    assert cumulative(gpu_shares(times)) == [[2, 0.25], [3, 0.5], [4, 1.0]]
    assert workload_metrics(times, cpus=1)["mean_gpus_used"] == 3.25


def test_a_gap_between_jobs_counts_as_nothing_in_use():
    assert gpu_shares([job("a", 0, 10, 20), job("b", 0, 30, 40)]) == {0: 0.5, 1: 0.5}


def test_cpu_use_is_what_running_jobs_asked_for_over_what_there_was():
    times = [job("a", 0, 0, 100, cpus="80"), job("b", 0, 50, 100, cpus="500m")]
    assert cpu_utilisation(times, 160) == pytest.approx((80 * 100 + 0.5 * 50) / (160 * 100))


def test_jobs_that_never_started_are_left_out_of_the_means():
    times = [job("a", 0, 0, 100), job("b", 10, None, None)]
    assert workload_metrics(times, cpus=160)["mean_wait_s"] == 0
    assert workload_metrics([job("b", 10, None, None)], cpus=160) == {}


def test_only_completed_attaches_count_as_moves():
    journal = Journal(lambda: 0.0)
    for event in ("attach-begun", "attached", "detached", "attached", "operation-finished"):
        journal.write("chassis", "chassis/A", event, host="host-1")
    assert hardware_metrics(journal.lines()) == {"moved_gpus": 2}


@pytest.mark.parametrize(
    ("bound", "value", "words"),
    [
        ({"of": 82.7, "within": "10%"}, 90.9, ""),
        ({"of": 82.7, "within": "10%"}, 91.0, "mean_wait_s is 91, +10.0 % off 82.7 (allowed: 10 %)"),
        ({"of": 82.7, "within": "10%"}, 70, "-15.4 % off"),
        ({"min": 3}, 2, "below 3"),
        ({"max": 3}, 4, "above 3"),
        ({"is": 3}, 3.5, "not 3"),
        ({"min": 1, "max": 3}, 2, ""),
        ({"is": 3}, None, "was not measured"),
    ],
)
def test_a_bound_says_what_is_wrong(bound, value, words):
    broken = bound_broken(
        "mean_wait_s", MetricBound.model_validate(bound), {} if value is None else {"mean_wait_s": value}
    )
    assert (words in broken) if words else broken == ""
