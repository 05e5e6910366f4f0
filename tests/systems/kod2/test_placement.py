"""Placements of jobs with several fixed tasks, against brute force (contract kod2.md section 2)."""

import random
from functools import partial

from mews.systems.kod2 import placement
from mews.systems.kod2.model import ClusterState, ElasticJob, NodeRoom, TaskRequest
from mews.systems.kod2.placement import Feasibility, feasibility, place
from mews.systems.kod2.policy import decide
from mews.systems.kod2.room import FreeRoom
from mews.systems.kod2.search import assign
from tests.systems.kod2.brute_force import differences
from tests.systems.kod2.queues import ask, cluster, job, queues


def several(servers, worker, *, least=1, wanted=None, name="j"):
    fixed = tuple((f"ps-{number}", ask(cores)) for number, cores in enumerate(servers))
    wanted = least if wanted is None else wanted
    return ElasticJob(name, 0.0, fixed, ask(worker), least, wanted, wanted)


def hard():
    """Forty nodes, none like another, and four servers that fit in very many ways: but no worker beside any of them."""
    nodes = tuple(NodeRoom(f"n{i}", (20_000, 64, 9), (10_000 + i, 40 - i, 9)) for i in range(40))
    fixed = tuple((f"ps-{i}", TaskRequest((5_001 + i, 1, 1))) for i in range(4))
    return ClusterState(nodes), ElasticJob("hard", 0.0, fixed, TaskRequest((5_000, 1, 1)), 76, 76, 76)


def test_two_servers_and_two_workers_share_two_nodes_that_each_hold_one_of_both():
    tasks = place(FreeRoom(cluster(10, 10)), several((3, 3), 7, least=2))
    assert sorted(tasks.values()) == ["n0", "n0", "n1", "n1"]
    assert tasks["ps-0"] != tasks["ps-1"]


def test_with_several_fixed_tasks_a_placement_is_found_exactly_when_there_is_one_and_with_the_most_workers():
    found, placed = differences(random.Random(18), 500)
    assert found == []
    assert placed > 100


def test_large_servers_are_placed_before_small_ones_whatever_their_order():
    assert place(FreeRoom(cluster(10, 4)), several((4, 6, 4), 0.5)) is None
    tasks = place(FreeRoom(cluster(10, 5)), several((4, 6, 4), 0.5))
    assert (tasks["ps-1"], sorted((tasks["ps-0"], tasks["ps-2"]))) == ("n0", ["n0", "n1"])


def test_what_is_not_found_within_the_budget_is_not_called_impossible():
    where, what = hard()
    spent = assign(FreeRoom(where), what, what.minimum, what.wanted, steps=100)
    assert (spent.tasks, spent.proven) == (None, False)
    room = FreeRoom(where)
    room.budget.left = 50
    assert feasibility(room, what) is Feasibility.NOT_FOUND
    assert room.budget.left == 0


def test_a_job_whose_placement_is_not_found_says_so_and_blocks_nobody(monkeypatch):
    where, what = hard()
    monkeypatch.setattr(placement, "assign", partial(assign, steps=100))
    verdict = decide(queues(where, waiting=[what, job("good", 0.001, ps=0.001, memory=0, at=1)]), 2)
    assert [decision.job for decision in verdict.decisions] == ["good"]
    assert verdict.reasons["hard"].code == "PlacementNotFound"
    assert "20000 steps" in verdict.reasons["hard"].text


def test_one_decision_has_one_budget_for_all_of_its_questions():
    where, what = hard()
    room = FreeRoom(where)
    before = room.budget.left
    feasibility(room.copy(), what)
    assert room.budget.left < before
