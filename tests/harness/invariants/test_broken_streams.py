"""Tests of the tests: streams in which an invariant is broken must be reported, with the line that broke it."""

import pytest

from mews.harness.invariants import judge
from mews.harness.invariants.invariant import JudgedSystems
from tests.harness.invariants.stream import POOLED, Stream


def two_ports():
    stream = Stream({"a": "1"})
    stream.chassis("attached", "a", "2")
    return stream


def stolen():
    stream = Stream({"a": "1"})
    stream.run("host-1", "p", ["a"])
    stream.detach("a")
    return stream


def given_twice():
    stream = Stream({"a": "1"})
    stream.allocate("host-1", "p", ["a"])
    stream.allocate("host-1", "q", ["a"])
    return stream


@pytest.mark.parametrize(("number", "broken"), [(1, two_ports), (2, stolen), (3, given_twice)])
def test_only_the_law_itself_finds_its_breach(number, broken, monkeypatch):
    """Take the law away and its stream passes: so the stream is what tests it, and nothing else hides its absence."""
    assert broken().numbers() == [number]
    monkeypatch.delitem(judge.LAWS, number)
    assert broken().numbers() == []


def test_a_device_attached_to_a_second_port_breaks_1():
    stream = Stream({"a": "1"})
    line = stream.chassis("attached", "a", "2")
    assert stream.numbers() == [1]
    assert stream.first() is line


def test_a_device_attached_while_its_own_event_says_it_was_elsewhere_breaks_1():
    stream = Stream({"a": None})
    stream.chassis("attached", "a", "2", old_port="3")
    assert stream.numbers() == [1]


def test_one_uuid_on_two_ports_breaks_1():
    stream = Stream({"a": "1", "b": None})
    line = stream.chassis("attached", "b", "2", uuid="GPU-a")
    assert stream.numbers() == [1]
    assert stream.first() is line


def test_detaching_a_device_in_use_breaks_2():
    stream = Stream({"a": "1"})
    stream.run("host-1", "p", ["a"])
    line = stream.detach("a")
    assert stream.numbers() == [2]
    assert stream.first() is line


def test_a_device_in_use_that_vanishes_from_its_chassis_breaks_2():
    stream = Stream({"a": "1", "b": "1"})
    stream.run("host-1", "p", ["a"])
    stream.chassis("device-changed", "b", "1", uuid="GPU-other")
    assert stream.numbers() == []
    stream.chassis("device-changed", "a", "1", uuid="GPU-new", old_uuid="GPU-a")
    assert stream.numbers() == [2]


def test_a_link_lost_under_a_running_pod_breaks_2():
    stream = Stream({"a": "1"})
    stream.run("host-1", "p", ["a"])
    stream.chassis("link-down", "a", "1")
    assert stream.numbers() == [2]


def test_a_loss_is_told_once_per_pod():
    stream = Stream({"a": "1"})
    stream.run("host-1", "p", ["a"])
    stream.detach("a")
    stream.attach("a", "2")
    assert stream.numbers() == [2]


def test_a_device_given_to_two_pods_breaks_3():
    stream = Stream({"a": "1", "b": "1"})
    stream.allocate("host-1", "p", ["a", "b"])
    line = stream.allocate("host-1", "q", ["b"])
    assert stream.numbers() == [3]
    assert stream.first() is line


def test_a_stale_announcement_that_gives_a_device_on_another_node_breaks_3():
    stream = Stream({"a": "1"})
    stream.allocate("host-1", "p", ["a"])
    stream.allocate("host-2", "q", ["a"])
    assert 3 in stream.numbers()


def test_an_orphan_breaks_5_after_its_bound():
    stream = Stream({"a": "1"}, unattached_s=100)
    line = stream.detach("a")
    stream.t = 100.0
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == []
    stream.t = 100.5
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == [5]
    assert stream.first() is line


def test_a_device_given_on_a_host_that_does_not_have_it_breaks_6():
    stream = Stream({"a": "1"})
    stream.allocate("host-2", "p", ["a"])
    assert stream.numbers() == [6]


def test_an_env_that_lists_other_devices_breaks_6():
    for env in ({"DISAG_DEVICES": "0-b"}, {"DISAG_DEVICES": "0-a,"}, {"X": "GPU-a,GPU-b"}, {}, {"DISAG_DEVICES": ""}):
        stream = Stream({"a": "1", "b": "1"})
        stream.run("host-1", "p", ["a"], env=env)
        assert stream.numbers() == [6], env


