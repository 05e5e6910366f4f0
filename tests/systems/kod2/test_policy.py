"""Each rule of contract kod2.md section 2, once."""

import math

import pytest
from msgspec.structs import replace

from mews.systems.kod2.model import ClusterState, Mode, Options, Placed, ScaledIn, ScaledOut, Starved, WaitingJob
from mews.systems.kod2.placement import could_place, place
from mews.systems.kod2.policy import decide, next_look_s, published, weight
from mews.systems.kod2.room import FreeRoom
from tests.systems.kod2.queues import ask, cluster, job, node, queues, running


def kinds(verdict):
    return [type(decision).__name__ for decision in verdict.decisions]


def of(verdict, kind):
    return [decision for decision in verdict.decisions if isinstance(decision, kind)]


# Weights


def test_the_weight_grows_with_the_minimum_and_falls_with_what_the_whole_job_asks():
    where = ClusterState((node("a", 10, 32), node("b", 20, 16)))
    # C = 2 + 3*1 = 5 of 20 cores (the largest), M = 1 + 3*1 = 4 of 32 GiB (the largest)
    assert weight(job("j", 1, ps=2, least=3), where) == pytest.approx(3 / (5 / 20 + 4 / 32))


def test_without_the_server_the_minimum_would_cancel():
    where = cluster(10)
    assert weight(job("one", ps=0, least=1), where) == pytest.approx(weight(job("three", ps=0, least=3), where))
    assert weight(job("one", ps=2, least=1), where) < weight(job("three", ps=2, least=3), where)


def test_devices_count_for_fitting_and_not_in_the_weight():
    assert weight(job("a", pooled=0), cluster(10)) == weight(job("b", pooled=4), cluster(10))


def test_the_published_weight_is_the_sigmoid_and_saturates_while_decisions_compare_the_raw_one():
    assert published(0.5) == pytest.approx(1 / (1 + math.exp(-0.5)))
    assert published(40.0) == published(50.0) == 1.0
    light, heavy = job("light", 0.1, ps=0.1, memory=0.1, at=0), job("heavy", 0.05, ps=0.05, memory=0.05, at=1)
    assert published(weight(light, cluster(10))) == published(weight(heavy, cluster(10))) == 1.0
    verdict = decide(queues(cluster(10), waiting=[light, heavy]), 1)
    assert [placed.job for placed in of(verdict, Placed)] == ["heavy", "light"]


# Algorithm 1


def test_the_heaviest_waiting_job_is_placed_when_none_runs():
    verdict = decide(queues(cluster(4), waiting=[job("big", 3, least=1), job("small", 1, least=1, at=5)]), 5)
    assert of(verdict, Placed)[0].job == "small"


def test_passes_repeat_until_nothing_changes():
    verdict = decide(queues(cluster(10), waiting=[job(f"j{i}", at=i) for i in range(4)]), 9)
    assert [placed.job for placed in of(verdict, Placed)] == ["j0", "j1", "j2", "j3"]


def test_equal_weights_go_by_arrival():
    verdict = decide(queues(cluster(2), waiting=[job("late", at=2), job("early", at=1)]), 3)
    assert [placed.job for placed in of(verdict, Placed)] == ["early"]


def test_a_heavier_job_that_does_not_fit_takes_workers_from_a_lighter_one():
    light = job("light", 2, ps=1, least=1, wanted=4)
    heavy = job("heavy", 1, ps=1, least=2, at=30)
    verdict = decide(queues(cluster(9), waiting=[heavy], running=[running(light, "n0", "n0", "n0", "n0", "n0")]), 30)
    assert of(verdict, ScaledIn) == [ScaledIn("light", ("worker-3", "worker-2"), "heavy")]
    assert of(verdict, Placed)[0].job == "heavy"


def test_a_lighter_job_never_preempts_but_is_placed_where_it_fits():
    heavy = job("heavy", 1, ps=1, least=2, wanted=6)
    light = job("light", 3, ps=1, least=1, at=30)
    full = decide(queues(cluster(7), waiting=[light], running=[running(heavy, "n0", *["n0"] * 6)]), 31)
    assert full.decisions == ()
    fits = decide(queues(cluster(7, 4), waiting=[light], running=[running(heavy, "n0", *["n0"] * 6)]), 31)
    assert of(fits, Placed) == [Placed("light", {"ps-0": "n1", "worker-0": "n1"})]


