"""Every fault of contract chassis.md 6: what it does, how often, and that it is undone."""

from __future__ import annotations

import pytest

from mews.emulator.chassis.faults.registry import CHASSIS_FAULTS
from mews.emulator.chassis.operation import OperationOutcome
from tests.emulator.boxes import TIMED, box, done, ports


def with_fault(heard=None, now_s=0.0, **spec):
    made = box(heard, profile=TIMED)
    made.faults.add(spec, now_s)
    return made


def detach(made, device="d0", now_s=0.0):
    return done(made, made.begin_detach(device, now_s))


def free(made, device="d0"):
    made.edits.edit(device, None, made.now_s)
    return made


def attach(made, device="d0", port="2"):
    return done(made, made.begin_attach(device, port, made.now_s))


def read(made):
    return done(made, made.begin_read(made.now_s))


def test_a_slow_operation_takes_longer_once():
    made = with_fault(kind="slow-operation", factor=3, extra_s=1)
    assert made.begin_detach("d0", 0.0).due_s == 16.0
    assert made.begin_detach("d1", 0.0).due_s == 21.0


def test_a_lying_result_says_the_opposite_of_what_happened():
    made = free(with_fault(kind="lying-result", count=2))
    lie = attach(made)
    assert (lie.ok, lie.truth, ports(made)["d0"]) == (False, True, "2")
    lie = attach(made)
    assert (lie.ok, lie.truth) == (True, False)
    assert not attach(made).ok


def test_a_lie_in_one_direction_leaves_the_other_alone_and_uncounted():
    made = free(with_fault(kind="lying-result", operation="attach", says=False, count=1))
    assert not attach(made, port="9").ok
    assert made.faults.listed()[0]["fired"] == 0
    assert not attach(made).ok
    assert made.faults.listed()[0]["fired"] == 1


def test_of_two_attaches_in_the_queue_the_refused_one_tells_no_lie_that_is_not_its_own():
    made = free(with_fault(kind="lying-result", operation="attach", says=False, count=None))
    first, second = made.begin_attach("d0", "1", 0.0), made.begin_attach("d0", "2", 0.0)
    answers = [done(made, operation) for operation in (first, second)]
    assert [(answer.ok, answer.truth, answer.lie) for answer in answers] == [(False, True, True), (False, False, False)]


@pytest.mark.parametrize(("when", "port"), [("before", "1"), ("after", None)])
def test_a_dropped_connection_comes_before_or_after_the_effect(when, port):
    made = with_fault(kind="dropped-connection", when=when)
    assert detach(made).outcome is OperationOutcome.DROPPED
    assert ports(made)["d0"] == port


def test_a_partial_list_lacks_half_of_the_devices():
    made = with_fault(kind="partial-list")
    assert len(read(made).rows) == 2
    assert len(read(made).rows) == 4


def test_a_stale_list_is_that_of_some_time_ago():
    made = with_fault(kind="stale-list", age_s=20)
    made.edits.edit("d0", None, 5.0)
    made.edits.edit("d0", "2", 15.0)
    rows = done(made, made.begin_read(30.0)).rows
    assert rows[0].port is None
    assert read(made).rows[0].port == "2"


@pytest.mark.parametrize(("when", "port"), [("before", "1"), ("after", None)])
def test_an_http_error_comes_before_or_after_the_effect(when, port):
    made = with_fault(kind="http-error", status=500, when=when)
    answer = detach(made)
    assert (answer.outcome, answer.status) == (OperationOutcome.ERROR, 500)
    assert ports(made)["d0"] == port


@pytest.mark.parametrize(("when", "port"), [("before", "1"), ("after", None)])
def test_tokens_end_amid_an_operation_before_or_after_the_effect(when, port):
    made = with_fault(kind="token-ends", when=when)
    operation = made.begin_detach("d0", 0.0)
    answer = done(made, operation)
    assert (answer.outcome, answer.status, operation.ends_login) == (OperationOutcome.ERROR, 401, True)
    assert ports(made)["d0"] == port
    assert not made.begin_detach("d1", 10.0).ends_login


