"""A fault may break what it declares, for as long as it declares, and nothing else."""

from tests.harness.invariants.stream import Stream


def fired(stream, **excuses):
    spans = {number.removeprefix("law"): span for number, span in excuses.items()}
    stream.journal.write("fault", "chassis/A", "fired", fault=1, kind="link-down", excuses=spans)


def test_a_declared_breach_is_excused():
    stream = Stream({"a": "1"})
    stream.run("host-1", "p", ["a"])
    fired(stream, law2=30.0)
    stream.t = 29.0
    stream.chassis("link-down", "a", "1")
    assert stream.numbers() == []


def test_a_breach_after_the_declared_time_and_what_the_nodes_take_to_notice_is_not():
    stream = Stream({"a": "1"}, allocatable_s=10.0)
    stream.run("host-1", "p", ["a"])
    fired(stream, law2=30.0)
    stream.t = 41.0
    stream.chassis("link-down", "a", "1")
    assert stream.numbers() == [2]


def test_an_excuse_for_one_invariant_excuses_no_other():
    stream = Stream({"a": "1"})
    stream.run("host-1", "p", ["a"])
    fired(stream, law6=30.0)
    stream.detach("a")
    assert stream.numbers() == [2]


def test_a_fault_on_one_device_excuses_no_other():
    stream = Stream({"a": "1", "b": "1"})
    stream.run("host-1", "p", ["a"])
    stream.journal.write("fault", "chassis/A", "fired", fault=1, kind="x", gpuid="0-b", excuses={"2": 30.0})
    stream.detach("a")
    assert stream.numbers() == [2]


def test_what_another_editor_does_is_his_doing():
    stream = Stream({"a": "1", "b": "1"}, unattached_s=10)
    stream.run("host-1", "p", ["a"])
    stream.chassis("edited", "a", None, cause="edit")
    stream.t = 100.0
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == []


def test_nobody_repairs_while_the_manager_is_dead_and_the_clock_starts_when_it_is_back():
    stream = Stream({"a": "1"}, unattached_s=10)
    stream.detach("a")
    stream.journal.write("component", "reconfig-manager", "killed")
    stream.t = 100.0
    stream.journal.write("component", "reconfig-manager", "started")
    stream.t = 109.0
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == []
    stream.t = 111.0
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == [5]


def test_a_fault_that_is_cleared_excuses_no_longer_than_the_nodes_take_to_notice():
    stream = Stream({"a": "1"}, allocatable_s=10.0)
    stream.run("host-1", "p", ["a"])
    fired(stream, law2=None)
    stream.t = 100.0
    stream.journal.write("fault", "chassis/A", "cleared", fault=1, kind="link-down")
    stream.t = 111.0
    stream.detach("a")
    assert stream.numbers() == [2]


def test_nodes_that_cannot_look_have_the_time_from_when_they_can():
    def agrees_at(t):
        stream = Stream({"a": "1"}, allocatable_s=10.0)
        stream.journal.write("fault", "chassis/A", "fired", fault=1, kind="timeout", excuses={"4": 60.0})
        stream.t = 5.0
        stream.chassis("edited", "a", "2", cause="edit")
        stream.t = t
        stream.run("host-1", "p", ["a"])
        return stream.numbers() == []

    assert agrees_at(69.0)
    assert not agrees_at(71.0)


def test_a_pod_that_was_robbed_may_hold_with_another_until_it_ends():
    stream = Stream({"a": "1"}, allocatable_s=10.0)
    stream.run("host-1", "robbed", ["a"])
    stream.chassis("edited", "a", "2", cause="edit")
    stream.t = 100.0
    stream.run("host-2", "next", ["a"])
    assert stream.numbers() == []
    stream.end("host-1", "robbed")
    stream.run("host-2", "one too many", ["a"])
    assert stream.numbers() == [3]


def test_nobody_owes_an_editor_a_repair_until_a_system_attaches_the_device_again():
    stream = Stream({"a": "1"}, unattached_s=10)
    stream.chassis("edited", "a", None, cause="edit")
    stream.t = 100.0
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == []
    stream.attach("a", "2")
    stream.detach("a")
    stream.t = 111.0
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == [5]


def test_a_chassis_that_restarts_with_its_table_excuses_nothing():
    stream = Stream({"a": "1", "b": "1"}, allocatable_s=10.0)
    stream.run("host-1", "p", ["a"])
    rows = {device: stream.row(device) for device in stream.ports}
    stream.journal.write("chassis", "chassis/A", "table", pool="pool-0", ports={}, devices=rows)
    stream.detach("a")
    assert stream.numbers() == [2]


def test_a_breach_that_was_excused_is_not_told_later():
    stream = Stream({"a": "1"})
    stream.run("host-1", "p", ["a"])
    fired(stream, law2=1.0)
    stream.chassis("link-down", "a", "1")
    stream.t = 50.0
    stream.detach("a")
    assert stream.numbers() == []