def test_behind_the_lighter_head_of_the_walk_others_are_placed_too():
    heavy = job("heavy", 1, ps=1, least=2, wanted=6)
    waiting = [job("large", 3, ps=1, at=1), job("larger", 4, ps=1, at=0), job("fits", 0.9, ps=0.9, memory=8, at=2)]
    verdict = decide(queues(cluster(7, 2), waiting=waiting, running=[running(heavy, "n0", *["n0"] * 6)]), 3)
    assert [placed.job for placed in of(verdict, Placed)] == ["fits"]


def test_the_heaviest_that_cannot_be_placed_holds_the_line_unless_backfill_is_on():
    runs = job("runs", 4, ps=4, least=1)
    heavy, small = job("heavy", 1, ps=1, least=4, at=1), job("small", 1, ps=1, least=1, at=2)
    state = queues(cluster(10), waiting=[heavy, small], running=[running(runs, "n0", "n0")])
    held = decide(state, 3)
    assert of(held, Placed) == []
    assert "heavy" in held.reasons["small"].text
    assert [p.job for p in of(decide(state, 3, Options(backfill=True)), Placed)] == ["small"]


def test_equal_weight_that_came_earlier_is_never_preempted():
    first, second = job("first", least=1, wanted=4, at=0), job("second", least=1, wanted=4, at=9)
    state = queues(cluster(5), waiting=[second], running=[running(first, "n0", *["n0"] * 4)])
    assert decide(state, 10).decisions == ()


def test_a_waiting_job_as_heavy_as_the_heaviest_that_runs_is_the_head_of_the_line():
    # Line 5 is w_j >= max w: the earlier of two equal jobs takes workers from the later one, though it is no heavier.
    first, second = job("first", least=1, wanted=1, at=0), job("second", least=1, wanted=3, at=9)
    second = replace(second, worker=first.worker)
    state = queues(cluster(4), waiting=[first], running=[running(second, "n0", "n0", "n0", "n0")])
    assert weight(first, state.cluster) == weight(second, state.cluster)
    verdict = decide(state, 10)
    assert kinds(verdict) == ["ScaledIn", "Placed"]
    assert of(verdict, Placed)[0].job == "first"


def test_of_equal_jobs_that_came_at_the_same_moment_none_takes_from_the_other():
    first, second = job("first", least=1, wanted=4, at=5), job("second", least=1, wanted=4, at=5)
    state = queues(cluster(5), waiting=[second], running=[running(first, "n0", *["n0"] * 4)])
    assert decide(state, 10).decisions == ()


def test_who_waits_longer_than_the_limit_starves_and_may_then_preempt_anybody():
    heavy = job("heavy", 1, ps=1, least=2, wanted=6)
    light = job("light", 2, ps=1, least=1, at=0)
    state = queues(cluster(7), waiting=[light], running=[running(heavy, "n0", *["n0"] * 6)])
    assert decide(state, 30).decisions == ()
    verdict = decide(state, 30.1)
    assert kinds(verdict) == ["Starved", "ScaledIn", "Placed"]
    assert verdict.decisions[1] == ScaledIn("heavy", ("worker-5", "worker-4", "worker-3"), "light")


def test_of_several_starving_jobs_the_longest_wait_goes_first():
    waiting = [WaitingJob(job("young", 0.5, ps=0.5, at=50), starving=True), WaitingJob(job("old", at=0), starving=True)]
    verdict = decide(queues(cluster(2), waiting=waiting), 100)
    assert [placed.job for placed in of(verdict, Placed)] == ["old"]