def test_a_busy_manager_refuses_a_move_without_delay_and_without_effect():
    made = with_fault(kind="layout-busy")
    operation = made.begin_detach("d0", 0.0)
    answer = done(made, operation)
    assert (answer.ok, answer.refusal.code, operation.due_s, ports(made)["d0"]) == (False, "busy", 0.0, "1")
    assert done(made, made.begin_detach("d0", 0.0)).ok


def test_what_is_refused_anyhow_is_not_refused_as_busy():
    made = with_fault(kind="layout-busy")
    assert done(made, made.begin_attach("d0", "2", 0.0)).refusal.code == "already-attached"
    assert done(made, made.begin_detach("d0", 0.0)).refusal.code == "busy"


@pytest.mark.parametrize(("when", "port"), [("before", "1"), ("after", None)])
def test_a_layout_ends_half_done_before_or_after_the_effect(when, port):
    made = with_fault(kind="layout-half-done", ends="SUSPENDED", when=when)
    operation = made.begin_detach("d0", 0.0)
    done(made, operation)
    assert (operation.layout_ends, ports(made)["d0"]) == ("SUSPENDED", port)
    assert made.begin_detach("d1", 10.0).layout_ends == ""


def test_a_device_is_listed_twice_once():
    made = with_fault(kind="listed-twice")
    devices = [row.device for row in read(made).rows]
    assert len(devices) == 5 and set(devices) == {"d0", "d1", "d2", "d3"}
    assert len(read(made).rows) == 4


def test_a_host_that_nobody_knows_has_one_device_more():
    made = with_fault(kind="unknown-host")
    *known, strange = read(made).rows
    assert [row.device for row in known] == ["d0", "d1", "d2", "d3"]
    assert strange.port not in made.spec.ports and strange.device not in made.table.devices()
    assert len(read(made).rows) == 4


def test_a_timeout_keeps_the_client_waiting_but_not_the_management_cpu():
    made = with_fault(kind="timeout", hold_s=100)
    held = made.begin_detach("d0", 0.0)
    assert (held.due_s, held.answer_s) == (5.0, 105.0)
    assert made.begin_detach("d1", 0.0).due_s == 10.0
    assert done(made, held).outcome is OperationOutcome.DROPPED
    assert ports(made)["d0"] is None


def test_a_half_applied_attach_says_done_and_leaves_the_device_on_no_port():
    made = free(with_fault(kind="half-applied-attach"))
    answer = attach(made)
    assert (answer.ok, answer.truth, ports(made)["d0"]) == (True, False, None)
    assert attach(made).truth


def test_a_device_that_never_trains_fails_every_attach_until_cleared():
    made = free(with_fault(kind="never-trains", device="d0", wait_s=11))
    for _ in range(3):
        operation = made.begin_attach("d0", "2", made.now_s)
        assert operation.due_s - operation.start_s == 11.0
        assert done(made, operation).refusal.code == "link-down"
    assert attach(free(made, "d1"), "d1").ok
    made.faults.clear(made.now_s)
    assert attach(made).ok


def test_a_management_reboot_loses_what_runs_and_keeps_the_table():
    heard = []
    made = with_fault(heard, kind="management-reboot", after_s=3, down_s=60)
    running, queued = made.begin_detach("d0", 0.0), made.begin_detach("d1", 0.0)
    assert made.finish(running, 3.0).outcome is OperationOutcome.DROPPED
    assert queued.answer_s == 3.0
    assert read(made).outcome is OperationOutcome.DROPPED
    assert made.begin_read(62.9).answer_s == 62.9
    made.settle(63.0)
    assert read(made).outcome is OperationOutcome.REPLY
    assert ports(made) == dict.fromkeys(("d0", "d1", "d2", "d3"), "1")
    assert [(e.event, e.t) for e in heard if "management" in e.event] == [
        ("management-down", 3.0),
        ("management-up", 63.0),
    ]


def test_a_management_reboot_can_come_in_the_middle_of_an_operation():
    made = with_fault(kind="management-reboot", operation="detach", down_s=10)
    assert read(made).outcome is OperationOutcome.REPLY
    running = made.begin_detach("d0", 2.0)
    made.settle(4.6)
    assert (running.outcome, running.answer_s) == (OperationOutcome.DROPPED, 4.5)
    made.settle(14.5)
    assert detach(made, now_s=14.5).ok


