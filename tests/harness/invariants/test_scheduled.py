"""Invariant 8: what fits, and when it must have been scheduled."""

import pytest
from msgspec.structs import replace

from mews.harness.invariants import Bounds
from mews.harness.invariants.fault_windows import FaultWindows
from mews.harness.invariants.invariant import JudgedSystems, ObservedState
from mews.harness.invariants.scheduled import Scheduled, amounts_of
from mews.harness.journal import Line
from mews.kube.api.objects import timestamp
from mews.kube.system.invariant import ClusterObjects
from tests.harness.invariants.stream import POOLED, Stream


def node(name="host-1", **spec):
    conditions = [{"type": "Ready", "status": "True"}]
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10", "falcon.com/gpu": "1"}
    return {
        "metadata": {"name": name, "labels": {"zone": name}},
        "spec": spec,
        "status": {"conditions": conditions, "allocatable": allocatable},
    }


def pod(name="p", *, scheduler="default-scheduler", bound="", limits=None, phase="Pending", **spec):
    container = {"name": "main", "resources": {"limits": limits or {"cpu": "1"}}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": timestamp(0)},
        "spec": {"schedulerName": scheduler, "nodeName": bound, "containers": [container], **spec},
        "status": {"phase": phase},
    }


def judged(pods, nodes=None, *, devices=None, world=None, until=250, pooled=POOLED, units=None, said=(), **bounds):
    """Whether anything was found, looked at every ten seconds with a bound of 100 s."""
    state = ObservedState(
        Bounds(scheduled_s=100, **bounds),
        JudgedSystems(pooled=(pooled,), **(units or {})),
        (world or Stream(devices or {})).judge.state.world,
        FaultWindows(),
    )
    law = Scheduled(["default-scheduler", "kubecomp-scheduler"])
    api_state = {obj["metadata"]["name"]: obj for obj in nodes or [node()]}, {p["metadata"]["uid"]: p for p in pods}
    found = []
    for line in said:
        assert not law.on_line(line, state)
    for t in range(0, until, 10):
        found += [(t, breach) for breach in law.on_objects(float(t), ClusterObjects(*api_state, now_s=float(t)), state)]
    return found


def test_a_pod_that_fits_and_waits_beyond_the_bound_is_told():
    [(t, breach), *_] = judged([pod()])
    assert t == 110
    assert breach.what == "pod default/p fits host-1 and is unscheduled (bound 100 s)"


@pytest.mark.parametrize(
    ("taken", "asked"),
    [
        ({"core": "30", "ratio": "60"}, {"whole": "50"}),
        ({"whole": "60"}, {"core": "50"}),
        ({"whole": "60"}, {"whole": "50"}),
    ],
)
def test_a_resource_that_stands_for_others_takes_of_all_of_them(taken, asked):
    gpu = node()
    gpu["status"]["allocatable"] |= {"whole": "100", "core": "100", "ratio": "100"}
    pods = [pod("a", bound="host-1", limits=taken), pod(limits=asked)]
    assert not judged(pods, [gpu], units={"stands_for": {"whole": {"core": 1, "ratio": 1}}})
    assert judged(pods[1:], [gpu], units={"stands_for": {"whole": {"core": 1, "ratio": 1}}})


@pytest.mark.parametrize(("has", "fits"), [({"core": "200"}, False), ({"core": "300"}, True), ({}, True)])
def test_a_whole_device_takes_as_many_parts_as_it_has_where_the_node_knows_parts(has, fits):
    gpu = node()
    gpu["status"]["allocatable"] |= {"gpu": "3", **has}
    pods = [pod("a", bound="host-1", limits={"gpu": "2"}), pod(limits={"gpu": "1"})]
    assert bool(judged(pods, [gpu], units={"stands_for": {"gpu": {"core": 100}}})) is fits


