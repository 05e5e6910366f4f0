import random

import pytest

from mews.harness.api_faults.board import ApiFaultBoard
from mews.harness.api_faults.plans import NO_ANSWER, UNTOUCHED, ApiRequest, EventPlan
from mews.harness.api_faults.registry import API_FAULTS, parse_api_fault

LIST = ApiRequest("list", "pods")
UPDATE = ApiRequest("update", "pods", "a")
WATCH = ApiRequest("watch", "pods")


class Bench:
    """A board with the faults that have fired."""

    def __init__(self, *specs, component="scheduler", version="7"):
        self.fired = []
        self.board = ApiFaultBoard(random.Random(1), lambda armed, request: self.fired.append(armed.fault.kind))
        for spec in specs:
            self.board.add(component, spec, 0.0, version)

    def ask(self, request, now_s=1.0, component="scheduler"):
        return self.board.on_request(component, request, now_s)


def test_a_fault_strikes_its_own_component_alone():
    bench = Bench({"kind": "conflict"})
    assert bench.ask(UPDATE, component="kubelet/host-1") == UNTOUCHED
    assert not bench.board.strikes("kubelet/host-1")
    assert bench.ask(UPDATE).failure.code == 409


@pytest.mark.parametrize(
    ("spec", "code", "is_forwarded", "hold_s"),
    [
        ({"kind": "conflict"}, 409, False, 0),
        ({"kind": "too-many-requests"}, 429, False, 0),
        ({"kind": "server-error"}, 500, False, 0),
        ({"kind": "server-error", "status": 503, "when": "after"}, 503, True, 0),
        ({"kind": "lost-answer"}, NO_ANSWER, True, 0),
        ({"kind": "lost-answer", "when": "before"}, NO_ANSWER, False, 0),
        ({"kind": "request-timeout", "hold_s": 5}, NO_ANSWER, True, 5),
        ({"kind": "request-timeout", "hold_s": 5, "when": "before"}, NO_ANSWER, False, 5),
        ({"kind": "expired-token"}, 401, False, 0),
    ],
)
def test_a_request_that_fails_says_whether_it_took_effect(spec, code, is_forwarded, hold_s):
    plan = Bench(spec).ask(UPDATE)
    assert (plan.failure.code, plan.is_forwarded, plan.hold_s) == (code, is_forwarded, hold_s)


def test_a_slow_request_is_held_and_answered():
    plan = Bench({"kind": "slow-request", "by_s": 3}).ask(LIST)
    assert (plan.hold_s, plan.is_forwarded, plan.failure) == (3, True, None)


def test_a_server_that_is_busy_says_when_to_come_again():
    assert Bench({"kind": "too-many-requests", "retry_after_s": 9}).ask(LIST).failure.retry_after_s == 9


def test_a_conflict_is_of_writes_that_need_a_version():
    bench = Bench({"kind": "conflict", "count": None})
    for verb in ("get", "list", "watch", "create", "delete", "deletecollection"):
        assert bench.ask(ApiRequest(verb, "pods")) == UNTOUCHED, verb
    assert all(bench.ask(ApiRequest(verb, "pods")).failure for verb in ("update", "patch"))


def test_a_fault_fires_as_often_as_its_count_and_until_it_expires():
    bench = Bench({"kind": "server-error", "count": 2, "expires_s": 5})
    assert [bool(bench.ask(LIST, now_s=t).failure) for t in (1, 6, 4, 4)] == [True, False, True, False]
    assert bench.fired == ["server-error"] * 2
    assert bench.board.listed(4)["scheduler"][0]["ended"] is True


def test_filters_choose_the_requests():
    bench = Bench({"kind": "server-error", "operation": "create", "resource": "pods/binding", "count": None})
    assert bench.ask(ApiRequest("create", "pods", "a")) == UNTOUCHED
    assert bench.ask(ApiRequest("update", "pods", "a", "binding")) == UNTOUCHED
    assert bench.ask(ApiRequest("create", "pods", "a", "binding")).failure
    below = Bench({"kind": "server-error", "resource": "pods", "count": None})
    assert below.ask(ApiRequest("update", "pods", "a", "status")).failure
    assert below.ask(ApiRequest("update", "nodes", "a")) == UNTOUCHED