@pytest.mark.parametrize(("index", "found"), [("0", []), ("1", [6]), ("2", [6])])
def test_an_index_is_that_of_the_hosts_gpus_in_the_order_of_their_addresses(index, found):
    stream = Stream({"a": "1", "b": "1"})
    seen = {
        "0-b": {"kind": "GPU", "healthy": True, "bdf": "0000:41:00.0"},
        "0-a": {"kind": "GPU", "healthy": True, "bdf": "0000:40:00.0"},
    }
    nic = {"0-n": {"kind": "NIC", "healthy": True, "bdf": "0000:01:00.0"}}
    stream.journal.write("host", "host/host-1", "table", devices={**nic, **seen})
    stream.run("host-1", "p", ["a"], env={"NVIDIA_VISIBLE_DEVICES": index})
    assert stream.numbers() == found


def test_a_checkpoint_that_lost_a_started_container_breaks_6_and_18():
    stream = Stream({"a": "1"})
    stream.run("host-1", "p", ["a"])
    stream.checkpoint["host-1"] = []
    stream.save("host-1")
    assert stream.numbers() == [6, 18]


def test_a_violation_is_one_object_for_the_report():
    stream = Stream({"a": "1"})
    stream.run("host-1", "p", ["a"])
    stream.t = 3.5
    line = stream.detach("a")
    [violation] = stream.judge.violations
    assert violation.as_dict() == {
        "invariant": 2,
        "name": "a device in use never moves or disappears",
        "what": "device 0-a moved from port 1 to nowhere while default/p (main) on host-1 holds it",
        "t": 3.5,
        "first": {"line": line.number, **line.as_dict()},
        "after": None,
    }


def parts_stream():
    """Devices whose parts are called DEVICE/NUMBER."""

    def whole(device):
        return device.partition("/")[0] if "/" in device else ""

    return Stream({"a": "1", "b": "1"}, JudgedSystems(pooled=(POOLED,), part_of=(whole,)))


def give_part(stream, pod, part):
    who = {"pod": f"default/{pod}", "uid": pod, "container": "main"}
    return stream.kubelet("host-1", "allocated", **who, resource="example.com/part", devices=[part])


def test_a_device_given_whole_of_which_another_pod_has_parts_breaks_3():
    stream = parts_stream()
    give_part(stream, "shares", "GPU-a/0")
    stream.allocate("host-1", "whole", ["b"])
    assert stream.numbers() == []
    stream.allocate("host-1", "both-ways", ["a"])
    assert stream.numbers() == [3]


def test_parts_given_of_a_device_that_another_pod_has_whole_break_3():
    stream = parts_stream()
    stream.allocate("host-1", "whole", ["a"])
    give_part(stream, "shares", "GPU-b/0")
    give_part(stream, "too", "GPU-b/1")
    assert stream.numbers() == []
    give_part(stream, "both-ways", "GPU-a/0")
    assert stream.numbers() == [3]


@pytest.mark.parametrize(("later_s", "broken"), [(1.0, []), (11.0, [6])])
def test_a_container_that_starts_long_after_its_pod_was_deleted_has_none_of_its_devices(later_s, broken):
    """A start that had begun at a deletion by force may end shortly after it."""
    stream = Stream({"a": "1"})
    stream.allocate("host-1", "p", ["a"])
    stream.save("host-1")
    stream.journal.write("api", "pod/default/p", "deleted", uid="p")
    stream.t += later_s
    env = {"DISAG_DEVICES": "0-a"}
    stream.kubelet("host-1", "container-started", pod="default/p", uid="p", container="main", env=env)
    assert [number for number in stream.numbers() if number == 6] == broken


@pytest.mark.parametrize(("named", "broken"), [("GPU-a", []), ("GPU-b", [6])])
def test_a_device_whose_chassis_has_lost_its_uuid_is_named_by_the_last_one(named, broken):
    stream = Stream({"a": "1", "b": "1"})
    for _ in range(2):
        stream.journal.write("chassis", "chassis/A", "device-changed", **{**stream.row("a"), "uuid": ""}, device="a")
    stream.run("host-1", "p", ["a"], env={"NVIDIA_VISIBLE_DEVICES": named})
    assert [number for number in stream.numbers() if number == 6] == broken


@pytest.mark.parametrize("lost", [False, True], ids=["", "its chassis has lost the UUID"])
@pytest.mark.parametrize(("named", "broken"), [("GPU-a", []), ("GPU-a,GPU-a", [6]), ("GPU-b", [6])])
def test_a_time_slice_is_a_part_of_the_gpu_in_its_name(named, broken, lost):
    stream = Stream({"a": "1", "b": "1"}, JudgedSystems(pooled=(POOLED,)))
    who = {"pod": "default/p", "uid": "p", "container": "main"}
    if lost:
        row = {**stream.row("a"), "uuid": ""}
        stream.journal.write("chassis", "chassis/A", "device-changed", **row, device="a")
    stream.kubelet("host-1", "allocated", **who, resource="nvidia.com/gpu", devices=["GPU-a::0", "GPU-a::1"])
    stream.kubelet("host-1", "container-started", **who, env={"NVIDIA_VISIBLE_DEVICES": named})
    assert [number for number in stream.numbers() if number == 6] == broken
