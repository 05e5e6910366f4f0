"""KubeComp's laws on which node a pod waits for, and on what is done while it waits: lines, and one wrong line each."""

import pytest

from mews.kube.system.invariant import ClusterObjects
from mews.systems.kubecomp import policy
from mews.systems.kubecomp.laws import laws
from mews.systems.kubecomp.view import ClusterView
from tests.oracle.scenes import create, scene
from tests.systems.kubecomp.test_laws import Story

WAITED = "0/1 nodes are available: 1 rejected due to timeout after waiting 60s at plugin FalconResources."


def node(name, **spec):
    amounts = {"cpu": "8", "memory": "64Gi"}
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name, "labels": {}},
        "spec": spec,
        "status": {"allocatable": amounts, "conditions": conditions},
    }


def pod(name, bound="", cpu="1", **spec):
    requests = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "main", "resources": {"requests": requests}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"nodeName": bound, "containers": [container], **spec},
        "status": {"phase": "Running" if bound else "Pending"},
    }


def choice(*, offered="2", more=(), nodes=None, waiting=None, at=10.0, happens=(), **config):
    """What law 85 says of a pod that is told to wait for host-1 while host-2 announces two devices."""
    story = Story(**config)
    law = next(each for each in laws(story.config) if each.number == 85)
    story.api("node/host-2", "allocatable", resource="falcon.com/gpu", old=None, new=offered)
    for layer, actor, event in happens:
        story.journal.write(layer, actor, event, gpuid="0-a", kind="GPU", healthy=False)
    story.at(at)
    story.create(asks=2)
    told = story.note(lacks=2)
    state = story.judge.state
    for line in story.journal.lines():
        law.on_line(line, state)
    law.on_time(at + 1, state)
    there = nodes or [node("host-1"), node("host-2")]
    pods = {f"default/{each['metadata']['name']}": each for each in (waiting or pod("p"), *more)}
    objects = ClusterObjects({each["metadata"]["name"]: each for each in there}, pods, now_s=0.0)
    found = list(law.on_objects(at + 1, objects, state))
    return [(each.first is told, each.after.event) for each in found]


def test_a_pod_that_waits_for_one_node_while_another_has_enough_is_reported_with_its_list():
    assert choice() == [(True, "devices")]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"offered": "1"}, id="too few in its status"),
        pytest.param({"at": 1.0}, id="since a moment ago"),
        pytest.param({"nodes": [node("host-1"), node("host-2", unschedulable=True)]}, id="closed"),
        pytest.param({"nodes": [node("host-1", taints=[{"effect": "PreferNoSchedule"}]), node("host-2")]}, id="taint"),
        pytest.param({"more": [pod("other", "host-2", cpu="2")]}, id="more loaded"),
        pytest.param({"waiting": pod("p", nodeSelector={"a": "b"})}, id="another constraint"),
        pytest.param({"policy": "none"}, id="no policy"),
        pytest.param({"happens": [("component", "kubelet/host-2", "killed")]}, id="a kubelet that is down"),
        pytest.param({"happens": [("host", "host/host-2", "driver-unbound")]}, id="a device that went since"),
    ],
)
def test_a_node_that_is_not_as_good_for_another_reason_is_none(how):
    assert choice(**how) == []


def waits(*between):
    story = Story()
    law = next(each for each in laws(story.config) if each.number == 86)
    story.create()
    story.note()
    for line in between:
        story.at(30.0)
        line(story)
    story.at(61.0)
    story.api("kubecomp-scheduler", "event", reason="FailedScheduling", object="pod/default/p", message=WAITED)
    return [
        (each.first.event, each.after.event)
        for line in story.journal.lines()
        for each in law.on_line(line, story.judge.state)
    ]


def test_a_wait_in_which_nothing_is_done_is_reported_as_it_times_out():
    assert waits() == [("event", "annotations")]


@pytest.mark.parametrize(
    "done",
    [
        pytest.param(lambda story: story.withdrawal("asked"), id="asked"),
        pytest.param(lambda story: story.begin(), id="moved"),
        pytest.param(lambda story: story.journal.write("component", "reconfig-manager", "killed"), id="down"),
        pytest.param(
            lambda story: story.api(
                "reconfig-manager", "event", reason="ReconfigRefused", object="pod/default/p", message="held"
            ),
            id="refused",
        ),
    ],
)
def test_a_wait_in_which_something_is_done_or_nobody_can_is_none(done):
    assert waits(done) == []


@pytest.mark.parametrize(
    "done",
    [
        pytest.param(None, id="nothing"),
        pytest.param(lambda story: story.withdrawal("asked"), id="asked"),
        pytest.param(lambda story: story.bind(), id="bound"),
        pytest.param(lambda story: story.journal.write("component", "reconfig-manager", "killed"), id="down"),
    ],
)
def test_a_wait_that_nobody_begins_to_serve_is_reported_after_a_reading(done):
    story = Story()
    story.create()
    story.note()
    story.at(5.0)
    if done is not None:
        done(story)
    story.at(13.0)
    assert story.found(86) == []
    story.at(20.0)
    assert story.found(86) == ([("annotations", None)] if done is None else [])


def test_a_bound_pod_on_which_somebody_writes_what_it_wanted_waits_for_nothing():
    story = Story()
    story.create()
    story.bind()
    story.note()
    story.at(60.0)
    assert story.found(86) == []


def never(*args, **kwargs):
    return False


@pytest.mark.parametrize(
    ("wrong", "actions", "number", "first", "after"),
    [
        pytest.param(
            (policy, "score", lambda req, avail, chosen=None: -avail),
            [create(5, "a", 2), create(15, "b", 2), create(25, "c", 1)],
            85,
            "annotations",
            "devices",
            id="the least suited node is chosen",
        ),
        pytest.param(
            (ClusterView, "still_waiting", never),
            [create(5, "a", 6, "host-1")],
            86,
            "event",
            "annotations",
            id="none waits",
        ),
    ],
)
def test_one_wrong_line_is_named_by_the_law_that_it_breaks(monkeypatch, wrong, actions, number, first, after):
    monkeypatch.setattr(*wrong)
    outcome = scene(actions, tail_s=600.0)
    found = [each for each in outcome.violations if each.invariant == number]
    assert found, [str(each) for each in outcome.violations]
    assert (found[0].first.event, found[0].after.event) == (first, after)
