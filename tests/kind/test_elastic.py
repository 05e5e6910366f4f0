"""Elastic jobs on kind: the operator in a pod, real trainers in others, the scenarios as they are."""

from pathlib import Path

import pytest

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario

pytestmark = pytest.mark.kind

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios" / "elastic"
SPEED = 10.0

NAMES = ("01-scale-in", pytest.param("03-core-stays", marks=pytest.mark.nightly), "09-eviction", "11-bad-jobs")


@pytest.mark.parametrize("name", NAMES)
def test_an_elastic_scenario_passes_on_kind_as_it_is(name, shared, tmp_path):
    run_on(shared, name, tmp_path)


def test_the_loss_falls_while_a_job_has_one_three_and_two_workers(shared, tmp_path):
    run_on(shared, "19-trainer", tmp_path)


def run_on(shared, name, artefacts):
    scenario = load_scenario(SCENARIOS / f"{name}.yaml")
    run = Engine(RunOptions("kind", "wall", SPEED), artefacts=artefacts, session=shared).run(scenario)
    assert run.result.verdict == "passed", f"{run.result.reason}\n{run.result.report}"
    assert run.result.violations == ()
