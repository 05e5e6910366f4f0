"""Tests of the tests: with one rule of Reconfig-Mgr broken on purpose, a shipped scenario fails."""

from typing import Any

import pytest

from mews.harness.scenario.loader import load_scenario
from mews.kube.chassis.port import ReplyOutcome
from mews.systems.kubecomp import rules
from mews.systems.kubecomp.mover import Mover
from tests.harness.scenario.test_shipped_runs import SHIPPED, Engine, RunOptions


def all_it_wants(view: Any, pod: Any, attached: int) -> int:
    """Without the single-move rule: the demand is not asked anew, four more are taken."""
    return int(pod.req) if view.still_waiting(pod) and attached < 8 else 0


async def as_replied(self: Any, intent: Any, reply: Any, *, before: Any, wanted: Any) -> Any:
    """Without the read-back: the reply is believed."""
    return wanted if reply.outcome is ReplyOutcome.DONE else before


def never(*args: Any, **kwargs: Any) -> bool:
    """Without the in-use test."""
    return False


@pytest.mark.parametrize(
    ("name", "owner", "rule", "broken"),
    [
        pytest.param("demo.yaml", rules, "remaining_demand", all_it_wants, id="the single-move rule"),
        pytest.param("13-lying-boolean.yaml", Mover, "settled_port", as_replied, id="the read-back, false"),
        pytest.param("14-drop-after-effect.yaml", Mover, "settled_port", as_replied, id="the read-back, unknown"),
        pytest.param("26-in-use-stays.yaml", rules, "in_use", never, id="the in-use test"),
        pytest.param("22-device-manager-killed.yaml", rules, "in_use", never, id="the freshness of reports"),
    ],
)
def test_a_scenario_fails_without_the_rule(monkeypatch, name, owner, rule, broken):
    monkeypatch.setattr(owner, rule, broken)
    assert Engine(RunOptions()).run(load_scenario(SHIPPED[name]), 1).result.verdict == "failed"


def test_the_in_use_test_is_also_missed_by_an_invariant(monkeypatch):
    monkeypatch.setattr(rules, "in_use", never)
    violations = Engine(RunOptions()).run(load_scenario(SHIPPED["26-in-use-stays.yaml"]), 1).result.violations
    assert 2 in {violation["invariant"] for violation in violations}
