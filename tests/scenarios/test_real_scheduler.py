"""Scenarios of dynamic resource allocation before the kube-scheduler of their release: the same verdicts as before
ours. The five situations of test/integration/dra/binding_conditions.go of Kubernetes 1.37 are among them."""

from __future__ import annotations

from pathlib import Path

import pytest

import mews.scenarios
from mews.harness.clusters.programs.finding import SCHEDULER, of_release
from tests.scenarios.test_wall import verdicts

DAILY = "19"
FOLDER = Path(mews.scenarios.__file__).parent / "dra"
RELEASE = "1.37"


@pytest.mark.wall
@pytest.mark.parametrize("where", ["embedded", "control-plane"])
@pytest.mark.parametrize(
    "number",
    [
        number if number == DAILY else pytest.param(number, marks=pytest.mark.nightly)
        for number in ("11", "12", "13", "14", "15", "16", "17", "18", DAILY, "24")
    ],
)
def test_the_kube_scheduler_of_that_release_comes_to_the_same_verdict(number: str, where: str) -> None:
    if of_release(SCHEDULER, RELEASE) is None:
        pytest.skip(f"no kube-scheduler of {RELEASE}")
    (path,) = FOLDER.glob(f"{number}-*.yaml")
    options = ("--set", "stack.defaultScheduler.program=kube-scheduler", "--time", "wall", "--cluster", where)
    code, found = verdicts([path], *options)
    assert set(found.values()) == {"passed"}
    assert code == 0