def test_the_base_weight_returns_when_a_starving_job_runs():
    starved = job("starved", 2, ps=2, least=1, wanted=2, at=0)
    heavy = job("heavy", 1, ps=1, least=3, at=90)
    state = queues(cluster(6), waiting=[heavy], running=[running(starved, "n0", "n0", "n0")])
    assert of(decide(state, 91), ScaledIn) == [] and of(decide(state, 91), Placed) == []  # 2 cores would not suffice
    wide = queues(cluster(8), waiting=[heavy], running=[running(starved, "n0", "n0", "n0")])
    assert of(decide(wide, 91), ScaledIn) == [ScaledIn("starved", ("worker-1",), "heavy")]


def test_a_job_larger_than_the_cluster_says_so_and_blocks_nobody():
    huge, small = job("huge", 1, ps=1, least=30, at=0), job("small", 5, ps=5, at=1)
    verdict = decide(queues(cluster(10, 10), waiting=[huge, small]), 100)
    assert [placed.job for placed in of(verdict, Placed)] == ["small"]
    assert not of(verdict, Starved)
    assert verdict.reasons["huge"].code == "LargerThanCluster"


def test_a_placed_job_starts_with_as_many_wanted_workers_as_fit():
    placed = of(decide(queues(cluster(4), waiting=[job("j", 1, ps=1, least=1, wanted=8)]), 0), Placed)[0]
    assert sorted(placed.tasks) == ["ps-0", "worker-0", "worker-1", "worker-2"]


def test_pods_of_others_hold_room():
    where = ClusterState((node("a", 10, used_cpu=9),))
    assert decide(queues(where, waiting=[job("j", 1, ps=1)]), 0).decisions == ()


# Algorithm 2


def state_of_scale_in(*, heavy_least, servers="n1", light_least=1):
    """light: its server and worker-0 on n1, workers 1 and 2 there too, 3 and 4 on n0. heavy waits."""
    light = job("light", 2, ps=2, least=light_least, wanted=5)
    runner = running(light, servers, "n1", "n1", "n1", "n0", "n0")
    heavy = job("heavy", 1, ps=1, least=heavy_least, at=40)
    return queues(cluster(4, 8), waiting=[heavy], running=[runner])


def test_workers_away_from_the_server_go_first_highest_index_first():
    verdict = decide(state_of_scale_in(heavy_least=1), 41)
    assert of(verdict, ScaledIn) == [ScaledIn("light", ("worker-4",), "heavy")]


def test_workers_beside_the_server_stay_longer_whatever_their_nodes_are_called():
    light = job("light", 2, ps=2, least=1, wanted=4)
    heavy = job("heavy", 1, ps=1, least=1, at=40)
    state = queues(cluster(6, 4), waiting=[heavy], running=[running(light, "n0", "n0", "n0", "n1", "n1")])
    assert of(decide(state, 41), ScaledIn) == [ScaledIn("light", ("worker-3",), "heavy")]


def test_the_last_removal_is_tested_too():
    verdict = decide(state_of_scale_in(heavy_least=3), 41)
    assert of(verdict, ScaledIn) == [ScaledIn("light", ("worker-4", "worker-3"), "heavy")]


def test_never_below_the_minimum():
    verdict = decide(state_of_scale_in(heavy_least=3, light_least=4), 41)
    assert of(verdict, ScaledIn) == [] and of(verdict, Placed) == []


def test_worker_0_and_the_server_stay():
    light = job("light", 2, ps=2, least=1, wanted=2)
    heavy = job("heavy", 1, ps=1, least=4, at=5)
    state = queues(cluster(4, 2), waiting=[heavy], running=[running(light, "n0", "n1", "n0")])
    # All but the server and worker-0 would not be enough, so nothing is taken at all.
    assert decide(state, 6).decisions == ()
    # And where worker-1 is enough it is taken, though worker-0 has no server beside it.
    small = queues(cluster(4, 2), waiting=[job("heavy", 1, ps=1, at=5)], running=state.running)
    assert of(decide(small, 6), ScaledIn) == [ScaledIn("light", ("worker-1",), "heavy")]


def test_on_failure_nothing_changes():
    light = job("light", 1, ps=1, least=1, wanted=3)
    heavy = job("heavy", 0.9, ps=1, least=9, at=5)
    state = queues(cluster(6), waiting=[heavy], running=[running(light, "n0", "n0", "n0", "n0")])
    assert decide(state, 6).decisions == ()


