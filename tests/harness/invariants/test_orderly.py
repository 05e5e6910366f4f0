"""Invariant 10: a host loses no device by surprise, unless a fault, another editor or the system itself explains it."""

from msgspec.structs import replace

from mews.harness.invariants.invariant import JudgedSystems
from tests.harness.invariants.stream import POOLED, Stream


class Lossy(Stream):
    """A stream whose host-1 loses devices."""

    def lose(self, device):
        names = {"device": device, "uuid": f"GPU-{device}", "gpuid": f"0-{device}", "kind": "GPU", "healthy": False}
        self.journal.write("host", "host/host-1", "xid", xid=79, **names)
        self.journal.write("host", "host/host-1", "lost", **names)

    def fault(self, device=None, actor="host/host-1"):
        fields = {} if device is None else {"gpuid": f"0-{device}"}
        self.journal.write("fault", actor, "added", fault="h1", kind="xid", spec={}, count=None)
        told = {"fault": "h1", "kind": "xid", "excuses": {}, "left": None, **fields}
        self.journal.write("fault", actor, "fired", **({"fired": 1} | told))


def test_a_detach_that_the_host_was_not_prepared_for_is_a_violation():
    stream = Lossy({"a": "1"})
    stream.detach("a")
    stream.lose("a")
    assert stream.numbers() == [10, 10]
    assert "host host-1 reports XID 79 of 0-a" in stream.judge.violations[0].what


def test_an_orderly_one_is_none():
    stream = Lossy({"a": "1"})
    stream.detach("a")
    assert stream.numbers() == []


def test_out_of_nowhere_it_is_one():
    stream = Lossy({"a": "1"})
    stream.lose("a")
    assert stream.numbers() == [10, 10]


def test_another_editor_explains_it():
    stream = Lossy({"a": "1"})
    stream.chassis("edited", "a", None)
    stream.lose("a")
    assert stream.numbers() == []


def test_a_fault_of_that_device_explains_it_and_none_of_another():
    stream = Lossy({"a": "1", "b": "1"})
    stream.fault("a")
    stream.lose("a")
    assert stream.numbers() == []
    stream.lose("b")
    assert stream.numbers() == [10, 10]


def test_a_fault_of_before_does_not_excuse_a_later_removal_by_surprise():
    stream = Lossy({"a": "1"})
    stream.fault("a")
    stream.t += 1
    stream.detach("a")
    stream.lose("a")
    assert stream.numbers() == [10, 10]


def test_a_system_that_removes_by_surprise_explains_it():
    surprise = JudgedSystems(pooled=(replace(POOLED, surprise=True),))
    stream = Lossy({"a": "1"}, systems=surprise)
    stream.detach("a")
    stream.lose("a")
    assert stream.numbers() == []


def test_a_chassis_that_is_reset_explains_it():
    stream = Lossy({"a": "1"})
    rows = {"a": stream.row("a")}
    stream.journal.write("chassis", "chassis/A", "table", pool="pool-0", ports={"1": "host-1"}, devices=rows)
    stream.lose("a")
    assert stream.numbers() == []


def test_over_a_wire_the_hosts_line_may_come_before_the_chassis_own():
    stream = Lossy({"a": "1"}, lag_s=2.0)
    stream.lose("a")
    stream.t += 1
    stream.chassis("edited", "a", None)
    stream.t += 2
    stream.journal.write("step", "s", "begun")
    assert stream.numbers() == []
