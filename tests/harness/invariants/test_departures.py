"""Laws 70 and 71: what hosts say of devices that come and go, beside what their chassis say."""

import pytest

from tests.harness.invariants.stream import Stream

GPUID = "0-a"


class HostStream(Stream):
    """Device a is on host-1, with all its layers."""

    def __init__(self, port="1"):
        super().__init__({"a": port})
        rows = {GPUID: {"gpuid": GPUID, "uuid": "GPU-a", "kind": "GPU", "healthy": True}} if port == "1" else {}
        self.journal.write("host", "host/host-1", "table", devices=rows)

    def host(self, event, **fields):
        named = {"gpuid": GPUID, "uuid": "GPU-a", "kind": "GPU", "healthy": False}
        return self.journal.write("host", "host/host-1", event, **named, **fields)

    def power(self, on):
        return self.journal.write("host", "host/host-1", "powered-on" if on else "powered-off")

    def rise(self):
        return [self.host(event) for event in ("link-up", "function-added", "driver-bound", "nvml-visible")]

    def fall(self):
        return [self.host(event) for event in ("nvml-hidden", "driver-unbound", "function-removed", "link-down")]

    def found(self, number):
        return [
            (each.first.event, each.after and each.after.event)
            for each in self.judge.violations
            if each.invariant == number
        ]


def test_what_is_taken_out_in_order_and_comes_again_is_well():
    stream = HostStream()
    stream.fall()[:3]
    stream.chassis("edited", "a", None, cause="edit")
    stream.chassis("edited", "a", "1", cause="edit")
    stream.rise()
    assert stream.found(70) == stream.found(71) == []


@pytest.mark.parametrize(
    ("told", "named"),
    [
        pytest.param(("xid", "lost"), [], id="both"),
        pytest.param(("lost",), [("lost", None)], id="no XID"),
        pytest.param((), [("nvml-hidden", "link-down")], id="not lost"),
    ],
)
def test_what_the_chassis_takes_away_is_lost_and_its_driver_says_so(told, named):
    stream = HostStream()
    stream.chassis("link-down", "a", "1")
    for event in told:
        stream.host(event, **({"xid": 79} if event == "xid" else {}))
    stream.fall()
    assert stream.found(71) == named


@pytest.mark.parametrize(("ended", "named"), [(False, [("driver-unbound", "allocated")]), (True, [])])
def test_a_driver_lets_go_of_what_nobody_has_open(ended, named):
    stream = HostStream()
    stream.run("host-1", "user", ["a"])
    if ended:
        stream.end("host-1", "user")
    stream.fall()
    assert stream.found(71) == named


def test_a_dead_function_may_go_after_its_device_has_come_back():
    stream = HostStream()
    stream.run("host-1", "user", ["a"])
    stream.chassis("edited", "a", None, cause="edit")
    for event in ("xid", "lost"):
        stream.host(event, **({"xid": 79} if event == "xid" else {}))
    stream.chassis("edited", "a", "1", cause="edit")
    for event in ("link-up", "function-added", "driver-bound", "nvml-visible"):
        stream.host(event, bdf="0000:56:00.0")
    stream.fall()
    assert stream.found(71) == []


def test_a_machine_that_is_switched_off_asks_nobody():
    stream = HostStream()
    stream.run("host-1", "user", ["a"])
    stream.power(on=False)
    stream.fall()
    assert stream.found(71) == []


def test_nothing_comes_up_on_a_machine_that_is_off():
    stream = HostStream()
    stream.power(on=False)
    stream.fall()
    stream.rise()
    assert [named for named, _ in stream.found(70)] == ["link-up", "function-added", "driver-bound", "nvml-visible"]
    stream = HostStream()
    stream.power(on=False)
    stream.fall()
    stream.power(on=True)
    stream.rise()
    assert stream.found(70) == []


@pytest.mark.parametrize("why", ["elsewhere", "dark"])
def test_nothing_comes_up_of_what_the_chassis_has_elsewhere_or_without_a_link(why):
    stream = HostStream(port="2" if why == "elsewhere" else "1")
    after = "table"
    if why == "dark":
        stream.chassis("link-down", "a", "1")
        after = "link-down"
    stream.host("link-up")
    assert stream.found(70) == [("link-up", after)]


def test_where_a_fault_lets_lines_come_late_nobody_can_say():
    stream = HostStream(port="2")
    fired = {"fault": "f1", "kind": "events-out-of-order", "excuses": {"10": 5.0}}
    stream.journal.write("fault", "chassis/A", "fired", **fired)
    stream.host("link-up")
    assert stream.found(70) == []
