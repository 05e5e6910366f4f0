"""Pods on tainted devices before the kube-controller-manager of their release: the same verdict as before ours."""

from __future__ import annotations

from pathlib import Path

import pytest

import mews.scenarios
from mews.harness.clusters.programs.finding import CONTROLLERS, of_release
from tests.scenarios.test_wall import verdicts

FILE = Path(mews.scenarios.__file__).parent / "dra" / "22-evicted-by-a-rule.yaml"
RELEASE = "1.37"


@pytest.mark.wall
@pytest.mark.nightly
@pytest.mark.parametrize("where", ["embedded", "control-plane"])
def test_the_controllers_of_that_release_come_to_the_same_verdict(where: str) -> None:
    if of_release(CONTROLLERS, RELEASE) is None:
        pytest.skip(f"no kube-controller-manager of {RELEASE}")
    options = ("--set", f"stack.controllers.program={CONTROLLERS}", "--time", "wall", "--cluster", where)
    code, found = verdicts([FILE], *options)
    assert set(found.values()) == {"passed"}
    assert code == 0
