"""Laws of the scheduler, the node life cycle and the hosts: streams that break them, and streams that do not."""

import pytest

from mews.harness.invariants.invariant import JudgedSystems
from tests.harness.invariants.stream import Stream

RESOURCE = "toy.dev/gpu"


def stream():
    made = Stream({}, JudgedSystems(schedulers=("default-scheduler",)))
    made.api = lambda actor, event, **fields: made.journal.write("api", actor, event, **fields)
    there = {"gpuid": "0-000100", "kind": "GPU", "healthy": False}
    made.host = lambda event, **fields: made.journal.write("host", "host/host-1", event, **there | fields)
    return made


def with_node(offered="2"):
    made = stream()
    made.api("node/host-1", "created", allocatable={"cpu": "8", RESOURCE: offered})
    return made


def pod(made, name, asked, *, node="", scheduler="default-scheduler"):
    requests = {RESOURCE: asked}
    made.api(f"pod/default/{name}", "created", uid=name, scheduler=scheduler, node=node, requests=requests)
    return made.api(f"pod/default/{name}", "bound", uid=name, node="host-1")


def test_a_pod_that_is_bound_where_others_have_what_it_asks_for_is_named():
    made = with_node()
    pod(made, "a", 1)
    assert made.numbers() == []
    bound = pod(made, "b", 2)
    assert made.numbers() == [25]
    assert made.first() is bound


@pytest.mark.parametrize("end", ["deleted", "phase"])
def test_a_pod_that_has_ended_gives_its_place_back(end):
    made = with_node()
    pod(made, "a", 2)
    made.api("pod/default/a", end, uid="a", **({"phase": "Succeeded"} if end == "phase" else {}))
    pod(made, "b", 2)
    assert made.numbers() == []


def test_what_a_node_offered_a_moment_ago_may_still_be_counted_on_and_later_not():
    made = with_node()
    made.t = 20.0
    made.api("node/host-1", "allocatable", resource=RESOURCE, old="2", new="1")
    made.t = 21.0
    pod(made, "a", 2)
    assert made.numbers() == []
    made.api("pod/default/a", "deleted", uid="a")
    made.t = 40.0
    pod(made, "b", 2)
    assert made.numbers() == [25]


def test_who_names_the_node_himself_or_asks_for_what_no_node_offers_is_not_judged():
    made = with_node()
    pod(made, "named", 5, node="host-1")
    pod(made, "theirs", 5, scheduler="somebody-else")
    made.api("pod/default/c", "created", uid="c", scheduler="default-scheduler", node="", requests={"other.dev/x": 1})
    made.api("pod/default/c", "bound", uid="c", node="host-1")
    assert made.numbers() == []


def ready(made, status):
    return made.api("node/host-1", "condition", type="Ready", status=status, reason="KubeletSays")


def later(made, seconds):
    made.t += seconds
    made.judge.pass_time(made.t)


def test_a_node_that_is_silent_and_not_tainted_is_named():
    made = stream()
    made.api("node/host-1", "taints", taints=[])
    ready(made, "True")
    later(made, 100)
    line = ready(made, "Unknown")
    later(made, 20)
    assert made.numbers() == []
    later(made, 20)
    assert made.numbers() == [28]
    assert made.first() is line


def test_a_node_that_is_ready_again_and_keeps_its_taint_is_named():
    made = stream()
    made.api("node/host-1", "taints", taints=["node.kubernetes.io/unreachable:NoSchedule", "mine:NoSchedule"])
    ready(made, "Unknown")
    later(made, 100)
    assert made.numbers() == []
    ready(made, "True")
    later(made, 40)
    assert made.numbers() == [28]


def test_taints_that_follow_in_time_and_those_of_others_are_no_breach():
    made = stream()
    ready(made, "False")
    made.api("node/host-1", "taints", taints=["node.kubernetes.io/not-ready:NoSchedule"])
    later(made, 10)
    ready(made, "True")
    later(made, 1)
    made.api("node/host-1", "taints", taints=["mine:NoSchedule"])
    later(made, 100)
    made.api("node/host-1", "deleted")
    later(made, 100)
    assert made.numbers() == []


RISES = ("link-up", "function-added", "driver-bound", "nvml-visible")
FALLS = ("nvml-hidden", "driver-unbound", "function-removed", "link-down")


def test_layers_of_a_host_that_rise_and_fall_in_their_order_are_no_breach():
    made = stream()
    for event in ("link-up", "function-added", "driver-bound", "nvml-visible", "nvml-hidden", "driver-unbound"):
        made.host(event)
    for event in ("driver-bound", "driver-unbound", "function-removed", "link-down"):
        made.host(event)
    assert 70 not in made.numbers()


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(("link-up", "driver-bound"), id="a driver without a function"),
        pytest.param(("link-up", "function-added", "nvml-visible"), id="NVML without a driver"),
        pytest.param(
            ("link-up", "function-added", "driver-bound", "function-removed"), id="a function under its driver"
        ),
        pytest.param(("link-up", "link-up"), id="the same layer twice"),
    ],
)
def test_a_layer_that_comes_up_on_none_or_goes_below_another_is_named(events):
    made = stream()
    *_, last = [made.host(event) for event in events]
    (violation,) = [one for one in made.judge.violations if one.invariant == 70]
    assert violation.first is last
    assert violation.after.number == last.number - 1


