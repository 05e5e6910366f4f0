"""`mews run --jobs N` as its users type it: the bytes of one process, and its ends."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCENARIO = """\
apiVersion: mews/v1
kind: Scenario
metadata: {name: NAME}
hardware: demo
timeout: 1h
steps:
  - apply:
      kind: Pod
      metadata: {name: trainer}
      spec:
        schedulerName: kubecomp-scheduler
        restartPolicy: Never
        containers: [{name: main, image: mews/gpu-hold, resources: {limits: {falcon.com/gpu: "GPUS"}}}]
  - wait: {pod: {name: trainer, phase: Running}}
    timeout: 4m
"""
NEVER = """\
apiVersion: mews/v1
kind: Scenario
metadata: {name: never}
hardware: demo
steps: [{"blocking:STEP": pid}]
"""
BLOCKING = """\
import os
import time
from pathlib import Path

from mews.harness.scenario.extension import StepKind


async def block(stage, file, timeout_s):
    Path(f"{file}.part").write_text(str(os.getpid()))
    Path(f"{file}.part").rename(file)
    time.sleep(600)


STEP = StepKind(str, block)
"""


@pytest.fixture
def folder(tmp_path):
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    for name, gpus in {"a": 5, "b": 3, "c": 13}.items():
        (scenarios / f"{name}.yaml").write_text(SCENARIO.replace("NAME", name).replace("GPUS", str(gpus)))
    return scenarios


def command(*arguments):
    return [sys.executable, "-m", "mews.harness.cli", "run", *map(str, arguments)]


def without_timings(text):
    text = re.sub(r"\d+\.\d+ s  |\d+\.\d+ s$|time=\"[^\"]*\"|timestamp=\"[^\"]*\"", "", text, flags=re.MULTILINE)
    return re.sub(r"\"wall\": ?[0-9.e-]+", "", text)


def test_several_processes_write_the_bytes_of_one(folder, tmp_path):
    written = []
    for jobs in (1, 3):
        there = tmp_path / "out"
        there.mkdir()
        options = ["--seeds", "1-2", "--json", "r.json", "--junit", "r.xml", "--journal", "j.jsonl", "--jobs", jobs]
        done = subprocess.run(command(folder, *options), cwd=there, capture_output=True, text=True, timeout=120)
        assert done.returncode == 1
        assert done.stderr.startswith("seed 1 of c failed; replay: mews run ")
        assert done.stderr.count("\n") == 1
        files = {str(p.relative_to(there)): p.read_text() for p in sorted(there.rglob("*")) if p.is_file()}
        written.append({"stdout": done.stdout, **files})
        there.rename(tmp_path / f"out-{jobs}")
    one, three = ({name: without_timings(text) for name, text in each.items()} for each in written)
    assert one == three
    assert [(r["scenario"], r["seed"]) for r in json.loads(written[1]["r.json"])] == [
        (name, seed) for name in "abc" for seed in (1, 2)
    ]
    assert [r["verdict"] for r in json.loads(written[1]["r.json"])] == ["passed"] * 4 + ["failed"] * 2
    assert "mews-artefacts/c-1/journal.jsonl" in one and "j-a-1.jsonl" in one


def start(folder, cwd):
    """Two runs that end, and then one that never does, in two workers; and the pid of the worker that blocks."""
    (folder / "c.yaml").write_text(NEVER)
    (folder / "blocking.py").write_text(BLOCKING)
    arguments = command(folder, "--json", "r.json", "--jobs", "2")
    running = subprocess.Popen(arguments, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until((cwd / "pid").exists)
    return running, int((cwd / "pid").read_text())


def test_a_killed_worker_is_an_error_of_its_run_alone(folder, tmp_path):
    running, worker = start(folder, tmp_path)
    os.kill(worker, signal.SIGKILL)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (1, f"seed 1 of never failed; replay: mews run {folder}/c.yaml --seed 1\n")
    results = json.loads((tmp_path / "r.json").read_text())
    assert [result["verdict"] for result in results] == ["passed", "passed", "error"]
    assert results[2]["reason"].startswith("its worker process was killed by SIGKILL")
    assert "its worker process was killed by SIGKILL" in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_workers_and_reports_what_ran(folder, tmp_path, number):
    running, worker = start(folder, tmp_path)
    running.send_signal(number)
    _, err = running.communicate(timeout=30)
    assert (running.returncode, err) == (130, "interrupted\n")
    assert not Path(f"/proc/{worker}").exists()
    reported = {each["scenario"] for each in json.loads((tmp_path / "r.json").read_text())}
    assert reported and reported <= {"a", "b"}


def until(done, timeout_s=60):
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)