def test_removals_that_turn_out_unneeded_are_dropped():
    small = job("small", 1, ps=2, memory=9, least=1, wanted=2, at=0)
    large = job("large", 3, ps=2, memory=4, least=1, wanted=2, at=0)
    heavy = job("heavy", 1, ps=1, least=2, memory=0.5, at=5)
    state = queues(
        cluster(4, 8), waiting=[heavy], running=[running(small, "n0", "n0", "n0"), running(large, "n1", "n1", "n1")]
    )
    taken = of(decide(state, 6), ScaledIn)
    # Taking from n0 first freed one core of four; what freed enough is the large worker alone.
    assert taken == [ScaledIn("large", ("worker-1",), "heavy")]


def test_the_lightest_gives_first():
    light, middle = job("light", 3, ps=3, wanted=2, at=0), job("middle", 2, ps=2, wanted=2, at=1)
    both = [running(middle, "n0", "n0", "n0"), running(light, "n1", "n1", "n1")]
    state = queues(cluster(6, 9), waiting=[job("heavy", 1, ps=1, at=5)], running=both)
    assert of(decide(state, 6), ScaledIn) == [ScaledIn("light", ("worker-1",), "heavy")]


# Algorithm 3


def test_the_heaviest_running_job_grows_first_on_its_servers_node_then_where_it_is_then_by_name():
    grows = job("grows", 1, ps=1, least=1, wanted=1, most=6)
    state = queues(cluster(2, 3, 2), running=[running(grows, "n2", "n1")])
    (out,) = of(decide(state, 0), ScaledOut)
    assert dict(out.tasks) == {
        "worker-1": "n2", "worker-2": "n1", "worker-3": "n1", "worker-4": "n0", "worker-5": "n0",
    }  # fmt: skip


def test_of_two_that_may_grow_the_heavier_does():
    light, heavy = job("a-light", 2, ps=4, most=2), job("b-heavy", 2, ps=1, most=2)
    state = queues(cluster(8, 3), running=[running(light, "n0", "n0"), running(heavy, "n1", "n1")])
    assert [(out.job, dict(out.tasks)) for out in of(decide(state, 0), ScaledOut)] == [("b-heavy", {"worker-1": "n0"})]


def test_growing_stops_at_the_maximum_and_fills_gaps_of_indices():
    grows = job("grows", 1, ps=1, least=1, wanted=1, most=3)
    (out,) = of(decide(queues(cluster(10), running=[running(grows, "n0", "n0", None, "n0")]), 0), ScaledOut)
    assert dict(out.tasks) == {"worker-1": "n0"}


def test_exactly_enough_room_is_enough_to_grow():
    grows = job("grows", 1, ps=1, least=1, most=2)
    state = queues(cluster(3), running=[running(grows, "n0", "n0")])
    assert len(of(decide(state, 0), ScaledOut)) == 1
    assert of(decide(state, 0, Options(mode=Mode.LITERAL)), ScaledOut) == []


def test_nobody_grows_while_a_waiting_job_could_be_placed():
    runs = job("runs", 4, ps=4, least=1, most=2)
    heavy, small = job("heavy", 1, ps=1, least=8, at=1), job("small", 1, ps=1, least=1, at=2)
    state = queues(cluster(12), waiting=[heavy, small], running=[running(runs, "n0", "n0")])
    assert of(decide(state, 3), ScaledOut) == []


@pytest.mark.parametrize(("since_s", "grows"), [(59.9, False), (60.0, True)])
def test_a_scaled_job_does_not_grow_before_its_cooldown_is_over(since_s, grows):
    what = job("j", least=1, most=4)
    state = queues(cluster(10), running=[running(what, "n0", "n0", scaled_s=100.0)])
    assert bool(of(decide(state, 100.0 + since_s), ScaledOut)) is grows


def test_a_job_whose_workers_end_grows_no_more():
    state = queues(cluster(10), running=[running(job("j", most=4), "n0", "n0", finishing=True)])
    assert decide(state, 0).decisions == ()


