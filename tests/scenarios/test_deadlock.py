"""A wait that nothing can end any more, on hardware that takes its time to be read."""

import pytest

from mews.harness.catalogue.files import shipped
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import parse_scenario

TEXT = """# A pod that can never fit.
apiVersion: mews/v1
kind: Scenario
metadata: {{name: dead}}
hardware: {{file: {hardware}, profile: {profile}}}
steps:
  - apply:
      kind: Pod
      metadata: {{name: greedy}}
      spec:
        schedulerName: kubecomp-scheduler
        containers:
          - {{name: main, image: mews/gpu-hold, resources: {{limits: {{falcon.com/gpu: "13"}}}}}}
  - wait: {{pod: {{name: greedy, phase: Running}}}}
    timeout: 100h
"""


@pytest.mark.parametrize("profile", ["instant", "falcon-4005"])
def test_a_wait_that_nothing_can_end_is_a_deadlock_long_before_its_timeout(profile):
    hardware = shipped("hardware", "demo")
    scenario = parse_scenario(TEXT.format(hardware=hardware, profile=profile), hardware.parent / "dead.yaml")
    result = Engine(RunOptions()).run(scenario, 1).result
    assert result.verdict == "failed"
    assert "deadlock: nothing can happen any more while waiting for pod/default/greedy" in result.reason
    assert result.virtual_s < 1000
