"""Invariant 8 bites: a scheduler that ignores its pods, planted in every shipped scenario, is found in each."""

import logging
from pathlib import Path

import pytest

import mews.scenarios
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import find_scenarios, load_scenario
from tests.scenarios.ignoring import Ignoring

FOLDER = Path(mews.scenarios.__file__).parent
PLANTED = "tests.scenarios.ignoring:Ignoring"
SHIPPED = [
    str(path.relative_to(FOLDER))
    for path in find_scenarios([FOLDER])
    if load_scenario(path).requires.time in (None, "virtual")
]
UNASKED = {
    "29-hot-plug-layers.yaml",
    "30-operator-detach-attach.yaml",
    "31-surprise-removal.yaml",
    "38-detached-by-hand.yaml",
}
"""Those without a pod. In ``elastic`` (but for two) and ``kubelet`` pods come to their nodes without a scheduler."""
WITH_SCHEDULER = {
    "elastic/12-with-the-pool.yaml",
    "elastic/13-baseline-deadlock.yaml",
    "kubelet/13-host-power.yaml",
}

UNFIT_FIRST = {"09-over-ask.yaml", "11-stuck-pod.yaml", "language/04-catch.yaml"}
"""Their first pod fits nowhere and waits for a refusal in the right words: that step finds the wrong scheduler."""

UNOFFERED = {
    f"koordinator/{name}.yaml"
    for name in ("04-partial", "06-gang", "08-links", "09-preemption", "31-gang-that-cannot-follow")
}
"""Their first pods ask by names that DeviceShare alone reads (nvidia.com/gpu without its plugin, gpu.shared): by what
nodes offer they fit nowhere, so that it is their steps, too, that find the wrong scheduler."""

CLAIMED = {name for name in SHIPPED if name.startswith(("dra/", "fabric/"))}
"""Their pods need devices of slices, which the law of what fits does not know: their steps find the wrong scheduler."""

KILLED = {"koordinator/28-upgrade.yaml", "koordinator/29-new-cluster.yaml"}
"""A scheduler that the scenario has killed owes nobody anything: the step after it finds the wrong one."""


def planted(path: Path) -> dict[str, str]:
    """The plug-in in every scheduler that the scenario's stack has."""
    found = {}
    for name in ("scheduler", "default-scheduler", "koord-scheduler"):
        place = {f"stack.replace.{name}.plugin": PLANTED}
        try:
            load_scenario(path, place)
        except ScenarioError:
            continue
        found |= place
    return found


DAILY = UNASKED | WITH_SCHEDULER | UNFIT_FIRST | UNOFFERED | KILLED | set(SHIPPED[::5])
"""What the rules above name, and of the others each fifth."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in DAILY else pytest.mark.nightly) for name in SHIPPED]
)
def test_a_scheduler_that_ignores_pods_is_found(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="mews")
    Ignoring.ignored.clear()
    run = Engine(RunOptions()).run(load_scenario(FOLDER / name, planted(FOLDER / name)), 7)
    pods_need_one = name not in UNASKED and (not name.startswith(("elastic/", "kubelet/")) or name in WITH_SCHEDULER)
    assert bool(Ignoring.ignored) == pods_need_one
    assert (run.result.verdict == "failed") == pods_need_one
    if name not in UNFIT_FIRST | UNOFFERED | CLAIMED | KILLED:
        assert (8 in [violation["invariant"] for violation in run.result.violations]) == pods_need_one