def test_workers_that_ended_a_moment_ago_still_hold_their_room_and_give_none():
    ends = running(job("ends", 2, least=1, most=3), "n0", "n0", finishing=True)
    ends = replace(ends, ended={"worker-1": "n0", "worker-2": "n0"}, settled_s=105.0)
    state = queues(cluster(10), waiting=[job("next", 2, ps=1, wanted=3, at=99)], running=[ends])
    (placed,) = decide(state, 100.0).decisions
    assert len(placed.tasks) == 2  # its server and one worker: seven of ten cores are held
    assert next_look_s(state, 100.0, Options()) == pytest.approx(105.0, abs=0.01)
    settled = queues(state.cluster, waiting=[e.job for e in state.waiting], running=[replace(ends, ended={})])
    assert len(decide(settled, 105.0).decisions[0].tasks) == 4


def test_the_next_look_is_at_the_first_limit_ahead_and_none_behind_counts():
    huge, small = job("huge", 50, at=0), job("small", at=40)
    state = queues(cluster(2), waiting=[huge, small], running=[running(job("j", most=4), "n0", "n0", scaled_s=0.0)])
    assert next_look_s(state, 20.0, Options()) == pytest.approx(30.0, abs=0.01)
    assert next_look_s(state, 30.5, Options()) == pytest.approx(60.0, abs=0.01)
    assert next_look_s(state, 60.5, Options()) == pytest.approx(70.0, abs=0.01)
    assert next_look_s(state, 70.5, Options()) is None


# Placement


def test_the_whole_job_goes_to_the_tightest_node_that_holds_it():
    tasks = place(FreeRoom(cluster(10, 4, 5)), job("j", 1, ps=1, least=1, wanted=3))
    assert set(tasks.values()) == {"n0"} or set(tasks.values()) == {"n1"}
    where = ClusterState((node("a", 10), node("b", 10, used_cpu=6), node("c", 10, used_cpu=5)))
    assert set(place(FreeRoom(where), job("j", 1, ps=1, least=1, wanted=3)).values()) == {"b"}


def test_otherwise_nodes_by_idle_share_with_workers_beside_the_server():
    where = ClusterState((node("a", 10, used_cpu=7), node("b", 10, used_cpu=5), node("c", 10, used_cpu=6)))
    tasks = place(FreeRoom(where), job("j", 2, ps=1, least=4, wanted=4))
    assert tasks == {"ps-0": "b", "worker-0": "b", "worker-1": "b", "worker-2": "c", "worker-3": "c"}


def test_fitting_means_an_actual_placement_not_a_sum():
    where = cluster(3, 3)
    assert could_place(FreeRoom(where), job("j", 2, ps=1, least=2))
    assert not could_place(FreeRoom(where), job("j", 2, ps=2, least=2))  # 6 cores of 6, yet no placement
    assert [type(d) for d in decide(queues(where, waiting=[job("j", 2, ps=2, least=2)]), 0).decisions] == []


def test_the_server_is_put_where_the_workers_still_fit():
    # On the idler n1 the server would leave no room for the second worker.
    assert place(FreeRoom(cluster(3, 4)), job("j", 2, ps=3, least=2)) == {
        "ps-0": "n0",
        "worker-0": "n1",
        "worker-1": "n1",
    }


def test_memory_and_the_number_of_pods_are_dimensions_too():
    where = ClusterState((node("a", 10, memory=2),))
    assert not could_place(FreeRoom(where), job("j", 0.1, ps=0.1, memory=1.1))
    full = node("a")
    crowded = type(full)(full.name, full.allocatable, (full.free[0], full.free[1], 1))
    assert not could_place(FreeRoom(ClusterState((crowded,))), job("j", 0.1, ps=0.1))


