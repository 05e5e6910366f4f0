"""Claims whose devices the pool driver attaches: a sample of ``make crash-points SYSTEM=pooldra``, of each hand-over.

After each crash nothing may be left of them: no claim without its pod, no device on a host, and each is offered once.
"""

from __future__ import annotations

import pytest

from mews.systems.pooldra.chassis_worker import ChassisWorker
from tests.crash_points.account import Base, bases, outcomes, pairs, sample
from tests.crash_points.point import CrashPoint, Incident
from tests.crash_points.systems import scenarios_of
from tests.crash_points.trial import try_point

HAND_OVERS = scenarios_of("pooldra")[:3]
SINGLES, PAIRS = 12, 6


@pytest.fixture(scope="module")
def among() -> list[Base]:
    return bases(HAND_OVERS)


def failures(among: list[Base], points: list[CrashPoint]) -> dict[str, tuple[str, ...]]:
    return {str(point): outcome.problems for point, outcome in outcomes(among, points) if outcome.problems}


def test_no_crash_of_a_component_strands_a_device_of_a_claim(among: list[Base]) -> None:
    points = [point for base in among for point in base.points()]
    assert len(points) > 2000
    assert failures(among, sample(points, SINGLES, seed=13)) == {}


def test_no_pair_of_crashes_with_a_fault_between_them_does(among: list[Base]) -> None:
    assert failures(among, pairs(among, PAIRS, seed=13)) == {}


def test_a_device_that_is_never_detached_is_noticed(among: list[Base], monkeypatch: pytest.MonkeyPatch) -> None:
    async def idle(worker: ChassisWorker, *_: object) -> None:
        worker._moving = None

    monkeypatch.setattr(ChassisWorker, "_detach", idle)
    monkeypatch.setattr("tests.crash_points.trial.REST_S", 200.0)
    base = among[0]
    outcome = try_point(
        base.scenario, CrashPoint(base.scenario.name, (Incident(base.outcome.first, "kubelet/host-3", 0.0),))
    )
    assert "GPU A/000100 is stranded on a host" in outcome.problems
