"""The lean simulator of training jobs: its own rules, and that the whole stack does what it says."""

import random
from statistics import fmean

import pytest
from msgspec import structs

from mews.kube.emulated.kubelet.timings import MEASURED, Span
from mews.systems.kod2.experiment.baseline import PodTimes
from mews.systems.kod2.experiment.cells import Assumptions, cells, cluster, jobs_of
from mews.systems.kod2.experiment.default_scheduler import Scoring, SimulatedScheduler
from mews.systems.kod2.experiment.run import VARIANTS, mean_of, numbers_of, simulate
from mews.systems.kod2.experiment.simulation import Costs, TrainingSimulation, TrainJob
from mews.systems.kod2.model import ElasticJob, NodeRoom, TaskRequest
from mews.systems.kod2.training import TrainingShape, environment_in, loss, speed
from tests.systems.kod2.whole_stack import baseline_lives, elastic_lives

GIB = 2**30


def train_job(name, *, workers, cores=2, at=0.0, steps=100.0, least=1, most=None):
    server, worker = TaskRequest((1000, GIB, 1)), TaskRequest((cores * 1000, GIB, 1))
    return TrainJob(
        ElasticJob(name, at, (("ps-0", server),), worker, least, workers, most or workers), TrainingShape(steps=steps)
    )


def test_speed_grows_with_the_workers_until_the_servers_are_busy():
    shape = TrainingShape(step_s=1.0, near_s=0.0, far_s=1.0, server_rate=3.0)
    assert [speed(shape, near=n, far=0, servers=1) for n in (0, 1, 2, 3, 4)] == [0, 1, 2, 3, 3]
    assert speed(shape, near=0, far=2, servers=1) == 1.0
    assert speed(shape, near=8, far=0, servers=2) == 6.0
    assert speed(shape, near=8, far=0, servers=0) == 0.0
    assert loss(shape, 0) > loss(shape, 500) > loss(shape, 1000) > 0


def test_a_real_trainer_is_told_to_train_as_the_annotations_of_its_pod_say():
    notes = {"mews.dev/train-steps": "900", "mews.dev/train-near-s": "0.1", "other": "x"}
    assert environment_in(notes, 10.0) == {"TRAIN_STEPS": "900", "TRAIN_PAUSE_S": "0.06"}
    assert environment_in({"other": "x"}, 10.0) == {}
    with pytest.raises(ValueError, match=r"annotation mews.dev/train-steps: 'many': must be a number above 0"):
        environment_in({"mews.dev/train-steps": "many"}, 1.0)


def test_one_job_takes_its_steps_over_its_speed_and_the_clusters_overhead():
    outcome = TrainingSimulation(cluster(), [train_job("a", workers=2)], costs=Costs(start_s=2.0, stop_s=1.0)).run()
    assert outcome.lives["a"].jct_s == pytest.approx(2.0 + 100 / (2 / 0.55) + 1.0)


def test_busy_cores_are_the_workers_and_the_servers():
    outcome = TrainingSimulation(cluster(), [train_job("a", workers=2)]).run()
    steps_per_s = 2 / 0.55
    workers, server = 2 * 2 * (steps_per_s * 0.5 / 2), 1 * steps_per_s / 12
    assert max(cores for _, cores in outcome.busy) == pytest.approx(workers + server)


def test_a_baseline_job_begins_when_all_of_its_pods_run_and_a_hanging_one_ends_at_its_deadline():
    large = train_job("large", workers=12, cores=3)
    outcome = TrainingSimulation(cluster(), [large], scoring=Scoring.DEFAULT, costs=Costs(deadline_s=500.0)).run()
    assert (outcome.lives["large"].dead, outcome.lives["large"].ended_s) == (True, 500.0)
    elastic = TrainingSimulation(cluster(), [large]).run()
    assert not elastic.lives["large"].dead


def test_two_baseline_jobs_can_hold_what_the_other_lacks_and_the_elastic_ones_do_not():
    hang = 0
    for seed in range(10):
        jobs = [train_job(f"j{i}", workers=3 + i % 3, cores=4 + i % 2, at=5.0 * i, steps=300) for i in range(6)]
        costs = Costs(deadline_s=5000.0)
        baseline = TrainingSimulation(
            cluster(), jobs, scoring=Scoring.RANDOM, costs=costs, rng=random.Random(seed)
        ).run()
        hang += sum(life.dead for life in baseline.lives.values())
        assert not any(life.dead for life in TrainingSimulation(cluster(), jobs, costs=costs).run().lives.values())
    assert hang > 0


