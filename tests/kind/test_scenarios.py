"""Shipped scenarios, unchanged, on Kubernetes with its own API server, kubelets and device managers."""

from pathlib import Path

import pytest

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario, parse_scenario

pytestmark = pytest.mark.kind

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
SPEED = 20.0

NAMES = (
    "demo",
    "01-cpu-pod",
    "02-gpus-at-hand",
    "03-unattached-gpu",
    "04-multi-container",
    "13-lying-boolean",
    "22-device-manager-killed",
    "23-kubelet-restart",
    "24-scheduler-restart",
    "26-in-use-stays",
    "kubelet/02-kubelet-restart",
    "kubelet/03-plugin-restart",
    "kubelet/05-over-ask",
    "kubelet/09-succeeded-then-restart",
)
AT_NIGHT = (
    "07-race-for-the-last",
    "08-two-at-once",
    "12-stale-event",
    "14-drop-after-effect",
    "17-concurrent-editor",
    "kubelet/08-unhealthy-free",
    "kubelet/10-deleted-while-down",
)
"""Those on the demo's hardware: one cluster and one image serve them all. Of the kubelet's cases the short ones; the
others took half a minute to five minutes. At night those whose races and faults
a control plane's tests play as well."""


DOCS = Path(__file__).resolve().parents[2] / "docs" / "bring-your-own"
YOURS = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: yours}
hardware: demo
stack:
  replace:
    scheduler: {plugin: "yours:Favourite", options: {node: host-2}}
    reconfig-manager: {manifest: reconfig-manager.yaml}
  extenders:
    - process: ["{python}", extender.py, "{port}"]
      config: {urlPrefix: "http://127.0.0.1:{port}", filterVerb: filter, nodeCacheCapable: true}
steps:
  - apply:
      - kind: Pod
        metadata: {name: a}
        spec: &spec
          schedulerName: kubecomp-scheduler
          terminationGracePeriodSeconds: 1
          containers: [{name: main, image: mews/gpu-hold}]
      - kind: Pod
        metadata: {name: b}
        spec: {<<: *spec, schedulerName: default-scheduler}
  - wait: {pod: {name: a, phase: Running, node: host-2}}
  - wait: {pod: {name: b, phase: Running, node: host-3}}
  - assert: {pod: {name: reconfig-manager, namespace: kubecomp, phase: Running}}
  - kill: extender/1
  - start: extender/1
"""


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


STRUCK = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: struck}
hardware: demo
steps:
  - fault: {component: scheduler, add: {kind: expired-token}}
  - fault: {component: device-manager/host-1, add: {kind: slow-request, by_s: 0.5}}
  - apply:
      kind: Pod
      metadata: {name: trainer}
      spec:
        schedulerName: kubecomp-scheduler
        restartPolicy: Never
        terminationGracePeriodSeconds: 1
        containers: [{name: main, image: mews/gpu-hold, resources: {limits: {falcon.com/gpu: "1"}}}]
  - hold: {for: 60s, check: {pod: {name: trainer, phase: Pending}}}
  - fault: {clear: scheduler}
  - wait: {pod: {name: trainer, phase: Running}}
    timeout: 2m
"""


def run_on(shared, scenario, artefacts):
    run = Engine(RunOptions("kind", "wall", SPEED), artefacts=artefacts, session=shared).run(scenario)
    assert run.result.verdict == "passed", f"{run.result.reason}\n{run.result.report}"
    return run


def test_a_process_in_a_pod_lists_its_gpus_through_nvml(shared, tmp_path):
    run_on(shared, parse_scenario(NVML, Path("nvml.yaml"), {}), tmp_path)


def test_components_in_pods_have_faults_between_them_and_the_api(shared, tmp_path):
    run = run_on(shared, parse_scenario(STRUCK, Path("struck.yaml"), {}), tmp_path)
    told = [(line.actor, line.event) for line in run.lines if line.layer == "fault"]
    assert told[:2] == [("scheduler", "added"), ("device-manager/host-1", "added")]
    assert told.count(("scheduler", "fired")) > 1
    assert ("scheduler", "cleared") in told
    assert len({line.fields["fault"] for line in run.lines if line.layer == "fault"}) == 2


def test_the_users_processes_take_our_components_places(shared, tmp_path):
    run_on(shared, load_scenario(DOCS / "processes.yaml"), tmp_path)


def test_the_users_plugin_manifest_and_extender_take_their_places(shared, tmp_path):
    run_on(shared, parse_scenario(YOURS, DOCS / "yours.yaml", {}), tmp_path)


@pytest.mark.parametrize("name", [*NAMES, *(pytest.param(name, marks=pytest.mark.nightly) for name in AT_NIGHT)])
def test_a_scenario_passes_on_kind_as_it_is(name, shared, tmp_path):
    run = run_on(shared, load_scenario(SCENARIOS / f"{name}.yaml"), tmp_path)
    layers = {line.layer for line in run.lines}
    assert run.result.violations == ()
    assert {"chassis", "kubelet", "api", "step"} <= layers or name == "01-cpu-pod"
