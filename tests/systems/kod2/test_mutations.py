"""Tests of the tests: with one rule of the contract broken on purpose in the code, the test of that rule fails."""

import inspect
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType

import pytest

from mews.systems.kod2 import edits, outcome, placement, policy, scaling, status, tfjob, training, view
from mews.systems.kod2.experiment import simulation
from tests.systems.kod2 import test_edits, test_operator, test_placement, test_pods, test_policy, test_simulation


@dataclass(frozen=True)
class Mutation:
    """A rule, a function in which it stands, its text, the broken text, and the test that finds it."""

    rule: str
    of: object
    text: str
    broken: str
    test: object
    given: tuple = ()


_SCHEDULING = policy._Scheduling
MUTATIONS = [
    # Algorithm 1
    Mutation(
        "line 5 is >=, not >", _SCHEDULING._is_heaviest, ">= self._heaviest", "> self._heaviest",
        test_policy.test_a_waiting_job_as_heavy_as_the_heaviest_that_runs_is_the_head_of_the_line,
    ),
    Mutation(
        "longer than STARVELIMIT, not as long", _SCHEDULING._starve, "> self._options", ">= self._options",
        test_policy.test_who_waits_longer_than_the_limit_starves_and_may_then_preempt_anybody,
    ),
    Mutation(
        "the longest wait of several starving", _SCHEDULING._rank, "weight, job.arrived_s,", "weight, -job.arrived_s,",
        test_policy.test_of_several_starving_jobs_the_longest_wait_goes_first,
    ),
    Mutation(
        "a starving job is above all weights", _SCHEDULING._effective, "math.inf if entry.starving else ", "",
        test_policy.test_who_waits_longer_than_the_limit_starves_and_may_then_preempt_anybody,
    ),
    Mutation(
        "a job larger than the cluster is outside the line", _SCHEDULING._order, " if key not in self._too_large", "",
        test_policy.test_a_job_larger_than_the_cluster_says_so_and_blocks_nobody,
    ),
    Mutation(
        "the head that cannot be placed holds the line", _SCHEDULING._head, "if self._options.backfill", "if True",
        test_policy.test_the_heaviest_that_cannot_be_placed_holds_the_line_unless_backfill_is_on,
    ),
    Mutation(
        "the weight counts the servers", policy._weight, "sum(ask.amounts[dimension] for _, ask in job.fixed) + ", "",
        test_policy.test_without_the_server_the_minimum_would_cancel,
    ),
    Mutation(
        "the raw weight decides, not the sigmoid", policy.weights_of,
        "_weight(job, largest)", "published(_weight(job, largest))",
        test_policy.test_the_published_weight_is_the_sigmoid_and_saturates_while_decisions_compare_the_raw_one,
    ),
    # ScaleIn
    Mutation(
        "equal weight and equal arrival is no victim", scaling.victims, "arrived_s > job", "arrived_s >= job",
        test_policy.test_of_equal_jobs_that_came_at_the_same_moment_none_takes_from_the_other,
    ),
    Mutation(
        "equal weight that came earlier is no victim", scaling.victims,
        "(weights[other.job.key] == weight and other.job.arrived_s > job.arrived_s)",
        "weights[other.job.key] == weight",
        test_policy.test_equal_weight_that_came_earlier_is_never_preempted,
    ),
    Mutation(
        "worker-0 is never taken", scaling.removable, "worker_index(task) > 0", "worker_index(task) >= 0",
        test_policy.test_worker_0_and_the_server_stay,
    ),
    Mutation(
        "never below the minimum", scaling.removable, "- victim.job.minimum", "",
        test_policy.test_never_below_the_minimum,
    ),
    Mutation(
        "nodes without the servers first", scaling.removable, "victim.tasks[task] in servers,", "",
        test_policy.test_workers_beside_the_server_stay_longer_whatever_their_nodes_are_called,
    ),
    Mutation(
        "the highest index first", scaling.removable, "-worker_index(task))", "worker_index(task))",
        test_policy.test_workers_away_from_the_server_go_first_highest_index_first,
    ),
    Mutation(
        "unneeded removals are dropped", scaling.scale_in,
        "_needed(trial, workers, job, removals)", "removals",
        test_policy.test_removals_that_turn_out_unneeded_are_dropped,
    ),
    # ScaleOut
    Mutation(
        "the servers' node first", scaling.scale_out, "(name not in servers, name not in hosts, name)", "name",
        test_policy.test_the_heaviest_running_job_grows_first_on_its_servers_node_then_where_it_is_then_by_name,
    ),
    Mutation(
        "not while a waiting job could be placed", _SCHEDULING._grow,
        " or any(could_place(self._room, e.job) for e in order if not e.refused)", "",
        test_policy.test_nobody_grows_while_a_waiting_job_could_be_placed,
    ),
    Mutation(
        "no growth before the cooldown is over", _SCHEDULING._may_grow,
        ">= self._options.cooldown_s", ">= 0",
        test_policy.test_a_scaled_job_does_not_grow_before_its_cooldown_is_over, (59.9, False),
    ),
    Mutation(
        "growth at the very end of the cooldown", _SCHEDULING._may_grow,
        ">= self._options.cooldown_s", "> self._options.cooldown_s",
        test_policy.test_a_scaled_job_does_not_grow_before_its_cooldown_is_over, (60.0, True),
    ),
    # Placement
    Mutation(
        "the tightest node", placement._on_one, "tightness < best", "tightness > best",
        test_policy.test_the_whole_job_goes_to_the_tightest_node_that_holds_it,
    ),
    Mutation(
        "devices are counted per pool", placement._on_several, "pools.get(pool, 0) // job.worker.pooled", "count",
        test_policy.test_devices_are_counted_per_pool_wherever_they_are,
    ),
    Mutation(
        "several servers are searched for", placement.Workers._searched,
        "if found.tasks is None", "if True",
        test_placement.test_with_several_fixed_tasks_a_placement_is_found_exactly_when_there_is_one_and_with_the_most_workers,
    ),
    Mutation(
        "pods of others hold room", view.QueueView._cluster, "if name in free and requests:", "if False:",
        test_operator.test_pods_that_are_no_tfjobs_hold_their_room,
    ),
    Mutation(
        "deleting pods are room to place in", view.QueueView._cluster, "if owner and is_deleting(pod):", "if False:",
        test_operator.test_pods_of_jobs_that_are_on_their_way_out_are_room_to_place_in_and_not_yet_to_start_in,
    ),
    Mutation(
        "deleting pods are no room to start in", view.QueueView.room_for,
        "in self._cache.pods_on(node_name):", "in ():",
        test_operator.test_pods_of_jobs_that_are_on_their_way_out_are_room_to_place_in_and_not_yet_to_start_in,
    ),
    Mutation(
        "what pods hold beyond their spec is no room", view.QueueView._beyond, "if held > 0", "if False",
        test_edits.test_a_running_job_whose_pods_hold_more_than_its_spec_asks_for_now_still_holds_that,
    ),
    # Edits, conditions, the end
    Mutation(
        "worker-0 outlasts a lowered maximum", edits._surplus, "worker_index(task) == 0,", "worker_index(task) != 0,",
        test_edits.test_a_lowered_maximum_takes_workers_away_from_the_server_first, (policy.Mode.CORRECTED,),
    ),
    Mutation(
        "lastTransitionTime is that of the change of status", status.with_condition,
        'known["status"] == value else', "False else",
        test_pods.test_a_condition_that_stays_true_keeps_the_time_at_which_it_became_so,
    ),
    Mutation(
        "lastTransitionTime changes with the status", status.with_condition,
        'known["status"] == value else', "True else",
        test_pods.test_a_condition_that_stays_true_keeps_the_time_at_which_it_became_so,
    ),
    Mutation(
        "worker-0 alone does not end an elastic job", outcome._has_succeeded,
        "not job.elastic and ", "",
        test_pods.test_an_elastic_job_is_finished_when_every_worker_that_still_exists_succeeded,
    ),
    Mutation(
        "bounds hold the replicas", tfjob._bounds, "1 <= minimum <= replicas <= maximum", "1 <= minimum <= maximum",
        test_pods.test_bounds_that_do_not_hold_the_replicas_are_refused, ({"maxReplicas": 1},),
    ),
    # The experiment
    Mutation(
        "the servers' cores count as busy", simulation.TrainingSimulation._speeds,
        "for task, ask in job.fixed if is_server(task)) * load", "for task, ask in ()) * load",
        test_simulation.test_busy_cores_are_the_workers_and_the_servers,
    ),
    Mutation(
        "the servers' cores count by how busy they are", simulation.TrainingSimulation._speeds,
        "if is_server(task)) * load", "if is_server(task))",
        test_simulation.test_busy_cores_are_the_workers_and_the_servers,
    ),
    Mutation(
        "a busy server slows its workers", training.speed, "servers * shape.server_rate", "asked",
        test_simulation.test_speed_grows_with_the_workers_until_the_servers_are_busy,
    ),
]  # fmt: skip


