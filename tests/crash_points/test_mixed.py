"""Worlds with pods of all four systems: a sample of every component at every line, and of random worlds; all of the
former by night. A kubelet that forgets a terminated pod is found."""

import os
from itertools import pairwise

import pytest

from mews.harness.journal import Line
from mews.kube.emulated.kubelet.kubelet import Kubelet
from tests.crash_points.account import MIXED, bases, outcomes, sample
from tests.crash_points.point import CrashPoint, Incident
from tests.crash_points.random_worlds import REST_S, scenario_of, try_world
from tests.crash_points.trial import lingering, try_point

SINGLES, WORLDS = 6, (1, 2, 3)
FALSELY_ACCUSED, FALSELY_ACCUSED_OF_KILLS = (32, 428, 525, 592, 774), (655, 789, 899)
"""Worlds in which laws 36, 15, 65, 6 and 21 were wrong, and of which 15 and 46 were once somebody was killed."""


@pytest.fixture(scope="module")
def among():
    return bases(MIXED)


def failures(among, points, jobs=1):
    return {str(point): outcome.problems for point, outcome in outcomes(among, points, jobs=jobs) if outcome.problems}


def test_every_component_is_killed_at_every_line(among):
    for base in among:
        lines = base.outcome.last - base.outcome.first
        points = {(each.incidents[0].line, each.incidents[0].what) for each in base.once_each(1)}
        assert len(points) == lines * len(base.outcome.components)
        kinds = {name.partition("/")[0] for name in base.outcome.components}
        assert kinds >= {
            "kubelet",
            "scheduler",
            "device-manager",
            "gpushare-extender",
            "koordlet",
            "operator",
            "chassis",
        }


def test_no_kill_breaks_a_law_or_leaves_a_pod_terminating(among):
    points = [point for base in among for point in base.once_each(1)]
    assert len(points) > 10000
    assert failures(among, sample(points, SINGLES, seed=13)) == {}


@pytest.mark.nightly
def test_no_kill_at_any_line_does(among):
    points = [point for base in among for point in base.once_each(1)]
    assert failures(among, points, jobs=os.cpu_count() or 1) == {}


@pytest.mark.parametrize("number", WORLDS)
def test_no_random_world_with_kills_does(number):
    found = try_world(number)
    assert found.problems == (), found.point
    assert found.kills[1] == found.kills[0] > 0


@pytest.mark.parametrize("number", FALSELY_ACCUSED)
def test_worlds_in_which_laws_cried_wolf_are_quiet(number):
    world = scenario_of(number)
    assert try_point(world, CrashPoint(world.name, ()), seed=number, rest_s=REST_S).problems == ()


@pytest.mark.parametrize("number", FALSELY_ACCUSED_OF_KILLS)
def test_kills_after_which_laws_cried_wolf_are_borne(number):
    found = try_world(number)
    assert found.problems == (), found.point


def test_a_pod_that_its_node_refuses_is_counted_once(among):
    """The operator's cache may show a pod that it has deleted: a second look at it is no second refusal."""
    base = next(each for each in among if each.scenario.name == "mixed-side-by-side")
    asked = next(line.number for line in base.outcome.lines if line.event == "placement")
    point = CrashPoint(base.scenario.name, (Incident(asked, "device-manager/pool-2", 45.0),))
    outcome = try_point(base.scenario, point, rest_s=REST_S)
    waits = [line.t for line in outcome.lines if line.layer == "kubelet" and line.event == "rejected"]
    assert outcome.problems == ()
    assert [round(after - before) for before, after in pairwise(waits)][:3] == [1, 2, 4]


def test_a_task_that_no_node_takes_is_not_moved_to_and_fro_without_end():
    world = try_point(scenario_of(535), CrashPoint("world-535", ()), seed=535, rest_s=REST_S)
    placed = [line.t for line in world.lines if line.event == "placement"]
    assert len(placed) < 200
    assert max(placed.count(t) for t in placed) < 20


def test_a_pod_that_its_next_kubelet_forgets_is_found(among, monkeypatch):
    """The kubelet is killed as it writes the last phase of a pod that is being deleted."""
    base = next(each for each in among if each.scenario.name == "mixed-side-by-side")
    pod, lines = "pod/default/dev-a", base.outcome.lines
    deleted = next(line.number for line in lines if (line.actor, line.event) == (pod, "deleting"))
    at = next(line.number for line in lines if line.number > deleted and (line.actor, line.event) == (pod, "phase"))
    point = CrashPoint(base.scenario.name, (Incident(at, "kubelet/sharing", 1.0),))
    assert try_point(base.scenario, point, rest_s=200.0).problems == ()
    added = Kubelet._added

    async def forgets(self, given):
        if given["status"].get("phase") not in ("Succeeded", "Failed"):
            await added(self, given)

    monkeypatch.setattr(Kubelet, "_added", forgets)
    assert "pod dev-a is Terminating for ever" in try_point(base.scenario, point, rest_s=200.0).problems


def test_a_pod_that_takes_too_long_to_go_is_found():
    def life(took_s):
        told = (("deleting", 5.0), ("deleted", 5.0 + took_s))
        return [Line(at, t, "api", "pod/default/a", event, {"uid": "u"}) for at, (event, t) in enumerate(told)]

    assert lingering(life(60.0), 0.0) == []
    assert lingering(life(100.0), 45.0) == []
    assert lingering(life(61.0), 0.0) == ["pod/default/a was Terminating for 61 s"]
