"""GPU Share with Kubernetes' own scheduler, API server and kubelets: the design's cases, two replicas of the extender,
KubeComp beside it. The scenarios are the shipped ones, on clusters of their own hosts."""

from pathlib import Path

import pytest

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario

pytestmark = pytest.mark.kind

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios" / "gpushare"
SPEED = 20.0
NAMES = ("01-three-nodes", "02-bind", "03-developers", "04-inference", "10-two-replicas", "25-beside-the-pool")


@pytest.mark.parametrize("name", NAMES)
def test_the_unmodified_scheduler_shares_gpus_by_our_extender(name, shared, tmp_path):
    options = RunOptions("kind", "wall", SPEED)
    run = Engine(options, artefacts=tmp_path, session=shared).run(load_scenario(SCENARIOS / f"{name}.yaml"))
    assert run.result.verdict == "passed", f"{run.result.reason}\n{run.result.report}"
    assert run.result.violations == ()