@pytest.mark.parametrize(
    ("taken", "asked"),
    [({"whole": "80"}, {"memory": "2Gi"}), ({"ratio": "80"}, {"memory": "2Gi"}), ({"memory": "7Gi"}, {"ratio": "20"})],
)
def test_a_resource_in_other_units_takes_of_both(taken, asked):
    gpu = node()
    gpu["status"]["allocatable"] |= {"whole": "100", "ratio": "100", "memory": "8Gi"}
    pods = [pod("a", bound="host-1", limits=taken), pod(limits=asked)]
    units = {"stands_for": {"whole": {"ratio": 1}}, "other_units": {"memory": "ratio"}}
    assert not judged(pods, [gpu], units=units)
    assert judged(pods, [gpu], units={"stands_for": {"whole": {"ratio": 1}}})
    assert judged(pods[1:], [gpu], units=units)


def test_the_first_refusal_of_a_pod_that_fits_is_named_and_its_coming():
    def line(number, actor, event, **fields):
        return Line(number, 0.0, "api", actor, event, fields)

    created = line(3, "pod/default/p", "created")
    refused = [line(n, "default-scheduler", "event", reason="FailedScheduling", object="pod/default/p") for n in (5, 9)]
    [(_, breach), *_] = judged([pod()], said=[created, *refused])
    assert (breach.first.number, breach.after.number) == (5, 3)
    [(_, breach), *_] = judged([pod()], said=[created])
    assert (breach.first.number, breach.after.number) == (3, 3)


def spread(unsatisfiable):
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": unsatisfiable}


def test_a_pod_that_would_rather_be_spread_must_be_scheduled_all_the_same():
    assert judged([pod(topologySpreadConstraints=[spread("ScheduleAnyway")])])


@pytest.mark.parametrize(
    "waiting",
    [
        pod(bound="host-1"),
        pod(phase="Failed"),
        pod(scheduler="nobody"),
        pod(limits={"cpu": "5"}),
        pod(limits={"example.com/fpga": "1"}),
        pod(nodeSelector={"zone": "elsewhere"}),
        pod(schedulingGates=[{"name": "later"}]),
        pod(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}),
        pod(topologySpreadConstraints=[spread("ScheduleAnyway"), spread("DoNotSchedule")]),
    ],
    ids=[
        "bound",
        "ended",
        "no scheduler",
        "too big",
        "unknown resource",
        "not there",
        "gated",
        "not modelled",
        "spread",
    ],
)
def test_what_does_not_fit_or_cannot_be_judged_may_wait(waiting):
    assert judged([waiting]) == []


@pytest.mark.parametrize(
    "closed",
    [
        node(unschedulable=True),
        node(taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}]),
        {**node(), "status": {**node()["status"], "conditions": [{"type": "Ready", "status": "Unknown"}]}},
    ],
    ids=["cordoned", "tainted", "not ready"],
)
def test_a_closed_node_fits_nobody(closed):
    assert judged([pod()], [closed]) == []