@pytest.mark.parametrize(("lost", "broken"), [(True, False), (False, True)])
def test_a_function_that_is_lost_may_outlive_the_return_of_its_device_at_another_address(lost, broken):
    made = stream()
    for event in RISES:
        made.host(event, bdf="0000:23:00.0")
    if lost:
        made.host("lost", bdf="0000:23:00.0")
    for event in RISES:
        made.host(event, bdf="0000:28:00.0")
    for event in FALLS:
        made.host(event, bdf="0000:23:00.0")
    for event in (*FALLS, *RISES):
        made.host(event, bdf="0000:28:00.0")
    assert (70 in made.numbers()) is broken


def test_the_layers_of_a_lost_function_fall_in_their_order():
    made = stream()
    for event in (*RISES, "lost", "nvml-hidden", "function-removed"):
        made.host(event, bdf="0000:23:00.0")
    assert 70 in made.numbers()


ABSENT, WHOLE = {"minor": None, "healthy": False}, {"minor": 0, "healthy": True}


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        pytest.param([("link-up", ABSENT | {"minor": 1})], "has minor number 1", id="a number before its driver"),
        pytest.param([("driver-bound", ABSENT)], "has no minor number", id="no number"),
        pytest.param([("nvml-hidden", WHOLE)], "is called healthy", id="healthy as it goes"),
        pytest.param([("lost", WHOLE)], "is called healthy", id="healthy and lost"),
        pytest.param([("driver-bound", WHOLE)], "which 0-000100 has", id="another one's number"),
        pytest.param([("driver-bound", ABSENT | {"minor": 1}), ("nvml-visible", WHOLE | {"minor": 1})], "", id="right"),
    ],
)
def test_what_a_host_says_of_a_device_agrees_with_its_layers(lines, says):
    made = stream()
    made.host("driver-bound", minor=0)
    last = [made.host(event, gpuid="0-000200", **fields) for event, fields in lines][-1]
    found = [one for one in made.judge.violations if one.invariant == 70 and one.what.startswith("0-000200 on ")]
    assert [one.first for one in found] == ([last] if says else [])
    assert all(says in one.what for one in found)


@pytest.mark.parametrize("excused", [True, False])
def test_a_container_that_names_a_device_as_it_was_before_a_fault_took_its_uuid_is_no_breach(excused):
    made = Stream({"000100": "1"})
    if excused:
        told = {"fault": "f1", "kind": "lost-uuid", "gpuid": "0-000100", "excuses": {"6": None}}
        made.journal.write("fault", "chassis/A", "fired", **told)
    made.chassis("device-changed", "000100", "1", uuid="GPU-other", old_uuid="GPU-000100")
    made.run("host-1", "a", ["000100"], env={"NVIDIA_VISIBLE_DEVICES": "GPU-000100"})
    assert (6 in made.numbers()) is not excused


def refused(made, name="a", scheduler="default-scheduler"):
    made.api(f"pod/default/{name}", "created", uid=name, scheduler=scheduler, node="", phase="Pending", requests={})
    made.api(f"pod/default/{name}", "condition", uid=name, type="PodScheduled", status="False", reason="Unschedulable")


def told(made, reason, message, name="a"):
    made.api("default-scheduler", "event", reason=reason, object=f"pod/default/{name}", message=message)


def bind(made, name="a"):
    return made.api(f"pod/default/{name}", "bound", uid=name, node="host-1")


def test_a_refused_pod_that_is_bound_though_nothing_happens_is_named():
    made = stream()
    refused(made)
    refused(made, "b")
    made.t += 3
    gone = made.api("pod/default/c", "phase", uid="c", phase="Succeeded", reason="")
    bind(made, "b")
    made.t += 1
    late = bind(made)
    (violation,) = [one for one in made.judge.violations if one.invariant == 89]
    assert violation.first is late
    assert violation.after.number > gone.number


@pytest.mark.parametrize(
    "why", ["something happens", "annotated", "failed", "five minutes", "another scheduler", "attached", "claims"]
)
def test_a_refused_pod_that_is_bound_for_a_reason_is_no_breach(why):
    made = stream()
    refused(made, scheduler="default-scheduler" if why != "another scheduler" else "mine")
    if why == "annotated":
        made.api("pod/default/a", "annotations", uid="a", annotations={"x": "y"})
    if why == "failed":
        failed = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
        made.api("pod/default/a", "condition", uid="a", **failed)
    if why == "attached":
        told(made, "BindingConditionsPending", "waiting for binding conditions for 5s")
    if why == "claims":
        told(made, "FailedScheduling", "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable")
    made.t += 300 if why == "five minutes" else 3
    if why == "something happens":
        made.api("pod/default/c", "deleted", uid="c")
    bind(made)
    assert 89 not in made.numbers()


def test_an_event_of_another_reason_or_of_another_pod_does_not_excuse_a_late_binding():
    no_claims = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"
    for reason, message, about in (("FailedScheduling", no_claims, "a"), ("BindingConditionsPending", "", "b")):
        made = stream()
        refused(made)
        told(made, reason, message, about)
        made.t += 3
        bind(made)
        assert 89 in made.numbers()
