"""Shipped scenarios, unchanged, on Kubernetes with its own API server, kubelets and device managers."""

from pathlib import Path

import pytest

from mews.harness.engine import Engine
from mews.harness.scenario.loader import load_scenario
from mews.harness.ways import Way

pytestmark = pytest.mark.kind

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
SPEED = 10.0

NAMES = (
    "demo",
    "01-cpu-pod",
    "02-gpus-at-hand",
    "04-multi-container",
    "07-race-for-the-last",
    "08-two-at-once",
    "09-over-ask",
    "12-stale-event",
    "13-lying-boolean",
    "14-drop-after-effect",
    "20-reconfig-manager-crash",
    "22-device-manager-killed",
    "23-kubelet-restart",
    "24-scheduler-restart",
    "26-in-use-stays",
)
"""Those on the demo's hardware: one cluster and one image serve them all."""


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_passes_on_kind_as_it_is(name, shared, tmp_path):
    scenario = load_scenario(SCENARIOS / f"{name}.yaml")
    engine = Engine(Way("kind", "wall", SPEED), artefacts=tmp_path, shared=shared)
    run = engine.run(scenario)
    assert run.result.verdict == "passed", f"{run.result.reason}\n{run.result.report}"
    layers = {line.layer for line in run.lines}
    assert {"chassis", "kubelet", "api", "step"} <= layers or name == "01-cpu-pod"
