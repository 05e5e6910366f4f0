"""Lines, placers and the engine: who goes first, where, and when."""

import itertools
import random

import pytest

from mews.harness.simulation.engine import SubmissionGate, TraceEngine
from mews.harness.simulation.lines import AnyLine, BackfillLine, FcfsLine, KubeLine
from mews.harness.simulation.placers import DefaultPlacer, PackedPlacer
from mews.harness.simulation.statistics import Quantiles, TraceStatistics
from mews.kube.system.simulation import SimulatedCluster, SimulatedDevice, SimulatedJob, SimulatedNode


def cluster(*devices, cpus=192):
    numbers = itertools.count()
    nodes = (
        SimulatedNode(
            f"n{i}", "pool", cpus * 1000, 1 << 20,
            tuple(SimulatedDevice(f"{next(numbers):03}", "", 16_000) for _ in range(n)),
        )
        for i, n in enumerate(devices)
    )  # fmt: skip
    return SimulatedCluster(tuple(nodes))


def job(name, arrival_s, devices, duration_s=100.0, cpus=1):
    return SimulatedJob(name, arrival_s, duration_s, devices, devices * 100, cpus * 1000)


def played(jobs, line, placer, **options):
    statistics, rows = TraceStatistics(1), {}
    engine = TraceEngine(placer, statistics, on_job=lambda row: rows.update({row.job: row}), **options)
    engine.run(jobs, line(placer, engine))
    assert not placer.moved
    return rows, statistics


def fcfs(placer, engine):
    return FcfsLine(placer, engine.start)


def any_order(placer, engine):
    return AnyLine(placer, engine.start)


def backfill(placer, engine):
    return BackfillLine(placer, engine.start, engine.ends)


JOBS = [job("a", 0, 3), job("head", 1, 4, 50), job("long", 2, 1, 500), job("short", 3, 1, 90)]


def starts(rows):
    return {name: row.started_s for name, row in rows.items()}


def test_in_strict_order_nobody_starts_before_an_earlier_job():
    rows, _ = played(JOBS, fcfs, PackedPlacer(cluster(4)))
    assert starts(rows) == {"a": 0, "head": 100, "long": 150, "short": 150}


def test_in_any_order_whoever_fits_goes_ahead_and_the_large_one_waits():
    rows, _ = played(JOBS, any_order, PackedPlacer(cluster(4)))
    assert starts(rows) == {"a": 0, "long": 2, "short": 100, "head": 502}


def test_backfilling_lets_those_ahead_that_do_not_put_the_first_off():
    rows, _ = played(JOBS, backfill, PackedPlacer(cluster(4)))
    assert starts(rows) == {"a": 0, "short": 3, "head": 100, "long": 150}


def test_backfilling_never_puts_off_the_first_of_a_random_trace():
    rng = random.Random(4)
    jobs = [job(str(n), n * 20.0, rng.choice((1, 2, 4, 8)), rng.uniform(10, 400)) for n in range(400)]
    strict, _ = played(jobs, fcfs, PackedPlacer(cluster(8)))
    eased, _ = played(jobs, backfill, PackedPlacer(cluster(8)))
    assert sum(row.started_s - row.arrival_s for row in eased.values()) < sum(
        row.started_s - row.arrival_s for row in strict.values()
    )
    assert eased["399"].started_s <= strict["399"].started_s


@pytest.mark.parametrize("line", [fcfs, any_order, backfill])
@pytest.mark.parametrize("make", [PackedPlacer, lambda c: DefaultPlacer(c, random.Random(1))])
def test_no_node_is_ever_given_more_than_it_has(line, make):
    rng = random.Random(7)
    jobs = [
        job(str(n), n * 9.0, rng.choice((0, 1, 2, 4)), rng.uniform(10, 400), rng.choice((1, 30))) for n in range(500)
    ]
    rows, statistics = played(jobs, line, make(cluster(4, 8, cpus=100)))
    assert len(rows) == statistics.jobs == 500
    sizes, cpus = {each.name: each.devices for each in jobs}, {each.name: each.cpu_milli for each in jobs}
    for node, has in {"n0": 4, "n1": 8}.items():
        here = [row for row in rows.values() if row.node == node]
        for row in here:
            with_it = [o for o in here if o.started_s <= row.started_s < o.ended_s]
            assert sum(sizes[each.job] for each in with_it) <= has
            assert sum(cpus[each.job] for each in with_it) <= 100_000


def test_sums_of_parts_of_devices_stay_exact_however_many_jobs_come():
    statistics = TraceStatistics(1)
    statistics.arrived(0.0)
    for at_s in range(30_000):
        statistics.take(float(at_s), (10, 20, -30)[at_s % 3], 0)
    assert len(statistics._at) == 3, "0, 0.1 and 0.3 GPUs: what is kept does not grow with the jobs"


def test_what_fits_no_empty_node_is_counted_and_blocks_nobody():
    rows, statistics = played([job("a", 0, 5), job("b", 1, 1)], fcfs, PackedPlacer(cluster(4)))
    assert (list(rows), statistics.unplaceable) == (["b"], 1)


def test_best_fit_leaves_the_large_node_to_large_jobs():
    rows, _ = played([job("small", 0, 2), job("large", 1, 8)], fcfs, PackedPlacer(cluster(8, 2)))
    assert {name: row.node for name, row in rows.items()} == {"small": "n1", "large": "n0"}
    assert starts(rows)["large"] == 1


def test_the_gate_submits_a_job_when_none_is_pending_at_a_look_of_the_driver():
    jobs = [job("a", 0, 4), job("b", 10, 4), job("c", 20, 1)]
    rows, _ = played(jobs, any_order, PackedPlacer(cluster(4)), gate=SubmissionGate(7.0))
    assert starts(rows) == {"a": 0, "b": 100, "c": 200}
    rows, _ = played(jobs[1:], any_order, PackedPlacer(cluster(8)), gate=SubmissionGate(7.0))
    assert starts(rows) == {"b": 10, "c": 20}


def test_with_kube_schedulers_queue_a_refused_pod_waits_for_a_change_and_its_back_off():
    jobs = [job("a", 0, 4, 0.4), job("b", 0.1, 4, 5), job("c", 0.2, 4, 5)]

    def kube(placer, engine):
        return KubeLine(placer, engine.start, strict=True)

    rows, _ = played(jobs, kube, PackedPlacer(cluster(4)))
    at_once, _ = played(jobs, fcfs, PackedPlacer(cluster(4)))
    assert starts(at_once) == {"a": 0, "b": 0.4, "c": 5.4}
    assert [starts(rows)[name] >= starts(at_once)[name] for name in "abc"] == [True] * 3
    assert starts(rows)["b"] < starts(rows)["c"]


def test_means_are_exact_and_quantiles_within_a_percent():
    rng, kept = random.Random(2), Quantiles()
    values = [rng.expovariate(0.01) for _ in range(5000)]
    for value in values:
        kept.add(value)
    assert kept.mean == pytest.approx(sum(values) / len(values))
    for share in (0.1, 0.5, 0.95, 1.0):
        assert kept.at(share) == pytest.approx(sorted(values)[int(share * 5000) - 1], rel=0.011)