def test_the_same_seed_gives_the_same_run():
    for name in ("kod2", "random"):
        first, second = (numbers_of(simulate("VGG-16", 64, 3, VARIANTS[name], Assumptions())) for _ in (1, 2))
        assert first == second


def test_the_cells_are_the_papers_and_their_jobs_differ_from_one_another():
    assert len(list(cells())) == 20
    jobs = jobs_of("VGG-16", 64, 1, Assumptions())
    assert [entry.job.arrived_s for entry in jobs] == [30.0 * i for i in range(10)]
    assert len({entry.job.worker for entry in jobs}) > 3
    assert mean_of([{"jct_s": 1.0}, {"jct_s": None}, {"jct_s": 3.0}]) == {"jct_s": 2.0}


@pytest.mark.parametrize(("model", "batch", "seed"), [("VGG-16", 64, 1), ("CNN-rand", 8, 1), ("CNN-rand", 8, 2)])
def test_the_whole_stack_takes_as_long_as_the_simulator_says(model, batch, seed):
    simulated = TrainingSimulation(cluster(), jobs_of(model, batch, seed, Assumptions())).run()
    found = elastic_lives(model, batch, seed)
    for key, life in simulated.lives.items():
        assert found[key].jct_s == pytest.approx(life.jct_s, rel=0.02, abs=3.0)


def test_the_baselines_pods_take_as_long_as_the_emulated_kubelets():
    spans = {
        name: (span.low_s, span.usual_s, span.high_s) for name, span in vars_of(MEASURED) if isinstance(span, Span)
    }
    times = PodTimes()
    assert times.starting == tuple(spans[name] for name in ("see_pod", "sandbox", "create", "start"))
    assert (times.finished, times.deleted) == (spans["finished"], (spans["see_deletion"], spans["killed"]))
    assert times.relist_s == MEASURED.relist_s


def vars_of(value):
    return [(field.name, getattr(value, field.name)) for field in structs.fields(value)]


def scheduler_of(cores, clock):
    nodes = [NodeRoom("n", (cores * 1000, 32 * GIB, 110), (cores * 1000, 32 * GIB, 110))]
    return SimulatedScheduler(nodes, Scoring.DEFAULT, random.Random(1), lambda: clock[0])


def test_what_waits_is_tried_whenever_a_pod_leaves_so_that_small_pods_pass_large_ones():
    clock = [0.0]
    scheduler = scheduler_of(4, clock)
    for name, cores in (("a", 2), ("b", 2), ("large", 4), ("small", 1)):
        scheduler.add(name, TaskRequest((cores * 1000, GIB, 1)))
        clock[0] += 1.0
    assert [pod.name for pod in scheduler.decide()] == ["a", "b"]
    clock[0] = 100.0
    scheduler.remove("a")
    assert [pod.name for pod in scheduler.decide()] == ["small"], "the older pod needs both to leave"
    scheduler.remove("b")
    assert scheduler.decide() == []
    clock[0] = 200.0
    scheduler.remove("small")
    assert [pod.name for pod in scheduler.decide()] == ["large"]


def test_what_waits_is_tried_by_its_last_refusal_not_by_its_age():
    clock = [0.0]
    scheduler = scheduler_of(4, clock)
    scheduler.add("holds", TaskRequest((4000, GIB, 1)))
    scheduler.decide()
    for name in ("older", "younger"):
        scheduler.add(name, TaskRequest((3000, GIB, 1)))
        scheduler.decide()
        clock[0] += 10.0
    while (due_s := scheduler.next_s()) is not None and due_s <= 300.0:  # the older one's turn, whatever happens
        clock[0] = due_s
        scheduler.advance()
        assert scheduler.decide() == []
    clock[0] = 305.0
    scheduler.remove("holds")
    assert [pod.name for pod in scheduler.decide()] == ["younger"]


@pytest.mark.parametrize("scoring", Scoring)
def test_the_baseline_on_the_whole_stack_takes_as_long_as_the_simulator_says_where_nothing_hangs(scoring):
    given = Assumptions(deadline_s=900.0, workers=(2,), worker_cores=(1,))
    found = baseline_lives("CNN-rand", 64, 1, scoring, given)
    simulated = simulate("CNN-rand", 64, 1, VARIANTS[scoring.value], given).lives
    means = [fmean(life.jct_s for life in lives.values()) for lives in (found, simulated)]
    assert means[0] == pytest.approx(means[1], rel=0.1)
    assert not any(life.dead for lives in (found, simulated) for life in lives.values())
