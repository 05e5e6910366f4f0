"""What a scenario sees of a cluster that has more nodes than hosts."""

import pytest

from mews.harness.clusters.real.hidden_nodes import HiddenNodes
from mews.kube.api.resources import EVENTS, NODES, PODS

TAINTED, CLOSED = "1 node(s) had untolerated taint(s)", "1 node(s) were unschedulable"
UNHELPFUL, NOBODY = "Preemption is not helpful for scheduling.", "No preemption victims found for incoming pod."
POOL = "Pod a requires 5 GPU but only 4 GPU in the pool."
HOSTS = ("host-1", "host-2", "host-3")


def nodes(number, said):
    return f"0/{number} nodes are available: {said}"


@pytest.mark.parametrize(
    ("cordoned", "said", "plain"),
    [
        (0, nodes(4, f"{TAINTED}, 3 Insufficient cpu."), nodes(3, "3 Insufficient cpu.")),
        (1, nodes(5, f"{TAINTED}, {CLOSED}, 3 Insufficient cpu. m"), nodes(3, "3 Insufficient cpu. m")),
        (
            1,
            nodes(5, f"2 node(s) were unschedulable, {TAINTED}, 2 Insufficient cpu."),
            nodes(3, f"{CLOSED}, 2 Insufficient cpu."),
        ),
        (
            0,
            nodes(4, "3 node(s) had untolerated taint(s), 1 Insufficient cpu."),
            nodes(3, "1 Insufficient cpu, 2 node(s) had untolerated taint(s)."),
        ),
        (0, nodes(3, f"{TAINTED}, 2 Insufficient cpu."), nodes(3, f"{TAINTED}, 2 Insufficient cpu.")),
        (
            0,
            nodes(
                4,
                f"{TAINTED}, 3 Insufficient cpu. no new claims to deallocate, preemption: {nodes(4, '4 ' + UNHELPFUL)}",
            ),
            nodes(3, f"3 Insufficient cpu. no new claims to deallocate, preemption: {nodes(3, '3 ' + UNHELPFUL)}"),
        ),
        (
            1,
            nodes(5, f"{POOL}. no, preemption: {nodes(5, '5 ' + NOBODY)}"),
            nodes(3, f"{POOL}. no, preemption: {nodes(3, '3 ' + NOBODY)}"),
        ),
        (0, POOL, POOL),
    ],
)
def test_nodes_that_are_no_hosts_are_not_counted_and_nothing_else_is_changed(cordoned, said, plain):
    assert HiddenNodes(HOSTS, cordoned).plain(said) == plain


def test_nodes_that_are_no_hosts_are_hidden_and_so_are_events_about_them():
    strangers = HiddenNodes(HOSTS)
    about = {"involvedObject": {"kind": "Node", "name": "kind-control-plane"}}
    assert strangers.hides(NODES, {"metadata": {"name": "kind-control-plane"}})
    assert strangers.hides(EVENTS, about)
    assert not strangers.hides(NODES, {"metadata": {"name": "host-1"}})
    assert not strangers.hides(EVENTS, {"involvedObject": {"kind": "Pod", "name": "kind-control-plane"}})
    assert not strangers.hides(PODS, {"metadata": {"name": "host-4"}})


def test_events_and_pods_tell_what_schedulers_say_without_them():
    said, plain = nodes(4, f"{TAINTED}, 3 Insufficient cpu."), nodes(3, "3 Insufficient cpu.")
    strangers = HiddenNodes(HOSTS)
    event = {"involvedObject": {"kind": "Pod"}, "reason": "FailedScheduling", "message": said}
    assert strangers.shown(event) == {**event, "message": plain}
    ready = {"type": "Ready", "reason": "ContainersNotReady", "message": said}
    scheduled = {"type": "PodScheduled", "reason": "Unschedulable", "message": said}
    pod = {"metadata": {}, "status": {"phase": "Pending", "conditions": [ready, scheduled]}}
    assert strangers.shown(pod)["status"] == {
        "phase": "Pending",
        "conditions": [ready, {**scheduled, "message": plain}],
    }
    for other in ({"metadata": {}}, {"metadata": {}, "status": "Failure"}, {**event, "message": "Stopping container"}):
        assert strangers.shown(other) == other


def test_preemption_that_finds_no_victims_is_about_the_hosts_own_nodes():
    refused = "1 Insufficient a/b, 2 Too many pods"
    said = (
        f"0/4 nodes are available: {refused}, 1 node(s) had untolerated taint(s). preemption: 0/4 nodes are available: "
    )
    told = HiddenNodes(["a", "b", "c"]).plain(
        f"{said}1 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling."
    )
    assert told.endswith("0/3 nodes are available: 1 No preemption victims found for incoming pod, "
                         "2 Preemption is not helpful for scheduling.")  # fmt: skip
