"""Shipped scenarios, unchanged, on Kubernetes with its own API server, kubelets and device managers."""

import signal
from pathlib import Path

import pytest

from mews.harness.clusters.kind.tools import call
from mews.harness.engine import Engine
from mews.harness.scenario.loader import load_scenario, parse_scenario
from mews.harness.ways import Way
from tests.kind.commands import docker_has, interrupt, passed, started, until

pytestmark = pytest.mark.kind

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
SPEED = 20.0

NAMES = (
    "demo",
    "01-cpu-pod",
    "02-gpus-at-hand",
    "04-multi-container",
    "03-unattached-gpu",
    "07-race-for-the-last",
    "08-two-at-once",
    "12-stale-event",
    "13-lying-boolean",
    "14-drop-after-effect",
    "17-concurrent-editor",
    "22-device-manager-killed",
    "23-kubelet-restart",
    "24-scheduler-restart",
    "26-in-use-stays",
)
"""Those on the demo's hardware: one cluster and one image serve them all."""


NVML = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: nvml}
hardware: demo
steps:
  - wait: {settled: {}}
  - apply:
      kind: Pod
      metadata: {name: trainer}
      spec:
        schedulerName: kubecomp-scheduler
        restartPolicy: Never
        terminationGracePeriodSeconds: 1
        containers: [{name: main, image: mews/gpu-hold, resources: {limits: {falcon.com/gpu: "5"}}}]
  - wait: {gpus: {pod: trainer, count: 5, host: host-1}}
  - exec: {pod: trainer, command: [sh, -c, "nvidia-smi -L | grep -c UUID"], stdout: {$regex: "^5"}}
"""


def run_on(shared, scenario, artefacts):
    run = Engine(Way("kind", "wall", SPEED), artefacts=artefacts, shared=shared).run(scenario)
    assert run.result.verdict == "passed", f"{run.result.reason}\n{run.result.report}"
    return run


def test_a_process_in_a_pod_lists_its_gpus_through_nvml(shared, tmp_path):
    run_on(shared, parse_scenario(NVML, Path("nvml.yaml"), {}), tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_passes_on_kind_as_it_is(name, shared, tmp_path):
    run = run_on(shared, load_scenario(SCENARIOS / f"{name}.yaml"), tmp_path)
    layers = {line.layer for line in run.lines}
    assert run.result.violations == ()
    assert {"chassis", "kubelet", "api", "step"} <= layers or name == "01-cpu-pod"


def test_a_run_killed_in_the_midst_leaves_nothing_that_down_does_not_remove(shared, state, tmp_path):
    shared.close()  # it is kept, and taken over by the run that is killed: so ends the tier's own cluster
    [folder] = state.glob("kind/*")
    name, images = folder.name, call(["docker", "images", "--quiet", "--no-trunc"])
    (tmp_path / "idle.yaml").write_text(NVML + "  - hold: {for: 10h, check: {moves: 1}}\n")
    process = started(tmp_path, "run", "idle.yaml", "--cluster", "kind", "--speed", "10")
    kubectl = ["kubectl", "--kubeconfig", str(folder / "kubeconfig"), "get", "pods", "--output", "name"]
    until(process, lambda: "trainer" in call(kubectl), "the scenario's pod")
    assert docker_has(name)["containers"]
    interrupt(process, signal.SIGKILL)
    assert docker_has(name)["containers"], "nobody is there to delete them"
    passed(started(tmp_path, "down", "--all"))
    assert docker_has(name)["containers"] == []
    assert not folder.exists()
    assert call(["docker", "images", "--quiet", "--no-trunc"]) == images
