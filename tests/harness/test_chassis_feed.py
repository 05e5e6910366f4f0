"""What a chassis tells, as journal lines."""

import random
from types import SimpleNamespace

from mews.harness.chassis_feed import ChassisFeed
from mews.harness.journal import Journal


def a_feed():
    devices = (
        SimpleNamespace(id="a", uuid="GPU-a", port="1"),
        SimpleNamespace(id="b", uuid="GPU-b", port=None),
    )
    spec = SimpleNamespace(
        name="A",
        pool="pool-0",
        ports={"1": "host-1", "2": "host-2"},
        devices=devices,
        gpuid=lambda device: f"0-{device}",
    )
    journal = Journal(lambda: 1.0)
    feed = ChassisFeed(journal, spec)
    feed.begin()
    return feed, journal


def move(device, old, new, cause):
    return "table-changed", {"device": device, "old_port": old, "new_port": new, "cause": cause}


def test_the_table_is_the_first_line():
    _, journal = a_feed()
    [line] = journal.lines()
    assert line.as_dict() == {
        "t": 1.0,
        "layer": "chassis",
        "actor": "chassis/A",
        "event": "table",
        "pool": "pool-0",
        "ports": {"1": "host-1", "2": "host-2"},
        "devices": {
            "a": {"uuid": "GPU-a", "port": "1", "gpuid": "0-a", "host": "host-1"},
            "b": {"uuid": "GPU-b", "port": None, "gpuid": "0-b", "host": None},
        },
    }


def test_a_detach_is_begun_effective_and_finished():
    feed, journal = a_feed()
    operation = {"operation": 1, "kind": "detach", "device": "a", "port": None}
    feed.on_event(1, "operation-begun", {**operation, "due_s": 3.0})
    feed.on_event(2, *move("a", "1", None, "detach"))
    feed.on_event(3, "operation-finished", {**operation, "answer": "true", "truth": True, "reason": ""})
    begun, detached, finished = journal.lines()[1:]
    place = {"device": "a", "uuid": "GPU-a", "gpuid": "0-a", "port": None, "host": None}
    assert (begun.event, begun.fields) == (
        "detach-begun",
        {**place, "old_port": "1", "old_host": "host-1", "operation": 1},
    )
    assert (detached.event, detached.fields) == ("detached", {**place, "old_port": "1", "old_host": "host-1"})
    assert finished.event == "operation-finished"
    assert (finished.fields["port"], finished.fields["answer"], finished.fields["truth"]) == (None, "true", True)


def test_events_told_out_of_order_are_written_in_their_true_order():
    steps = [move("a", "1", None, "detach"), move("a", None, "2", "attach"), move("b", None, "1", "attach")]
    for seed in range(6):
        feed, journal = a_feed()
        order = list(enumerate(steps, start=1))
        random.Random(seed).shuffle(order)
        for number, (event, fields) in order:
            feed.on_event(number, event, fields)
        assert [line.event for line in journal.lines()[1:]] == ["detached", "attached", "attached"]
        assert [line.fields["port"] for line in journal.lines()[1:]] == [None, "2", "1"]


def test_another_editor_is_named_with_the_cause():
    feed, journal = a_feed()
    feed.on_event(1, *move("a", "1", "2", "edit"))
    line = journal.lines()[-1]
    assert (line.event, line.fields["host"], line.fields["old_host"], line.fields["cause"]) == (
        "edited",
        "host-2",
        "host-1",
        "edit",
    )


def test_a_fault_that_fires_declares_what_it_may_break_and_for_how_long():
    feed, journal = a_feed()
    feed.on_event(
        1, "fault-fired", {"fault": 1, "kind": "link-down", "device": "a", "may_break": [2, 6], "grace_s": 5.0}
    )
    line = journal.lines()[-1]
    assert (line.layer, line.event) == ("fault", "fired")
    assert line.fields == {
        "fault": 1,
        "kind": "link-down",
        "device": "a",
        "excuses": {"2": 5.0, "6": 5.0},
        "gpuid": "0-a",
    }


def test_a_link_lost_keeps_the_port_and_another_uuid_keeps_the_device():
    feed, journal = a_feed()
    feed.on_event(1, "link-down", {"device": "a", "port": "1"})
    feed.on_event(2, "uuid-changed", {"device": "a", "uuid": "GPU-x"})
    feed.on_event(3, "management-down", {"until_s": 9.0})
    down, changed, management = journal.lines()[1:]
    assert (down.event, down.fields["port"]) == ("link-down", "1")
    assert (changed.event, changed.fields["uuid"], changed.fields["old_uuid"]) == ("device-changed", "GPU-x", "GPU-a")
    assert management.event == "down"


def test_a_reset_writes_the_table_as_at_the_start():
    feed, journal = a_feed()
    feed.on_event(1, *move("a", "1", None, "detach"))
    feed.on_event(2, "reset", {})
    assert journal.lines()[-1].fields == journal.lines()[0].fields


def test_an_operation_on_an_unknown_device_leaves_no_row():
    feed, journal = a_feed()
    operation = {"operation": 1, "kind": "attach", "device": "zz", "port": "1"}
    feed.on_event(1, "operation-begun", {**operation, "due_s": 0})
    feed.on_event(2, "operation-finished", {**operation, "answer": "false", "truth": False, "reason": "unknown-device"})
    feed.on_event(3, "reset", {})
    assert "zz" not in journal.lines()[-1].fields["devices"]
