"""The same cluster with a scheduler that takes nodes as they are, and with one that composes them (paper, Fig. 2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.loader import parse_scenario

FIVE = {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": {"falcon.com/gpu": "5"}}}


def asked(scheduler: str, outcome: str) -> Run:
    """Five GPUs asked for by one pod where each of three nodes has four."""
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"schedulerName": scheduler, "containers": [FIVE]}}
    text = f"""
apiVersion: mews/v1
kind: Scenario
metadata: {{name: composability}}
hardware: demo
bounds: {{}}
steps:
  - wait: {{settled: {{}}}}
    timeout: 2m
  - apply: {json.dumps(pod)}
  - {outcome}
"""
    return Engine(RunOptions()).run(parse_scenario(text, Path("composability.yaml")))


@pytest.mark.parametrize(
    ("scheduler", "outcome"),
    [
        (
            "default-scheduler",
            "hold: {for: 5m, check: [{pod: {name: p, phase: Pending}}, {moves: 0}]}\n"
            "  - assert: {pod: {name: p, unschedulable: {$regex: 3 Insufficient falcon.com/gpu}}}",
        ),
        ("kubecomp-scheduler", "wait: [{pod: {name: p, phase: Running}}, {moves: 1}]\n    timeout: 3m"),
    ],
)
def test_what_fits_no_node_as_it_is_waits_for_ever_or_runs_after_one_move(scheduler: str, outcome: str) -> None:
    result = asked(scheduler, outcome).result
    assert result.verdict == "passed", result.reason
