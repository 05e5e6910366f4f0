"""From a device's withdrawal to its attach, hosts told beforehand against hosts taken by surprise, in one run.

Emulated seconds in virtual time, with chassis and hosts as slow as the real ones (profile falcon-4005). What an orderly
removal adds are the calls of NVML on the host that gives the device up, and nothing else.
"""

from __future__ import annotations

import statistics

from benchmarks.common import progress, report
from mews.harness.catalogue.files import shipped
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import parse_scenario

SEEDS = range(1, 11)
SCENARIO = """
apiVersion: mews/v1
kind: Scenario
metadata: {{name: removal}}
hardware:
  file: demo
  profile: falcon-4005
  hosts:
    - {{name: host-1, cpus: 192, profile: falcon-4005}}
    - {{name: host-2, cpus: 192, profile: falcon-4005}}
    - {{name: host-3, cpus: 192, profile: falcon-4005}}
stack: {{kubecomp: {{removal: {removal}}}}}
steps:
  - wait: {{settled: {{}}}}
    timeout: 3m
  - apply:
      kind: Pod
      metadata: {{name: trainer}}
      spec:
        schedulerName: kubecomp-scheduler
        restartPolicy: Never
        containers: [{{name: main, image: mews/gpu-hold, resources: {{limits: {{falcon.com/gpu: "5"}}}}}}]
  - wait: {{pod: {{name: trainer, phase: Running}}}}
    timeout: 5m
"""


def seconds(removal: str, seed: int) -> float:
    """From the moment the giving node's kubelet hears of one device less to the attach, in emulated seconds."""
    scenario = parse_scenario(SCENARIO.format(removal=removal), shipped("hardware", "demo").parent / "removal.yaml")
    run = Engine(RunOptions()).run(scenario, seed)
    if run.result.verdict != "passed":
        raise RuntimeError(f"removal {removal}, seed {seed}: {run.result.reason}")
    lists = [line for line in run.lines if (line.layer, line.event) == ("kubelet", "devices")]
    withdrawn = next(line.t for line in lists if len(line.fields["healthy"]) == 3)
    return next(line.t for line in run.lines if (line.layer, line.event) == ("chassis", "attached")) - withdrawn


def main() -> None:
    """Both ways over the same seeds."""
    found = {}
    for removal in ("orderly", "surprise"):
        times = [seconds(removal, seed) for seed in SEEDS]
        found[removal] = statistics.fmean(times)
        progress(
            f"removal: {removal} {found[removal]:.1f} s ({min(times):.1f} to {max(times):.1f}), {len(times)} seeds"
        )
    report("withdraw_to_attached", found["orderly"], "s", baseline=found["surprise"], baseline_name="removal: surprise")


if __name__ == "__main__":
    main()