def test_the_first_fault_that_refuses_is_the_only_one_that_counts():
    bench = Bench({"kind": "conflict"}, {"kind": "server-error"})
    assert bench.ask(UPDATE).failure.code == 409
    assert bench.fired == ["conflict"]
    assert bench.ask(UPDATE).failure.code == 500


def test_stale_reads_show_the_version_at_which_they_were_added():
    bench = Bench({"kind": "stale-reads", "resource": "pods"}, version="41")
    assert bench.ask(LIST).version == bench.ask(ApiRequest("get", "pods", "a")).version == "41"
    assert bench.ask(UPDATE) == bench.ask(ApiRequest("list", "nodes")) == UNTOUCHED
    assert bench.board.release_s("scheduler", WATCH, 1, arrived_s=2.0, now_s=2.0) == float("inf")
    bench.board.clear("scheduler")
    assert bench.board.release_s("scheduler", WATCH, 1, arrived_s=2.0, now_s=9.0) == 2.0


def test_a_lagging_watch_releases_events_late_and_fires_once_for_each_watch():
    bench = Bench({"kind": "lagging-watch", "by_s": 10})
    due = [bench.board.release_s("scheduler", WATCH, watch, arrived_s=5.0, now_s=5.0) for watch in (1, 1, 2)]
    assert due == [15.0] * 3
    assert bench.fired == ["lagging-watch"] * 2


def test_watches_out_of_order_lag_by_times_of_their_own():
    bench = Bench({"kind": "unordered-watches", "by_s": 10})
    due = [bench.board.release_s("scheduler", WATCH, watch, arrived_s=0.0, now_s=0.0) for watch in (1, 2, 1)]
    assert due[0] == due[2] != due[1]
    assert all(0 <= each <= 10 for each in due)


def test_events_are_repeated_and_watches_end():
    bench = Bench({"kind": "repeated-events", "times": 2})
    assert bench.board.on_event("scheduler", WATCH, 1, 1.0) == EventPlan(copies=2)
    assert bench.board.on_event("scheduler", WATCH, 1, 1.0) == EventPlan(copies=2)
    assert bench.fired == ["repeated-events"]
    broken = Bench({"kind": "broken-watch", "how": "gone"})
    assert broken.board.on_event("scheduler", WATCH, 1, 1.0) == EventPlan(ends="gone")
    assert broken.board.on_event("scheduler", WATCH, 2, 1.0) == EventPlan()


def test_one_fault_is_cleared_by_its_number_and_one_that_is_not_there_is_named():
    bench = Bench({"kind": "conflict"}, {"kind": "server-error"})
    assert [each.id for each in bench.board.clear(fault_id="a1")] == ["a1"]
    with pytest.raises(ValueError, match="fault 'a1': active faults are a2"):
        bench.board.clear(fault_id="a1")
    bench.board.clear()
    assert bench.board.listed(0.0) == {}
    assert not bench.board.strikes("scheduler")


@pytest.mark.parametrize("kind", API_FAULTS.ours())
def test_every_kind_of_ours_has_defaults_and_says_what_it_strikes(kind):
    fault, when = parse_api_fault({"kind": kind})
    assert bool(fault.on) == (kind != "frozen-process")  # that strikes the process, and no request
    assert fault.kind == kind
    assert fault.grace_s >= 15
    assert when.count == fault.count


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"kind": "lagging-watch", "by_s": 3601}, "by_s 3601: must be from 0 to 3600"),
        ({"kind": "lagging-watch", "by_s": "long"}, "by_s 'long': must be of type float"),
        ({"kind": "repeated-events", "times": 0}, "times 0: must be from 1 to 10"),
        ({"kind": "too-many-requests", "retry_after_s": 0}, "retry_after_s 0: must be from 1 to 3600"),
        ({"kind": "server-error", "status": 418}, "status 418: must be one of 500, 503, 504"),
        ({"kind": "broken-watch", "how": "badly"}, "how 'badly': must be one of closed, broken, gone"),
        ({"kind": "conflict", "operation": "list"}, "operation 'list': must be one of update, patch"),
        ({"kind": "conflict", "device": "000100"}, "unknown key 'device'"),
        ({"kind": "expired-token", "resource": "pods"}, "unknown key 'resource'"),
        ({"kind": "lying-result"}, "fault kind 'lying-result'"),
    ],
)
def test_what_is_no_such_fault_is_refused_in_a_line(spec, said):
    with pytest.raises(ValueError) as refused:
        parse_api_fault(spec)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