def test_clearing_a_reboot_brings_the_server_back():
    made = with_fault(kind="management-reboot", down_s=1000)
    assert read(made).outcome is OperationOutcome.DROPPED
    made.faults.clear(5.0)
    assert read(made).outcome is OperationOutcome.REPLY


def test_a_concurrent_editor_changes_the_table_at_a_given_time():
    heard = []
    made = with_fault(heard, kind="concurrent-editor", edit="d2", port="2", after_s=7)
    assert made.row("d2", 6.9).port == "1"
    assert made.row("d2", 7.0).port == "2"
    assert [e.fields["cause"] for e in heard if e.event == "table-changed"] == ["concurrent-editor"]


def test_a_concurrent_editor_comes_before_the_second_attach():
    made = with_fault(kind="concurrent-editor", operation="attach", port="1", skip=1, when="before")
    free(free(made), "d1")
    assert attach(made, "d0").ok
    answer = attach(made, "d1")
    assert answer.refusal.code == "already-attached"
    assert ports(made)["d1"] == "1"


def test_a_concurrent_editor_comes_after_an_attach():
    made = free(with_fault(kind="concurrent-editor", operation="attach", when="after"))
    assert attach(made).ok
    assert ports(made)["d0"] is None


def test_a_device_whose_link_goes_down_is_not_listed_but_stays_in_the_table():
    heard = []
    made = with_fault(heard, kind="link-down", device="d0", after_s=4)
    assert len(read(made).rows) == 4
    made.settle(6.0)
    assert [row.device for row in read(made).rows] == ["d1", "d2", "d3"]
    assert ports(made)["d0"] == "1"
    made.faults.clear(20.0)
    assert [row.device for row in read(made).rows] == ["d0", "d1", "d2", "d3"]
    assert [e.event for e in heard if e.event.startswith("link")] == ["link-down", "link-up"]


@pytest.mark.parametrize(("uuid", "shown"), [("", ""), ("GPU-wrong", "GPU-wrong")])
def test_a_wrong_or_missing_uuid_shows_after_the_attach_until_cleared(uuid, shown):
    made = free(with_fault(kind="wrong-uuid", uuid=uuid))
    assert read(made).rows[0].uuid == "GPU-0"
    attach(made)
    assert read(made).rows[0].uuid == shown
    made.faults.clear(made.now_s)
    assert read(made).rows[0].uuid == "GPU-0"


def test_a_device_that_loses_its_uuid_stays_listed_where_it_is():
    made = with_fault(kind="lost-uuid", device="d0", after_s=4)
    assert read(made).rows[0].uuid == "GPU-0"
    made.settle(6.0)
    assert (read(made).rows[0].device, read(made).rows[0].uuid) == ("d0", "")
    made.faults.clear(20.0)
    assert read(made).rows[0].uuid == "GPU-0"


def test_a_made_up_uuid_is_none_of_the_chassis():
    made = free(with_fault(kind="wrong-uuid"))
    attach(made)
    assert read(made).rows[0].uuid.startswith("GPU-")
    assert read(made).rows[0].uuid != "GPU-0"


def test_events_out_of_order_are_told_late_with_their_true_time():
    heard = []
    made = with_fault(heard, kind="events-out-of-order", delay_s=3)
    made.edits.edit("d0", None, 1.0)
    made.edits.edit("d1", None, 2.0)
    made.settle(10.0)
    changes = [(e.t, e.fields["device"]) for e in heard if e.event == "table-changed"]
    assert changes == [(2.0, "d1"), (1.0, "d0")]
    numbers = [e.number for e in heard if e.event == "table-changed"]
    assert numbers == sorted(numbers, reverse=True)


def test_a_held_event_is_not_lost_by_a_reset():
    heard = []
    made = with_fault(heard, kind="events-out-of-order", delay_s=100)
    made.edits.edit("d0", None, 1.0)
    made.reset(2.0)
    numbers = [event.number for event in heard]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert "table-changed" in [event.event for event in heard]


def test_an_aftermath_within_a_minute_is_one_eof_and_then_one_partial_list():
    made = free(with_fault(kind="read-aftermath", within_s=60, partial=1))
    attach(made)
    seen = []
    for _ in range(60):
        made.settle(made.now_s + 1)
        answer = read(made)
        seen.append("eof" if answer.outcome is OperationOutcome.DROPPED else len(answer.rows))
    assert seen.count("eof") == 1
    assert seen[seen.index("eof") + 1] == 2
    assert seen.count(4) == 58


