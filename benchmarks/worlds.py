"""Worlds per minute and core: demo-sized ones, and a thousand virtual seconds of a testbed's pool.

By CPU time of this process, load of the scenario and first world left out: a sweep has them once.
"""

from __future__ import annotations

import time

from benchmarks.common import ROOT, progress, report
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario

TARGETS = {"demo.yaml": 1500.0, "testbed/w1-pool.yaml": 300.0}
"""Worlds a minute; of the second a world is a thousand virtual seconds."""
LASTS_S = 10.0


def worlds(name: str) -> tuple[float, float]:
    """Worlds, and virtual seconds, per CPU minute of one seed after the other."""
    scenario = load_scenario(ROOT / "scenarios" / name)
    Engine(RunOptions()).run(scenario, 0)
    count, virtual_s = 0, 0.0
    begun_s = time.process_time()
    while (taken_s := time.process_time() - begun_s) < LASTS_S or count < 3:
        count += 1
        run = Engine(RunOptions()).run(scenario, count)
        if run.result.verdict == "error":
            raise RuntimeError(f"{name}: {run.result.reason}")
        virtual_s += run.result.virtual_s
    return 60 * count / taken_s, 60 * virtual_s / taken_s


def main() -> None:
    """Both sizes."""
    progress("worlds of scenarios/demo.yaml, one core")
    demo, _ = worlds("demo.yaml")
    report("worlds_demo", demo, "worlds/min", baseline=TARGETS["demo.yaml"], baseline_name="target")
    progress("a thousand virtual seconds of scenarios/testbed/w1-pool.yaml, one core")
    _, virtual_s = worlds("testbed/w1-pool.yaml")
    long = virtual_s / 1000
    report("worlds_1000s", long, "worlds/min", baseline=TARGETS["testbed/w1-pool.yaml"], baseline_name="target")


if __name__ == "__main__":
    main()
