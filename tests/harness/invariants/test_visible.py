"""Invariant 4: a node offers no more than NVML shows healthy, and NVML shows no more than the chassis has there."""

import pytest

from mews.harness.invariants import judge
from tests.harness.invariants.stream import Stream


def row(device, healthy=True):
    names = {"device": device, "uuid": f"GPU-{device}", "gpuid": f"0-{device}", "kind": "GPU"}
    return {**names, "bdf": "0000:44:00.0", "minor": 0, "healthy": healthy}


class Hosted(Stream):
    """A stream of one host that sees its devices and offers so many."""

    def __init__(self, *devices, **bounds):
        super().__init__(dict.fromkeys(devices, "1"), **bounds)
        self.host("table", devices={f"0-{device}": row(device) for device in devices})
        self.offer(len(devices))

    def host(self, event, **fields):
        return self.journal.write("host", "host/host-1", event, **fields)

    def offer(self, amount):
        fields = {"resource": "falcon.com/gpu", "old": "0", "new": str(amount)}
        return self.journal.write("api", "node/host-1", "allocatable", **fields)

    def later(self, seconds):
        self.t += seconds
        self.journal.write("step", "s", "begun")


def lost_and_still_offered():
    stream = Hosted("a", "b")
    stream.host("nvml-failing", **row("a", healthy=False))
    stream.later(31)
    return stream


def seen_and_not_on_the_port():
    stream = Hosted("a", "b")
    stream.detach("a")
    stream.host("used", **row("a"), holders=[])
    stream.offer(1)
    stream.later(1)
    return stream


@pytest.mark.parametrize("broken", [lost_and_still_offered, seen_and_not_on_the_port])
def test_only_this_law_finds_its_breach(broken, monkeypatch):
    assert broken().numbers() == [4]
    monkeypatch.delitem(judge.LAWS, 4)
    assert broken().numbers() == []


def test_the_breach_names_the_event_that_began_it():
    stream = Hosted("a")
    line = stream.host("nvml-failing", **row("a", healthy=False))
    stream.later(31)
    assert stream.first() is line


def test_what_follows_within_its_bound_is_no_breach():
    stream = Hosted("a", "b")
    stream.host("nvml-hidden", **row("a", healthy=False))
    stream.later(29)
    stream.offer(1)
    stream.later(60)
    stream.host("nvml-visible", **row("a"))
    stream.offer(2)
    stream.later(60)
    assert stream.numbers() == []


def test_the_bound_is_the_runs():
    stream = Hosted("a", allocatable_s=5.0)
    stream.host("nvml-failing", **row("a", healthy=False))
    stream.later(6)
    assert stream.numbers() == [4]


def test_a_fault_of_that_device_excuses_it_and_one_of_another_does_not():
    for gpuid, found in (("0-a", []), ("0-b", [4])):
        stream = Hosted("a", "b")
        declared = {"fault": "h1", "kind": "xid"}
        stream.journal.write("fault", "host/host-1", "added", **declared, spec={}, count=1)
        told = {"fired": 1, "left": 0, "excuses": {"4": None}, "gpuid": gpuid}
        stream.journal.write("fault", "host/host-1", "fired", **declared, **told)
        stream.host("xid", **row(gpuid.removeprefix("0-")), xid=31)
        stream.host("nvml-failing", **row("a", healthy=False))
        stream.later(31)
        assert stream.numbers() == found


def test_nobody_tells_the_api_while_the_kubelet_is_dead():
    stream = Hosted("a")
    stream.journal.write("component", "kubelet/host-1", "killed")
    stream.host("nvml-failing", **row("a", healthy=False))
    stream.later(100)
    assert stream.numbers() == []


@pytest.mark.parametrize("lost_at", [0.0, 20.0])
def test_a_kubelet_that_was_away_has_its_whole_bound_once_it_is_back(lost_at):
    """It was killed after 10 s and is back after 60: whatever the clock of the device said before counts no more."""

    def numbers(back_s):
        stream = Hosted("a")
        for t, write in sorted(
            [
                (lost_at, lambda: stream.host("nvml-failing", **row("a", healthy=False))),
                (10.0, lambda: stream.journal.write("component", "kubelet/host-1", "killed")),
                (60.0, lambda: stream.journal.write("component", "kubelet/host-1", "started")),
            ]
        ):
            stream.t = t
            write()
        stream.later(back_s)
        return stream.numbers()

    assert numbers(29.0) == []
    assert numbers(31.0) == [4]


def test_devices_of_another_kind_do_not_count():
    stream = Hosted("a")
    stream.host("driver-bound", **{**row("f"), "kind": "FPGA"})
    stream.offer(2)
    stream.later(31)
    assert stream.numbers() == [4]


def test_a_node_whose_host_tells_nothing_is_not_judged():
    stream = Stream({"a": "1"})
    stream.journal.write("api", "node/host-1", "allocatable", resource="falcon.com/gpu", old="0", new="9")
    stream.t += 100
    stream.journal.write("step", "s", "begun")
    assert stream.numbers() == []


def test_the_dead_function_of_a_device_that_came_back_does_not_count():
    stream = Hosted("a")
    back = {**row("a"), "bdf": "0000:45:00.0"}
    stream.host("nvml-hidden", **row("a", healthy=False))
    stream.host("nvml-visible", **back)
    stream.host("function-removed", **row("a", healthy=False))
    stream.later(31)
    assert 4 not in stream.numbers()  # law 70 has its own order of layers
    stream.host("nvml-failing", **{**back, "healthy": False})
    stream.later(31)
    assert 4 in stream.numbers()
