"""Every shipped scenario, through the real components in virtual time."""

from pathlib import Path

import pytest

import mews.scenarios
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import find_scenarios, load_scenario

FOLDER = Path(mews.scenarios.__file__).parent
SHIPPED = {str(path.relative_to(FOLDER)): path for path in find_scenarios([FOLDER])}
REPLAYS = [name for name in SHIPPED if name.startswith("testbed/")]
WALL = [name for name, path in SHIPPED.items() if load_scenario(path).requires.time == "wall"]
"""Those with real processes, which their own tests run."""


def run(name, *, seed=1, overrides=(), **way):
    return Engine(RunOptions(**way)).run(load_scenario(SHIPPED[name], overrides), seed).result


@pytest.mark.parametrize("name", [name for name in SHIPPED if name not in (*REPLAYS, *WALL)])
def test_a_shipped_scenario_passes(name):
    result = run(name)
    unexpected = [violation for violation in result.violations if not violation.get("expected")]
    assert (result.verdict, result.reason, unexpected) == ("passed", "", [])


TOSSED = "testbed/w3-2-6.yaml"
"""The coin tossed over the first job decides: 538 s on average or, as on the testbed, 661 s."""


@pytest.mark.parametrize("name", REPLAYS)
def test_a_replay_of_the_testbed_waits_as_measured(name):
    result = run(name)
    assert (result.verdict, result.reason) == ("passed", "")
    within = 0.2 if name == TOSSED else 0.1
    assert result.metrics["mean_wait_s"] == pytest.approx(result.expected["mean_wait_s"], rel=within)


def test_a_scenario_is_skipped_where_the_dialect_has_no_words_for_its_fault():
    result = run("13-lying-boolean.yaml", dialect="resource-pool")
    assert result.verdict == "skipped"
    assert "has no words for" in result.reason


@pytest.mark.parametrize(
    ("name", "override", "reason"),
    [
        (
            "demo.yaml",
            "steps.4.assert.moves=2",
            "step 5 assert (one GPU moved, and only one): expected 2 moved devices",
        ),
        ("demo.yaml", "steps.3.wait.gpus.count=4", "seen: pod resources of host-1 give it 5"),
        ("06-pool-exhausted.yaml", "steps.5.wait.pod.phase=Running", "while waiting for pod/default/five"),
        ("testbed/w1-0-8.yaml", "metrics.mean_wait_s.of=500", "metrics: mean_wait_s is"),
    ],
)
def test_a_wrong_expectation_fails(name, override, reason):
    overrides = [override, "steps.5.timeout=1h"] if name.startswith("06") else [override]
    result = run(name, overrides=overrides)
    assert result.verdict == "failed"
    assert reason in result.reason


def test_a_wait_for_what_can_never_come_is_a_deadlock_and_no_timeout():
    overrides = ["steps.2.wait.pod.node=host-3", "steps.2.timeout=10h"]
    result = run("demo.yaml", overrides=overrides)
    assert result.reason.startswith("step 3 wait (it runs): deadlock: nothing can happen any more")
    assert result.virtual_s < 1000