def _code_of(compiled, name, first_line):
    """The code of the function that begins at that line."""
    for constant in compiled.co_consts:
        if isinstance(constant, CodeType):
            if (constant.co_name, constant.co_firstlineno) == (name, first_line):
                return constant
            found = _code_of(constant, name, first_line)
            if found is not None:
                return found
    return None


@contextmanager
def planted(mutation):
    """The function with the broken text: whoever has it, has that."""
    function = mutation.of
    lines, first_line = inspect.getsourcelines(function)
    body = "".join(lines)
    assert body.count(mutation.text) == 1, f"{mutation.rule}: its text is not there once"
    module = sys.modules[function.__module__]
    whole = inspect.getsource(module)
    broken = whole.replace(body, body.replace(mutation.text, mutation.broken))
    code = _code_of(compile(broken, module.__file__, "exec"), function.__name__, first_line)
    good = function.__code__
    assert code is not None and code.co_freevars == good.co_freevars
    function.__code__ = code.replace(co_flags=good.co_flags)
    try:
        yield
    finally:
        function.__code__ = good


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.rule)
def test_a_broken_rule_fails_its_test_and_an_unbroken_one_does_not(mutation):
    mutation.test(*mutation.given)
    with planted(mutation), pytest.raises((AssertionError, pytest.fail.Exception)):
        mutation.test(*mutation.given)
    mutation.test(*mutation.given)
