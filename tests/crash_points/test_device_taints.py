"""The controllers crash while pods are evicted from tainted devices: in the end none is left there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from mews.harness.clusters import open_cluster
from mews.harness.clusters.unit import Unit
from mews.harness.commands.run import load
from mews.harness.journal import Line
from mews.harness.scenario.model import Scenario
from tests.crash_points.account import SCENARIOS
from tests.crash_points.point import DELAYS_S, CrashPoint, Incident
from tests.crash_points.trial import Outcome, try_point

_NAME, _NODE, _CONTROLLERS = "dra-evicted-by-a-rule", "four", "controller-manager"
_EVERY = 9
_UNSAID = "invariant 22: "
"""What makes a pod reports it. Controllers that die in between do not, and no scenario kills them."""


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    (found,) = load([SCENARIOS / "dra" / "22-evicted-by-a-rule.yaml"])
    assert found.name == _NAME
    return found


async def _with_mortal_controllers(scenario: Scenario, *, seed: int) -> Any:
    """The cluster, with its controllers among what can be killed: no scenario may."""
    cluster: Any = await open_cluster(scenario, seed=seed)
    cluster._units[_CONTROLLERS] = cluster._controllers
    return cluster


@pytest.fixture(autouse=True)
def _mortal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.crash_points.trial.open_cluster", _with_mortal_controllers)


@pytest.fixture(scope="module")
def undisturbed(scenario: Scenario) -> Outcome:
    return try_point(scenario, CrashPoint(_NAME, ()))


def _evicting(lines: Iterable[Line]) -> list[int]:
    """The numbers of the lines from the rule's first eviction until the last pod has left the node."""
    of_node, numbers = set[object](), list[int]()
    first: int | None = None
    for line in lines:
        uid = line.fields.get("uid")
        if line.event == "bound" and line.fields["node"] == _NODE:
            of_node.add(uid)
        if line.event == "condition" and line.fields["reason"] == "DeletionByDeviceTaintManager" and first is None:
            first = line.number - 1
        if first is not None:
            numbers.append(line.number)
        if line.event == "deleted" and uid in of_node:
            of_node.remove(uid)
            if not of_node:
                return numbers
    raise AssertionError("not every pod leaves the node")


def _left(lines: Iterable[Line]) -> Iterator[str]:
    """The pods that were bound to the node and are not gone."""
    there: dict[object, str] = {}
    for line in lines:
        uid = line.fields.get("uid")
        if line.event == "bound" and line.fields["node"] == _NODE:
            there[uid] = line.actor
        elif line.event == "deleted":
            there.pop(uid, None)
    return iter(there.values())


def _wrong(scenario: Scenario, points: Iterable[CrashPoint]) -> dict[str, list[str]]:
    found = {}
    for point in points:
        outcome = try_point(scenario, point)
        problems = [each for each in outcome.problems if not each.startswith(_UNSAID)]
        problems += [f"{pod} is not evicted" for pod in _left(outcome.lines)]
        if problems or outcome.reached != 1:
            found[str(point)] = problems
    return found


def _points(undisturbed: Outcome) -> list[CrashPoint]:
    numbers = _evicting(undisturbed.lines)
    return [CrashPoint(_NAME, (Incident(each, _CONTROLLERS, away_s),)) for each in numbers for away_s in DELAYS_S]


def test_no_crash_leaves_a_pod_on_a_tainted_device(scenario: Scenario, undisturbed: Outcome) -> None:
    points = _points(undisturbed)
    assert len(points) > 100
    assert _wrong(scenario, points[::_EVERY]) == {}


@pytest.mark.nightly
def test_no_crash_at_any_line_leaves_a_pod_on_a_tainted_device(scenario: Scenario, undisturbed: Outcome) -> None:
    assert _wrong(scenario, _points(undisturbed)) == {}


def test_controllers_that_never_come_back_are_noticed(
    scenario: Scenario, undisturbed: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Unit.start

    def never_again(unit: Unit) -> None:
        if unit.name != _CONTROLLERS or unit.starts == 0:
            start(unit)

    monkeypatch.setattr(Unit, "start", never_again)
    monkeypatch.setattr("tests.crash_points.trial.REST_S", 400.0)
    [problems] = _wrong(scenario, _points(undisturbed)[:1]).values()
    assert "pod/default/patient is not evicted" in problems
