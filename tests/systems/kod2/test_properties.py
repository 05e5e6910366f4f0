"""Random clusters and jobs against what must hold of every decision and of every run (contract kod2.md section 2)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mews.systems.kod2.experiment.simulation import TrainingSimulation, TrainJob
from mews.systems.kod2.model import (
    ClusterState,
    ElasticJob,
    NodeRoom,
    Options,
    Placed,
    Queues,
    Running,
    ScaledIn,
    ScaledOut,
    TaskRequest,
    WaitingJob,
    is_worker,
)
from mews.systems.kod2.placement import could_place, place
from mews.systems.kod2.policy import decide
from mews.systems.kod2.room import FreeRoom
from mews.systems.kod2.training import TrainingShape

CPUS = st.integers(1, 12)


@st.composite
def clusters(draw):
    sizes = draw(st.lists(st.tuples(CPUS, st.integers(2, 16)), min_size=1, max_size=5))
    nodes = tuple(NodeRoom(f"n{i}", (c * 1000, m, 20), (c * 1000, m, 20)) for i, (c, m) in enumerate(sizes))
    return ClusterState(nodes)


@st.composite
def job_lists(draw, servers=0):
    jobs = []
    for number in range(draw(st.integers(1, 8))):
        least = draw(st.integers(1, 3))
        wanted = least + draw(st.integers(0, 4))
        most = wanted + draw(st.integers(0, 4))
        fixed = tuple((f"ps-{i}", TaskRequest((draw(CPUS) * 500, 1, 1))) for i in range(draw(st.integers(servers, 2))))
        worker = TaskRequest((draw(CPUS) * 500, draw(st.integers(1, 4)), 1))
        jobs.append(ElasticJob(f"j{number}", draw(st.integers(0, 200)) * 1.0, fixed, worker, least, wanted, most))
    return jobs


def hold_to_the_rules(cluster, running):
    """Bounds of every job, and no node below zero in any dimension."""
    for runner in running.values():
        count = len(runner.workers)
        assert runner.job.minimum <= count <= runner.job.maximum
        assert set(dict(runner.job.fixed)) <= set(runner.tasks)
        assert 0 in runner.workers
    room = FreeRoom(cluster, running.values())
    assert all(amount >= 0 for free in room.free for amount in free)


def act(cluster, waiting, running, verdict, now_s):
    for decision in verdict.decisions:
        match decision:
            case Placed(key, tasks):
                running[key] = Running(waiting.pop(key).job, tasks)
            case ScaledIn(key, gone):
                left = {task: node for task, node in running[key].tasks.items() if task not in gone}
                running[key] = Running(running[key].job, left, now_s)
            case ScaledOut(key, more):
                running[key] = Running(running[key].job, {**running[key].tasks, **more}, now_s)
            case _:
                waiting[decision.job] = WaitingJob(waiting[decision.job].job, starving=True)
    hold_to_the_rules(cluster, running)


@settings(max_examples=150, deadline=None)
@given(clusters(), job_lists(), st.data())
def test_every_decision_keeps_the_bounds_and_the_nodes(cluster, jobs, data):
    waiting, running, now_s = {}, {}, 0.0
    for job in sorted(jobs, key=lambda job: job.arrived_s):
        now_s = max(now_s, job.arrived_s)
        waiting[job.key] = WaitingJob(job)
        queues = Queues(cluster, tuple(waiting.values()), tuple(running.values()))
        act(cluster, waiting, running, decide(queues, now_s), now_s)
        if running and data.draw(st.booleans()):
            running.pop(data.draw(st.sampled_from(sorted(running))))


@settings(max_examples=150, deadline=None)
@given(clusters(), job_lists())
def test_a_decision_leaves_nothing_to_decide_at_the_same_moment(cluster, jobs):
    waiting, running = {job.key: WaitingJob(job) for job in jobs}, {}
    act(cluster, waiting, running, decide(Queues(cluster, tuple(waiting.values())), 300.0), 300.0)
    again = decide(Queues(cluster, tuple(waiting.values()), tuple(running.values())), 300.0)
    assert again.decisions == ()


@settings(max_examples=100, deadline=None)
@given(clusters(), job_lists(servers=1), st.booleans())
def test_every_job_that_fits_alone_ends(cluster, jobs, backfill):
    given_jobs = [TrainJob(job, TrainingShape(steps=50.0)) for job in jobs]
    outcome = TrainingSimulation(cluster, given_jobs, options=Options(backfill=backfill)).run()
    for job in jobs:
        if could_place(FreeRoom(cluster), job):
            assert outcome.lives[job.key].ended_s is not None
        else:
            assert outcome.lives[job.key].started_s is None


@settings(max_examples=200, deadline=None)
@given(clusters(), job_lists())
def test_with_one_server_a_placement_is_found_exactly_when_there_is_one(cluster, jobs):
    for job in jobs:
        one = ElasticJob(job.key, 0.0, job.fixed[:1], job.worker, job.minimum, job.minimum, job.minimum)
        assert could_place(FreeRoom(cluster), one) == _brute(cluster, one)
        tasks = place(FreeRoom(cluster), one)
        if tasks is not None:
            assert sum(map(is_worker, tasks)) == one.minimum
            hold_to_the_rules(cluster, {one.key: Running(one, tasks)})


def _brute(cluster, job):
    """Every node for the server, as many workers as go anywhere."""
    for home in cluster.nodes if job.fixed else (None,):
        room = FreeRoom(cluster)
        if home is not None:
            if not room.fits(room.index[home.name], job.fixed[0][1]):
                continue
            room.take(home.name, job.fixed[0][1])
        if sum(room.capacity(number, job.worker) for number in range(len(cluster.nodes))) >= job.minimum:
            return True
    return False
