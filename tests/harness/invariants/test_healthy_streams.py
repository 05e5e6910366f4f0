"""Streams in which all is well must not be reported."""

from hypothesis import given
from hypothesis import strategies as st

from tests.harness.invariants.stream import Stream

DEVICES = ("a", "b", "c", "d")

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("move"), st.sampled_from(DEVICES), st.sampled_from(["1", "2", "3"])),
        st.tuples(st.just("run"), st.integers(1, 3), st.sampled_from(["1", "2", "3"])),
        st.tuples(st.just("end"), st.integers(0, 20)),
        st.tuples(st.just("wait"), st.integers(1, 400)),
    ),
    max_size=30,
)


@given(ACTIONS)
# Complex: one branch for each drawn line.
def test_devices_that_move_only_while_nobody_holds_them_break_nothing(actions):  # noqa: C901
    stream = Stream({"a": "1", "b": "1", "c": "2", "d": None})
    pods = {}

    def held():
        return {device for _, devices in pods.values() for device in devices}

    for number, (action, *args) in enumerate(actions):
        match action:
            case "move":
                device, port = args
                if device in held() or stream.ports[device] == port:
                    continue
                if stream.ports[device] is not None:
                    stream.detach(device)
                stream.t += 20
                stream.attach(device, port)
            case "run":
                count, port = args
                free = [d for d in DEVICES if stream.ports[d] == port and d not in held()][:count]
                if free:
                    pods[f"p{number}"] = (f"host-{port}", free)
                    stream.run(f"host-{port}", f"p{number}", free)
            case "end":
                if pods:
                    name = sorted(pods)[args[0] % len(pods)]
                    host, _ = pods.pop(name)
                    stream.end(host, name)
                    stream.checkpoint[host] = [e for e in stream.checkpoint[host] if e[0] != name]
            case "wait":
                stream.t += args[0]
                stream.judge.pass_time(stream.t)
    assert stream.numbers() == []


def test_a_device_of_an_ended_pod_may_move_and_be_given_again():
    stream = Stream({"a": "1"})
    stream.run("host-1", "p", ["a"])
    stream.end("host-1", "p")
    stream.detach("a")
    stream.attach("a", "2")
    stream.run("host-2", "q", ["a"])
    assert stream.numbers() == []


def test_the_api_alone_may_tell_that_a_pod_ended():
    for event, fields in (("phase", {"phase": "Failed"}), ("deleted", {})):
        stream = Stream({"a": "1"})
        stream.run("host-1", "p", ["a"])
        stream.journal.write("api", "pod/default/p", event, uid="p", **fields)
        stream.detach("a")
        assert stream.numbers() == []


def test_containers_of_one_pod_may_pass_a_device_on():
    stream = Stream({"a": "1"})
    stream.run("host-1", "p", ["a"], container="init")
    stream.run("host-1", "p", ["a"], container="main")
    assert stream.numbers() == []


def test_devices_of_a_foreign_plugin_may_have_the_same_names_on_two_nodes():
    stream = Stream({"a": "1"})
    for host in ("host-1", "host-2"):
        who = {"pod": f"default/{host}", "uid": host, "container": "main"}
        stream.kubelet(host, "allocated", **who, resource="example.com/dev", devices=["dev-0"])
    assert stream.numbers() == []


def test_a_device_that_was_free_at_the_start_may_stay_so():
    stream = Stream({"a": None}, unattached_s=10)
    stream.t = 1000.0
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == []


def test_a_pending_attach_stops_the_orphans_clock():
    stream = Stream({"a": "1"}, unattached_s=10)
    stream.detach("a")
    stream.chassis("attach-begun", "a", "2")
    stream.t = 50.0
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == []
    stream.chassis("operation-finished", "a", None, kind="attach", answer="false", truth=False, reason="link-down")
    stream.t = 59.0
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == []
    stream.t = 61.0
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == [5]


def test_events_that_come_over_a_wire_may_lag_behind_what_follows_from_them():
    stream = Stream({"a": None}, lag_s=2.0)
    stream.allocate("host-1", "p", ["a"])
    stream.t = 1.0
    stream.attach("a", "1")
    stream.t = 5.0
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == []
    stream.allocate("host-2", "q", ["a"])
    stream.t = 8.0
    stream.judge.pass_time(stream.t)
    assert stream.numbers() == [3, 6]