def test_devices_are_counted_per_pool_wherever_they_are():
    nodes = (node("a", pool="p"), node("b", pool="p"), node("c"))
    assert could_place(FreeRoom(ClusterState(nodes, {"p": 4})), job("j", pooled=2, least=2))
    assert not could_place(FreeRoom(ClusterState(nodes, {"p": 3})), job("j", pooled=2, least=2))
    tasks = place(FreeRoom(ClusterState(nodes, {"p": 3})), job("j", pooled=1, least=1, wanted=9))
    assert sorted(task for task in tasks if task != "ps-0") == ["worker-0", "worker-1", "worker-2"]
    assert "c" not in tasks.values()
    two = ClusterState((node("a", pool="p"), node("b", pool="q")), {"p": 1, "q": 2})
    tasks = place(FreeRoom(two), job("j", pooled=1, least=1, wanted=9))
    assert sorted(node for task, node in tasks.items() if task != "ps-0") == ["a", "b", "b"]


def test_only_nodes_that_the_pods_may_run_on_are_taken():
    what = job("j")
    bound = type(what)("j", 0.0, what.fixed, ask(1, 1, nodes=frozenset({"n1"})), 1, 1, 1)
    assert place(FreeRoom(cluster(10, 10)), bound)["worker-0"] == "n1"


# The literal pseudocode


LITERAL = Options(mode=Mode.LITERAL)


def test_literal_takes_the_sum_over_the_cluster_for_room():
    verdict = decide(queues(cluster(3, 3), waiting=[job("j", 2, ps=2, least=2)]), 0, LITERAL)
    (placed,) = of(verdict, Placed)
    demand = {name: sum(2 for where in placed.tasks.values() if where == name) for name in ("n0", "n1")}
    assert max(demand.values()) > 3


def test_literal_removes_worker_0_like_any_other():
    light = job("light", 2, ps=2, least=1, wanted=3)
    heavy = job("heavy", 0.5, ps=0.5, least=3, at=5)
    state = queues(cluster(4, 4), waiting=[heavy], running=[running(light, "n0", "n1", "n0", "n1")])
    taken = of(decide(state, 6, LITERAL), ScaledIn)
    assert taken == [ScaledIn("light", ("worker-0",), "heavy")]


def test_literal_never_tests_the_last_removal():
    light = job("light", 2, ps=1, least=1, wanted=2)
    heavy = job("heavy", 1, ps=1, least=1, at=5)
    state = queues(cluster(5), waiting=[heavy], running=[running(light, "n0", "n0", "n0")])
    assert of(decide(state, 6), ScaledIn) == [ScaledIn("light", ("worker-1",), "heavy")]
    two_nodes = queues(cluster(3, 2), waiting=[heavy], running=[running(light, "n0", "n0", "n1")])
    assert of(decide(two_nodes, 6), Placed) != []
    assert of(decide(two_nodes, 6, LITERAL), Placed) == []


def test_literal_places_one_job_per_event_and_grows_without_a_cooldown():
    waiting = [job(f"j{i}", at=i) for i in range(3)]
    assert len(of(decide(queues(cluster(10), waiting=waiting), 3, LITERAL), Placed)) == 1
    scaled = queues(cluster(10), running=[running(job("j", most=4), "n0", "n0", scaled_s=99.0)])
    assert len(of(decide(scaled, 100, LITERAL), ScaledOut)) == 1


def test_literal_grows_on_nodes_as_they_are_listed():
    grows = job("grows", 1, ps=1, least=1, wanted=1, most=2)
    (out,) = of(decide(queues(cluster(3, 3), running=[running(grows, "n1", "n1")]), 0, LITERAL), ScaledOut)
    assert dict(out.tasks) == {"worker-1": "n0"}


# Ablations


def test_parts_can_be_switched_off():
    light = job("light", 2, ps=1, least=1, wanted=4)
    heavy = job("heavy", 1, ps=1, least=2, at=30)
    state = queues(cluster(9), waiting=[heavy], running=[running(light, "n0", *["n0"] * 4)])
    assert decide(state, 31, Options(preemption=False)).decisions == ()
    grow = queues(cluster(9), running=[running(job("j", most=3), "n0", "n0")])
    assert decide(grow, 31, Options(scale_out=False)).decisions == ()
    spread = place(FreeRoom(cluster(10, 10, 10)), job("j", wanted=2), affinity=False)
    assert len(set(spread.values())) == 3