def test_a_filter_by_device_and_skip_and_count_decides_what_is_struck():
    made = with_fault(kind="slow-operation", operation="detach", device="d1", skip=1, count=1, extra_s=50)
    durations = []
    for device in ("d0", "d1", "d1", "d1", "d0"):
        operation = made.begin_detach(device, made.now_s)
        durations.append(operation.due_s - operation.start_s)
        done(made, operation)
    assert durations == [5.0, 5.0, 55.0, 5.0, 5.0]


def test_chance_is_the_boxs_own_and_repeats():
    def struck(seed):
        made = box(profile=TIMED, seed=seed)
        made.faults.add({"kind": "dropped-connection", "operation": "read", "probability": 0.5, "count": None}, 0.0)
        return [read(made).outcome is OperationOutcome.DROPPED for _ in range(40)]

    assert struck(1) == struck(1) != struck(2)
    assert 8 < sum(struck(1)) < 32


def test_every_firing_is_told_with_the_invariants_it_may_break():
    heard = []
    made = with_fault(heard, kind="dropped-connection", operation="detach")
    detach(made)
    fired = [e.fields for e in heard if e.event == "fault-fired"]
    assert fired == [
        {
            "fault": "f1",
            "kind": "dropped-connection",
            "fired": 1,
            "left": 0,
            "may_break": [4, 5, 8],
            "grace_s": 5.0,
            "built_in": False,
            "device": "d0",
            "operation": 1,
        }
    ]


@pytest.mark.parametrize("kind", CHASSIS_FAULTS.ours())
def test_every_fault_has_the_same_shape(kind):
    fault = CHASSIS_FAULTS.find(kind)
    assert fault.kind == kind
    assert set(fault.on) <= {"attach", "detach", "read"}
    assert set(fault.may_break) <= set(range(1, 11))
    assert fault.__doc__


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "fault kind None: must be one of "),
        ({"kind": "nope"}, "fault kind 'nope': must be one of slow-operation"),
        ({"kind": "slow-operation", "facto": 2}, "unknown key 'facto'; allowed: factor, operation"),
        ({"kind": "slow-operation", "factor": "x"}, "factor 'x': must be of type float"),
        ({"kind": "slow-operation", "factor": -1}, "factor -1.0: must be 0 or more"),
        ({"kind": "slow-operation", "device": "nope"}, "device 'nope': chassis A has d0, d1, d2, d3"),
        ({"kind": "slow-operation", "operation": "move"}, "operation 'move': must be one of attach, detach, read"),
        ({"kind": "slow-operation", "count": 0}, "count 0: must be at least 1"),
        ({"kind": "slow-operation", "probability": 2}, "probability 2.0: must be from 0 to 1"),
        ({"kind": "dropped-connection", "when": "later"}, "when 'later': must be one of before, after"),
        ({"kind": "http-error", "status": 404}, "status 404: must be one of 500, 501"),
        ({"kind": "link-down"}, "device is required"),
        ({"kind": "link-down", "device": "nope"}, "device 'nope': chassis A has d0"),
        ({"kind": "concurrent-editor"}, "edit is required"),
        ({"kind": "lying-result", "says": "no"}, "says 'no': must be of type bool or null"),
        ("lying-result", "must be a mapping with a kind"),
    ],
)
def test_a_bad_spec_is_told_with_what_is_allowed(spec, message):
    made = box()
    with pytest.raises(ValueError) as caught:
        made.faults.add(spec, 0.0)
    assert message in str(caught.value)
    assert made.faults.listed() == []


def test_one_fault_of_several_can_be_cleared():
    made = box(profile=TIMED)
    first = made.faults.add({"kind": "slow-operation"}, 0.0)
    second = made.faults.add({"kind": "partial-list"}, 0.0)
    made.faults.clear(0.0, first)
    assert [fault["fault"] for fault in made.faults.listed()] == [second]
    with pytest.raises(ValueError, match="active faults are f2"):
        made.faults.clear(0.0, first)