def test_a_toleration_opens_a_tainted_node():
    tainted = node(taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
    assert judged([pod(tolerations=[{"key": "a", "operator": "Exists"}])], [tainted])


def test_what_others_hold_is_not_free():
    running = pod("q", bound="host-1", limits={"cpu": "3500m"}, phase="Running")
    assert judged([pod(), running]) == []
    ended = pod("q", bound="host-1", limits={"cpu": "3500m"}, phase="Succeeded")
    assert judged([pod(), ended])


def test_pooled_devices_count_over_the_pool_and_not_per_node():
    asks_two = pod(scheduler="kubecomp-scheduler", limits={"falcon.com/gpu": "2"})
    assert judged([asks_two], devices={"a": "1", "b": "2"})
    assert judged([asks_two], devices={"a": "1"}) == []
    holder = pod("q", bound="host-2", limits={"falcon.com/gpu": "1"}, phase="Running")
    assert judged([asks_two, holder], [node(), node("host-2")], devices={"a": "1", "b": "2"}) == []
    by_node = pod(limits={"falcon.com/gpu": "2"})
    assert judged([by_node], devices={"a": "1", "b": "2"}) == []


def test_a_node_whose_devices_are_handed_out_in_parts_fits_no_pod_that_wants_whole_ones():
    asks_one = pod(scheduler="kubecomp-scheduler", limits={"falcon.com/gpu": "1"})
    lent = replace(POOLED, unannounced=("host-1",))
    assert judged([asks_one], devices={"a": "1"}, pooled=lent) == []
    assert judged([asks_one], [node("host-2")], devices={"a": "1"}, pooled=lent)


def test_a_device_of_which_pods_have_parts_is_not_free():
    asks_two = pod(scheduler="kubecomp-scheduler", limits={"falcon.com/gpu": "2"})
    world = Stream({"a": "1", "b": "2"}, JudgedSystems(part_of=(lambda device: device.partition("/")[0],)))
    who = {"pod": "default/q", "uid": "q", "container": "main"}
    state = ObservedState(Bounds(scheduled_s=100), JudgedSystems(pooled=(POOLED,)), world.judge.state.world)
    objects = {"host-1": node()}, {asks_two["metadata"]["uid"]: asks_two}

    def found():
        law = Scheduled(["kubecomp-scheduler"])
        times = (float(t) for t in range(0, 250, 10))
        return [breach for t in times for breach in law.on_objects(t, ClusterObjects(*objects, now_s=t), state)]

    assert found()
    world.kubelet("host-2", "allocated", **who, resource="example.com/part", devices=["GPU-b/0"])
    assert found() == []


def test_the_clock_starts_anew_when_a_pod_stops_fitting():
    state, law = ObservedState(Bounds(scheduled_s=100)), Scheduled(["default-scheduler"])
    for t in range(0, 400, 10):
        cordoned = node(unschedulable=t % 60 == 0)
        assert not list(law.on_objects(float(t), ClusterObjects({"host-1": cordoned}, {"p": pod()}, float(t)), state))


def test_no_bound_no_judgement():
    state, law = ObservedState(Bounds(scheduled_s=None)), Scheduled(["default-scheduler"])
    assert not [
        b
        for t in range(0, 9999, 99)
        for b in law.on_objects(t, ClusterObjects({"host-1": node()}, {"p": pod()}, t), state)
    ]


def test_amounts_are_counted_as_the_scheduler_counts():
    def container(cpu, **more):
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}

    init = [container("3"), container("500m", restartPolicy="Always"), container("1")]
    made = {"spec": {"containers": [container("1"), container("250m")], "initContainers": init}}
    assert str(amounts_of(made)["cpu"]) == "3"
    made["spec"]["containers"].append(container("2"))
    assert float(amounts_of(made)["cpu"]) == 3.75


def test_unknown_bounds_are_refused_by_name():
    with pytest.raises(ValueError, match=r"bounds\.orphan: no such bound; allowed are unattached_s"):
        Bounds.of({"orphan": 1})


def half_cabled():
    """Chassis A with two devices for host-1 to host-3; B with two for host-2 and host-4 alone, of the same pool."""
    world = Stream({"a": "1", "b": "2"})
    rows = {name: {"uuid": f"GPU-{name}", "gpuid": f"1-{name}", "port": "1", "host": "host-2"} for name in ("c", "d")}
    ports = {"1": "host-2", "2": "host-4"}
    world.journal.write("chassis", "chassis/B", "table", pool="pool-0", ports=ports, devices=rows)
    return world


def asks(count, name="p", **placed):
    return pod(name, scheduler="kubecomp-scheduler", limits={"falcon.com/gpu": str(count)}, **placed)


@pytest.mark.parametrize(
    ("host", "wanted", "found"),
    [("host-1", 2, True), ("host-1", 3, False), ("host-2", 4, True), ("host-4", 2, True), ("host-4", 3, False)],
)
def test_only_devices_of_chassis_that_a_host_is_cabled_to_can_come_to_it(host, wanted, found):
    assert bool(judged([asks(wanted)], [node(host)], world=half_cabled())) is found


def test_what_a_pod_holds_beyond_a_hosts_cabling_is_not_missing_there():
    world = half_cabled()
    running = asks(2, "q", bound="host-2", phase="Running")
    assert judged([asks(2), running], [node()], world=world) == [], "it may hold those of chassis A"
    world.kubelet(
        "host-2",
        "allocated",
        pod="default/q",
        uid="q",
        container="main",
        resource="falcon.com/gpu",
        devices=["1-c", "1-d"],
    )
    assert judged([asks(2), running], [node()], world=world), "it holds those of chassis B"
