"""One chassis: due times, the one management CPU, refusals, out-of-band changes."""

from __future__ import annotations

import time

import pytest

from mews.emulator.chassis import errors
from mews.emulator.chassis.operation import OperationKind
from mews.emulator.hardware.inventory import DeviceSpec
from tests.emulator.boxes import TIMED, box, done, ports


def test_an_operation_takes_effect_at_its_due_time_and_not_before():
    made = box(profile=TIMED)
    operation = made.begin_detach("d0", 100.0)
    assert operation.due_s == 105.0
    assert made.row("d0", 104.999).port == "1"
    assert made.operations.pending() == {"d0": OperationKind.DETACH}
    assert made.row("d0", 105.0).port is None
    assert made.operations.pending() == {}


def test_what_was_due_long_ago_is_settled_in_order_of_its_time():
    heard = []
    made = box(heard, profile=TIMED)
    made.begin_detach("d0", 0.0)
    made.begin_attach("d0", "2", 0.0)
    made.settle(1000.0)
    changes = [(event.t, event.fields["new_port"]) for event in heard if event.event == "table-changed"]
    assert changes == [(5.0, None), (15.0, "2")]


def test_writes_queue_for_the_one_management_cpu():
    made = box(profile=TIMED)
    dues = [made.begin_detach(f"d{n}", 1.0).due_s for n in range(3)]
    assert dues == [6.0, 11.0, 16.0]


def test_reads_are_answered_beside_a_running_write():
    made = box(profile=TIMED)
    made.begin_detach("d0", 0.0)
    assert made.begin_read(1.0).due_s == 3.0


def test_reads_queue_where_the_profile_says_so():
    made = box(profile={**TIMED, "reads_queue": True})
    made.begin_detach("d0", 0.0)
    assert made.begin_read(1.0).due_s == 7.0


def test_a_read_shows_the_table_of_its_due_time():
    made = box(profile=TIMED)
    read = made.begin_read(0.0)
    made.edits.edit("d0", None, 1.0)
    assert done(made, read).rows[0].port is None


def test_a_queued_write_is_checked_when_its_turn_comes():
    made = box(profile=TIMED)
    made.begin_detach("d0", 0.0)
    first, second = made.begin_attach("d0", "1", 0.0), made.begin_attach("d0", "2", 0.0)
    assert done(made, first).ok
    refusal = done(made, second).refusal
    assert isinstance(refusal, errors.AlreadyAttachedError)
    assert ports(made)["d0"] == "1"


@pytest.mark.parametrize(
    ("device", "port", "refusal"),
    [
        ("nope", "1", errors.UnknownDeviceError),
        ("d0", "", errors.AlreadyAttachedError),
        ("d1", "", errors.MissingPortError),
        ("d1", "9", errors.UnknownPortError),
        ("d1", "3", errors.UncabledPortError),
    ],
)
def test_attaches_that_cannot_be_are_refused_at_once_in_this_order(device, port, refusal):
    made = box(profile=TIMED)
    made.edits.edit("d1", None, 0.0)
    before = ports(made)
    operation = made.begin_attach(device, port, 0.0)
    answer = done(made, operation)
    assert operation.answer_s == 0.0
    assert not answer.ok
    assert type(answer.refusal) is refusal
    assert ports(made) == before


def test_detach_of_a_free_device_is_done_and_changes_nothing():
    heard = []
    made = box(heard, attached=None)
    assert done(made, made.begin_detach("d0", 0.0)).ok
    assert [event.event for event in heard] == ["operation-begun", "operation-finished"]


def test_one_more_device_than_slots_is_refused():
    made = box(devices=3, slots=4)
    made.edits.insert(DeviceSpec("d3", "GPU-3"), 0.0)
    with pytest.raises(errors.SlotsFullError, match="all 4 slots"):
        made.edits.insert(DeviceSpec("d4", "GPU-4"), 0.0)
    made.edits.remove("d0", 0.0)
    made.edits.insert(DeviceSpec("d4", "GPU-4"), 0.0)
    assert list(ports(made)) == ["d1", "d2", "d3", "d4"]


def test_a_device_cannot_be_inserted_twice():
    with pytest.raises(errors.DuplicateDeviceError):
        box(slots=9).edits.insert(DeviceSpec("d0", "GPU-9"), 0.0)


def test_an_edit_goes_straight_from_port_to_port_and_is_told():
    heard = []
    made = box(heard)
    made.edits.edit("d0", "2", 3.0)
    assert [event.as_dict() for event in heard] == [
        {
            "number": 1,
            "t": 3.0,
            "chassis": "A",
            "event": "table-changed",
            "device": "d0",
            "old_port": "1",
            "new_port": "2",
            "cause": "edit",
        }
    ]


def test_an_edit_to_where_no_host_is_cabled_is_refused():
    made = box()
    with pytest.raises(errors.UncabledPortError):
        made.edits.edit("d0", "3", 0.0)
    assert ports(made)["d0"] == "1"


def test_reset_gives_back_table_chance_and_operations():
    made = box(profile="falcon-4005", seed=3)
    first = [made.begin_read(0.0).due_s for _ in range(5)]
    running = made.begin_detach("d0", 1.0)
    made.edits.edit("d1", "2", 1.0)
    made.faults.add({"kind": "slow-operation"}, 1.0)
    made.reset(2.0)
    assert made.finish(running, 2.0).outcome.value == "dropped"
    assert ports(made, 1000.0) == dict.fromkeys(("d0", "d1", "d2", "d3"), "1")
    assert [fault["kind"] for fault in made.faults.listed() if not fault["built_in"]] == []
    made.reset(2000.0)
    assert [made.begin_read(2000.0).due_s - 2000.0 for _ in range(5)] == pytest.approx(first)


def test_the_same_seed_gives_the_same_times_and_another_one_others():
    def dues(seed):
        made = box(profile="falcon-4005", seed=seed)
        return [made.begin_detach(f"d{n}", 0.0).due_s for n in range(4)]

    assert dues(1) == dues(1)
    assert dues(1) != dues(2)


def test_an_operation_costs_the_same_with_ten_and_with_ten_thousand_devices():
    def cost(devices):
        made = box(devices=devices)
        best = float("inf")
        for _ in range(5):
            begun = time.perf_counter()
            for _ in range(200):
                made.finish(made.begin_detach("d0", 0.0), 0.0)
                made.finish(made.begin_attach("d0", "2", 0.0), 0.0)
            best = min(best, time.perf_counter() - begun)
        return best

    assert cost(10_000) < 5 * cost(10)


def test_the_telemetry_follows_what_is_put_in_and_pulled_out():
    made = box(slots=9)
    made.edits.insert(DeviceSpec("d9", "GPU-9", model="V100"), 1.0)
    assert "d9" in made.telemetry.devices()
    made.edits.remove("d9", 2.0)
    assert "d9" not in made.telemetry.devices()
