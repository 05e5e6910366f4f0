"""A sample of what ``make crash-points`` tries in full, and that it notices what goes wrong."""

import os
import subprocess
import sys

import pytest

from mews.harness.clusters.unit import Unit
from mews.harness.commands.run import load
from tests.crash_points.account import SCENARIOS, USUAL, Account, bases, outcomes, pairs, sample
from tests.crash_points.branches import branched
from tests.crash_points.point import FAULTS, CrashPoint, Incident
from tests.crash_points.systems import SYSTEMS, scenarios_of
from tests.crash_points.trial import try_point

SINGLES, PAIRS = 10, 5


@pytest.fixture(scope="module")
def among():
    return bases(USUAL)


def failures(among, points):
    return {str(point): outcome.problems for point, outcome in outcomes(among, points) if outcome.problems}


def test_no_crash_of_a_component_loses_a_gpu_or_moves_one_in_use(among):
    points = [point for base in among for point in base.points()]
    assert len(points) > 3000
    assert failures(among, sample(points, SINGLES, seed=13)) == {}


def test_no_pair_of_crashes_with_a_fault_between_them_does(among):
    assert failures(among, pairs(among, PAIRS, seed=13)) == {}


def test_how_soon_a_scenario_wants_its_pods_scheduled_binds_no_crash(among):
    base = next(base for base in among if base.scenario.name == "multi-container")
    assert base.scenario.bounds["scheduled_s"] == 20
    point = CrashPoint.parse("multi-container 77:kubelet/host-1:0 4:timeout-attach 1:kubelet/host-1:45")
    assert try_point(base.scenario, point, seed=2).problems == ()


def test_the_points_are_every_component_at_every_line_with_both_delays(among):
    base = next(base for base in among if base.scenario.name == "demo")
    points = {str(point) for point in base.points()}
    at = next(line.number for line in base.outcome.lines if line.event == "detached")
    for component in ("reconfig-manager", "device-manager/host-2", "kubelet/host-1", "chassis/A"):
        assert {f"demo {at}:{component}:0", f"demo {at}:{component}:45"} <= points
    lines = base.outcome.last - base.outcome.first
    assert len(points) == lines * len(base.outcome.components) * 2


def test_a_point_is_read_as_it_is_written():
    point = CrashPoint("demo", (Incident(57, "kubelet/host-1", 45.0), Incident(3, "http-error"), Incident(1, "a", 0.5)))
    assert str(point) == "demo 57:kubelet/host-1:45 3:http-error 1:a:0.5"
    assert CrashPoint.parse(str(point)) == point
    for wrong in ("demo x:a:1", "demo 5", "demo 5:no-such-fault", "demo 5:a:1:2"):
        with pytest.raises(ValueError, match="must be"):
            CrashPoint.parse(wrong)


def test_the_same_point_goes_the_same_way_twice(among):
    base = next(base for base in among if base.scenario.name == "two-at-once")
    point = pairs([base], 1, seed=5)[0]
    one, two = (try_point(base.scenario, point) for _ in range(2))
    assert [line.as_json() for line in one.lines] == [line.as_json() for line in two.lines]
    assert one.reached == 3


def test_a_component_that_never_comes_back_is_noticed(among, monkeypatch):
    base = next(base for base in among if base.scenario.name == "demo")
    at = next(line.number for line in base.outcome.lines if line.event == "detached")
    start = Unit.start

    def never_again(unit):
        if unit.name != "reconfig-manager" or unit.starts == 0:
            start(unit)

    monkeypatch.setattr(Unit, "start", never_again)
    monkeypatch.setattr("tests.crash_points.trial.REST_S", 400.0)
    outcome = try_point(base.scenario, CrashPoint("demo", (Incident(at, "reconfig-manager", 0.0),)))
    assert any("is lost: it is on no port" in problem for problem in outcome.problems)
    assert outcome.ran == () and outcome.excused == ("trainer",)


def test_every_fault_can_be_played_on_a_chassis(among):
    base = next(base for base in among if base.scenario.name == "demo")
    first = base.outcome.first
    for fault in FAULTS:
        outcome = try_point(base.scenario, CrashPoint("demo", (Incident(first, fault),)))
        assert (fault, outcome.problems, outcome.reached) == (fault, (), 1)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_has_scenarios_whose_crash_points_are_tried(system):
    shipped = {scenario.name for scenario in load([SCENARIOS])}
    assert len(scenarios_of(system)) >= 3
    assert {*scenarios_of(system)} <= shipped


def test_a_system_that_is_none_is_one_line_and_exit_code_2():
    command = [sys.executable, "-m", "tests.crash_points", "--system", "nope"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=SCENARIOS.parent, check=False)
    assert done.returncode == 2
    assert (
        done.stderr
        == "--system 'nope': must be one of kubecomp, gpushare, koordinator, remediation, kod2, pooldra, mixed\n"
    )


def test_an_incident_whose_line_never_comes_happens_once_everything_rests(among):
    base = next(base for base in among if base.scenario.name == "demo")
    first, last = base.outcome.first, base.outcome.last
    point = CrashPoint.parse(f"demo {last - 1}:scheduler:0 {last - first}:http-error {last - first}:kubelet/host-1:0")
    outcome = try_point(base.scenario, point)
    assert (outcome.problems, outcome.reached) == ((), 3)


def test_a_fault_that_meets_no_operation_is_counted(among):
    base = next(base for base in among if base.scenario.name == "demo")
    points = [CrashPoint.parse(f"demo {base.outcome.last - 1}:lying-detach")]
    account = Account("demo")
    for point, outcome in outcomes([base], points):
        account.add(point, outcome)
    assert account.idle == 1
    assert "1 faults met nothing" in str(account)


def test_a_world_that_branches_off_goes_as_it_does_alone(among):
    base = next(base for base in among if base.scenario.name == "demo")
    last = base.outcome.last - base.outcome.first
    points = [*sample(base.points(), 4, seed=7), CrashPoint.parse(f"demo {10 * last}:scheduler:0")]
    found = {}
    branched(base.scenario, points, pending=base.outcome.excused, seed=1, jobs=2, on_result=found.__setitem__)
    alone = [try_point(base.scenario, point, pending=base.outcome.excused) for point in points]
    assert [found[number] for number in range(len(points))] == alone


def test_a_world_whose_process_dies_is_a_failure(among, monkeypatch):
    base = next(base for base in among if base.scenario.name == "demo")
    point = CrashPoint("demo", (Incident(base.outcome.first, "scheduler", 0.0),))
    monkeypatch.setattr("tests.crash_points.trial._Incidents._next", lambda _: os._exit(1))
    assert failures(among, [point]) == {str(point): ("its process ended before it did",)}
    assert base.outcome.problems == ()
