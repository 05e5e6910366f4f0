"""A session on kind, recorded: pods by a step and by kubectl, a fault, a move and a crash replay in virtual time."""

import json
import os
import subprocess
import sys

import pytest
import yaml

pytestmark = [pytest.mark.kind, pytest.mark.nightly]

MEWS = [sys.executable, "-m", "mews.harness.cli"]
A_STEP = """
apply:
  kind: Pod
  metadata: {name: five}
  spec:
    schedulerName: kubecomp-scheduler
    terminationGracePeriodSeconds: 1
    containers: [{name: main, image: mews/gpu-hold, resources: {limits: {falcon.com/gpu: "5"}}}]
"""
BY_KUBECTL = """
apiVersion: v1
kind: Pod
metadata: {name: two}
spec:
  schedulerName: kubecomp-scheduler
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: registry.k8s.io/pause:3.10.1
      imagePullPolicy: IfNotPresent
      resources: {limits: {falcon.com/gpu: "2"}}
"""
FAULT = "fault: {chassis: A, add: {kind: lying-result, operation: attach, says: false, count: 1}}"


@pytest.fixture
def up(state, tmp_path):
    """(run(words) -> output, ready.json) of a session on a kind cluster of its own."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(state)}
    command = [*MEWS, "up", "--cluster", "kind", "--name", "k", "--json", "--speed", "10", "--dir", str(tmp_path / "k")]
    with (tmp_path / "stderr").open("w+") as complaints:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=complaints, text=True)
        try:
            line = process.stdout.readline()
            complaints.seek(0)
            assert line, complaints.read()

            def run(*words, code=0):
                given = [*MEWS, *words, "--name", "k"]
                done = subprocess.run(given, env=environment, capture_output=True, text=True, timeout=300, check=False)
                assert done.returncode == code, done.stdout + done.stderr
                return done.stdout

            yield run, json.loads(line)
        finally:
            process.terminate()
            process.communicate(timeout=180)
            assert process.returncode == 0
    left = subprocess.run(["kind", "get", "clusters"], capture_output=True, text=True, check=True).stdout
    assert f"mews-{process.pid}" not in left.split()


def test_a_session_recorded_on_kind_replays_to_the_same_verdict(up, tmp_path):
    run, ready = up
    assert "k: kind, up for " in run("status")
    run("step", FAULT)
    run("step", A_STEP)
    run("step", "wait: {pod: {name: five, phase: Running, ready: true}}")
    run("step", "restart: reconfig-manager")
    kubectl = ["kubectl", "--kubeconfig", ready["kubeconfig"], "apply", "-f", "-"]
    subprocess.run(kubectl, input=BY_KUBECTL, text=True, capture_output=True, check=True, timeout=60)
    run("step", "wait: {pod: {name: two, phase: Running, ready: true}}")
    assert run("explain", "pod/five").startswith("pod default/five: running\n")

    saved = tmp_path / "k.json"
    assert run("snapshot", "save", str(saved)).startswith("saved: 2 objects, 0 faults\n")
    placed = {pod["object"]["metadata"]["name"]: pod["node"] for pod in json.loads(saved.read_text())["pods"]}

    recorded = tmp_path / "recorded.yaml"
    run("record", "--out", str(recorded))
    steps = yaml.safe_load(recorded.read_text())["steps"]
    actions = [key for step in steps for key in step if key not in ("sleep", "name", "timeout")]
    assert actions == ["wait", "fault", "apply", "wait", "restart", "apply", "wait", "wait"]
    ending = steps[-1]["wait"]
    running = {"namespace": "default", "phase": "Running", "scheduled": True, "ready": True}
    assert [check["pod"] for check in ending if "pod" in check] == [
        {"name": "five", **running},
        {"name": "two", **running},
    ]
    assert [check["gpus"]["count"] for check in ending if "gpus" in check] == [5, 2]
    again = subprocess.run([*MEWS, "run", str(recorded)], capture_output=True, text=True, timeout=300, check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "moved_gpus=1" in again.stdout

    run("step", "delete: {kind: Pod, name: five}")
    run("step", "chassis: {edit: {chassis: A, device: 000C00, port: null}}")
    assert run("snapshot", "restore", str(saved)) == "restored\n"
    for name, node in placed.items():
        run("step", f"assert: {{pod: {{name: {name}, phase: Running, node: {node}}}}}")
