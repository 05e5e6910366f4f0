"""A move that goes wrong on a real control plane is recorded while it happens, and its replay is red."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = [pytest.mark.wall, pytest.mark.nightly]

POD = """
apply:
  kind: Pod
  metadata: {name: trainer}
  spec:
    schedulerName: kubecomp-scheduler
    containers:
      - name: main
        image: mews/gpu-hold
        env: [{name: PASSWORD, value: hunter2}]
        resources: {limits: {falcon.com/gpu: "5"}}
"""


def mews(*words, timeout_s=120):
    return subprocess.run(
        [sys.executable, "-m", "mews.harness", *words], capture_output=True, text=True, timeout=timeout_s
    )


def until(happened, process, seconds=120):
    deadline = time.monotonic() + seconds
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        try:
            process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            continue


@pytest.fixture
def lab(programs, tmp_path):
    folder, name = tmp_path / "lab", f"record-{os.getpid()}"
    words = ["up", "--cluster", "control-plane", "--hardware", "demo", "--dir", str(folder), "--name", name]
    with subprocess.Popen(
        [sys.executable, "-m", "mews.harness", *words, "--wait", "devices"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            until((folder / "ready.json").exists, process)
            yield folder, name
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def test_what_was_watched_replays_red_with_the_reason(lab, tmp_path):
    folder, name = lab
    url = json.loads((folder / "ready.json").read_text())["chassis"]["A"]["h3api"]
    assert mews("fault", "add", "--name", name, "--chassis", "A", "never-trains").returncode == 0
    out = tmp_path / "bug.yaml"
    words = ["record", "--kubeconfig", str(folder / "kubeconfig"), "--chassis", url, "--for", "10m", "--out", str(out)]
    with subprocess.Popen(
        [sys.executable, "-m", "mews.harness", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as recording:
        assert "recording for 600 s" in recording.stderr.readline()
        applied = mews("step", "--name", name, POD)
        assert applied.returncode == 0, applied.stdout + applied.stderr
        with pytest.raises(subprocess.TimeoutExpired):
            recording.wait(timeout=40)
        recording.send_signal(signal.SIGINT)
        shown, complaints = recording.communicate(timeout=60)
    assert recording.returncode == 0, complaints
    assert "for pod default/trainer and was on no port until the end" in shown
    assert "hunter2" not in out.read_text()
    replay = mews("run", str(out))
    assert replay.returncode == 1, replay.stdout
    assert 'pod/default/trainer with phase "Running"' in replay.stdout
    healed = mews("run", str(out), "--set", "steps.1.fault.add.count=1")
    assert healed.returncode == 0, healed.stdout
