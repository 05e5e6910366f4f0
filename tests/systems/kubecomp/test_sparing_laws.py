"""KubeComp's laws on which device is asked for, when it goes, and when a bus is scanned."""

import pytest
from msgspec.structs import replace

from mews.kube.system.invariant import ObservedHolding
from mews.systems.kubecomp.faults import KubeCompFault
from tests.systems.kubecomp.test_laws import Story
from tests.systems.kubecomp.world import config_of, hardware

LENT = tuple(
    replace(node, lent_to="gpushare") if node.name == "host-2" else node for node in config_of(hardware(4, 4)).nodes
)


def awaited(*happens, **config):
    """What law 1050 says as host-2, which has two devices, is asked for one at 20 s."""
    story = Story({"a": "2", "b": "2", "c": "1"}, **config)
    story.at(10.0)
    for each in happens:
        each(story)
    story.at(20.0)
    story.withdrawal("asked")
    return story.found(1050)


def waits(name, asks, node="host-2"):
    def happen(story):
        story.create(name, asks=asks)
        story.note(name, node=node)

    return happen


def test_a_device_that_a_pod_of_its_node_awaits_is_not_asked_for():
    assert awaited(waits("q", 2)) == [("asked", "annotations")]
    assert awaited(waits("q", 3)) == [("asked", "annotations")]


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param([], id="nobody awaits it"),
        pytest.param([waits("q", 1)], id="another one is enough"),
        pytest.param([waits("q", 2, node="host-1")], id="awaited elsewhere"),
        pytest.param([waits("q", 2), lambda story: story.end("host-2", "q")], id="by one that has ended"),
        pytest.param([waits("q", 2), lambda story: story.attach("c", "2")], id="one more has come"),
        pytest.param([lambda story: story.at(19.8), waits("q", 2)], id="since a moment ago"),
    ],
)
def test_a_device_that_nobody_there_needs_may_be_asked_for(happens):
    assert awaited(*happens) == []


def test_a_device_that_came_or_went_a_moment_ago_may_not_be_known():
    assert awaited(waits("q", 2), lambda story: story.at(19.8), lambda story: story.attach("c", "2")) == []
    assert awaited(waits("q", 3), lambda story: story.attach("c", "2")) == [("asked", "annotations")]


def shared(*devices, asked="a", **story):
    """What law 1050 says as a node whose GPUs are shared is asked for one, of which pods use these."""
    told = Story(nodes=LENT, **story)
    told.judge.state = replace(told.judge.state)
    held = [ObservedHolding(f"default/{d}", d, "main", "x", "host-2", (), None, (f"GPU-{d}",)) for d in devices]
    law = next(each for each in told.judge._of_events[("api", "asked")] if each.number == 1050)

    class State:
        def live_holdings(self):
            return held

        def bound_s(self, name):
            return told.judge.state.bound_s(name)

    found = []
    for line in told.journal.lines():
        found += law.on_line(line, State())
    told.at(20.0)
    line = told.withdrawal("asked", device=asked)
    return [(each.first is line, each.device) for each in law.on_line(line, State())]


def test_of_a_node_whose_devices_are_shared_one_that_nobody_uses_is_asked_for_first():
    assert shared("a") == [(True, "0-a")]
    assert shared("a", "b") == []
    assert shared("b") == []
    assert shared() == []


def off_its_list(*happens, at=20.0):
    """What law 1051 says as host-2 takes device a off its list then, which it is asked for at 20 s."""
    story = Story()
    story.at(5.0)
    for each in happens:
        each(story)
    story.at(20.0)
    story.withdrawal("asked")
    story.at(at)
    story.announce("host-2", "b")
    return story.found(1051)


def test_a_device_that_is_given_up_is_off_the_list_at_once():
    assert off_its_list() == []
    assert off_its_list(at=20.5) == [("devices", "asked")]


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda story: story.at(19.0) or story.announce("host-2", "a", "b"), id="something happened there"),
        pytest.param(lambda story: story.create("q", node="host-2"), id="pods are there"),
        pytest.param(lambda story: story.withdrawal("asked", device="b", request="s"), id="asked for another"),
        pytest.param(
            lambda story: story.at(19.0) or story.journal.write("component", "device-manager/host-2", "started"),
            id="it has just begun",
        ),
        pytest.param(lambda story: story.announce("host-2", "b"), id="it was not listed"),
    ],
)
def test_a_node_that_may_have_been_busy_may_take_its_time(happens):
    assert off_its_list(happens, at=20.5) == []


def scans(*happens, **config):
    story = Story(**config)
    for each in happens:
        each(story)
    story.journal.write("host", "host/host-2", "rescanned", below=None)
    return story.found(1052)


def test_a_bus_is_scanned_again_only_where_something_happened():
    assert scans() == [("rescanned", None)]
    assert scans(lambda story: story.attach("c", "1"), devices={"a": "2", "c": None}) == [("rescanned", None)]


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda story: story.detach("a"), id="one went"),
        pytest.param(lambda story: story.withdrawal("asked"), id="one was asked for"),
        pytest.param(lambda story: story.take_out(), id="the host took one out"),
        pytest.param(lambda story: story.journal.write("component", "device-manager/host-2", "started"), id="a start"),
        pytest.param(
            lambda story: story.journal.write("fault", "host/host-2", "added", fault="h", kind="x"), id="a fault"
        ),
    ],
)
def test_a_bus_is_scanned_again_for_a_cause(happens):
    assert scans(happens) == []


def test_the_published_implementation_asks_and_scans_as_it_does():
    published = frozenset({KubeCompFault.STALE_DEMAND})
    assert awaited(waits("q", 2), faults=published) == []
    assert scans(faults=published) == []


def brought_back(*happens):
    """What law 1053 says as a node is asked back: its device was detached for another one, and does not come there."""
    story = Story()
    story.withdrawal("asked")
    story.withdrawal("consented")
    story.begin()
    story.detach("a")
    story.chassis("attach-begun", "a", "1")
    story.ports["a"] = None
    for each in happens:
        each(story)
    story.withdrawal("asked-back")
    return story.found(1053)


def test_a_device_that_does_not_come_goes_back():
    assert brought_back() == [("asked-back", "attach-begun")]
    assert brought_back(lambda story: story.chassis("attach-begun", "a", "2")) == []


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda story: story.chassis("attached", "a", "1"), id="it has come"),
        pytest.param(lambda story: story.journal.write("component", "reconfig-manager", "killed"), id="it is away"),
        pytest.param(
            lambda story: story.journal.write("fault", "chassis/A", "fired", fault="f", kind="timeout", excuses={}),
            id="a fault keeps it from it",
        ),
    ],
)
def test_a_device_of_which_nobody_knows_may_stay(happens):
    assert brought_back(happens) == []
