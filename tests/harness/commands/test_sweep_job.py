"""`mews manifests sweep`: an Indexed Job, run by our own Job controller with processes as pods."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import mews
from mews.harness.cli import exit_code

SCENARIO = """\
apiVersion: mews/v1
kind: Scenario
metadata: {name: small}
hardware: demo
timeout: 1h
steps:
  - apply: {kind: ConfigMap, apiVersion: v1, metadata: {name: x}, data: {a: b}}
"""
IMAGES = "images: {mews.local/components: {process: [python3]}}\n"
RUNS = """
import json, os, ssl, sys, time, urllib.request, yaml
access, ready = (json.load(open(os.environ[name])) for name in ("KUBECONFIG", "MEWS_READY"))
context = ssl.create_default_context(cafile=ready["ca"])
headers = {"Authorization": "Bearer " + access["users"][0]["user"]["token"], "Content-Type": "application/json"}
def call(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.urlopen(urllib.request.Request(ready["api"] + path, data, headers), context=context).read()
for each in yaml.safe_load_all(open("job.yaml")):
    job = each["kind"] == "Job"
    if job:  # a pod has this machine's programs, and no environment of its own
        each["spec"]["template"]["spec"]["containers"][0].update(json.load(open("container.json")))
    call("/apis/batch/v1/namespaces/default/jobs" if job else "/api/v1/namespaces/default/configmaps", each)
deadline, status = time.time() + 120, {}
while not any(c["type"] in ("Complete", "Failed") for c in status.get("conditions", ())) and time.time() < deadline:
    time.sleep(0.2)
    status = json.loads(call("/apis/batch/v1/namespaces/default/jobs/mews-sweep"))["status"]
json.dump(status, open("status.json", "w"))
with open("logs.jsonl", "wb") as logs:
    for pod in json.loads(call("/api/v1/namespaces/default/pods"))["items"]:
        logs.write(call("/api/v1/namespaces/default/pods/" + pod["metadata"]["name"] + "/log"))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(SCENARIO)
    return tmp_path


def manifest(capsys, *words):
    assert exit_code(["manifests", "sweep", "small.yaml", "--seeds", "1-3", *words]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def test_the_job_is_indexed_and_knows_which_ends_are_worth_another_try(folder, capsys):
    files, job = manifest(capsys, "--shards", "3", "--parallelism", "2", "--set", "timeout=2h", "--jobs", "2")
    assert files["data"] == {"small.yaml": SCENARIO}
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 2)
    assert spec["backoffLimitPerIndex"] == 3
    rules = {rule["action"]: rule["onExitCodes"]["values"] for rule in spec["podFailurePolicy"]["rules"]}
    assert rules == {"FailJob": [2, 3], "FailIndex": [1]}
    (container,) = spec["template"]["spec"]["containers"]
    assert container["command"] == [
        "python3", "-m", "mews.harness.cli", "run", "/etc/mews-sweep/small.yaml", "--set", "timeout=2h",
        "--seeds", "1-3", "--jobs", "2", "--shard", "index/3", "--results", "-",
    ]  # fmt: skip


def test_with_a_claim_each_shard_appends_to_a_file_of_its_own_and_goes_on_with_it(folder, capsys):
    _, job = manifest(capsys, "--shards", "2", "--claim", "kept")
    pod = job["spec"]["template"]["spec"]
    assert pod["containers"][0]["command"][-3:] == [
        "--results", "/var/lib/mews-sweep/$(JOB_COMPLETION_INDEX).jsonl", "--resume",
    ]  # fmt: skip
    assert {"name": "results", "persistentVolumeClaim": {"claimName": "kept"}} in pod["volumes"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--shards", "4"], "--shards 4: these are 3 runs: must be at most as many"),
        (["--shards", "0"], "mews manifests sweep: argument --shards: 0: must be a whole number of at least 1"),
        ([], "mews manifests sweep: the following arguments are required: --shards"),
        (["--shards", "1", "--name", "A"], "--name A: must be small letters, digits and '-', at most 52"),
    ],
)
def test_what_makes_no_job_is_refused_in_one_line(folder, capsys, words, complaint):
    assert exit_code(["manifests", "sweep", "small.yaml", "--seeds", "1-3", *words]) == 2
    assert capsys.readouterr().err == complaint + "\n"


@pytest.mark.wall
def test_our_job_controller_runs_the_shards_and_their_logs_merged_are_one_run(folder, capsys):
    yaml_text = [yaml.safe_dump(each) for each in manifest(capsys, "--shards", "2", "--folder", str(folder))]
    Path("job.yaml").write_text("---\n".join(yaml_text))
    Path("images.yaml").write_text(IMAGES)
    Path("runs.py").write_text(RUNS)
    scenarios = str(folder)
    (path,) = [p for p in mews.__path__ if (Path(p) / "dialects.py").is_file()]
    environment = [{"name": "PYTHONPATH", "value": str(Path(path).parent)}]
    Path("container.json").write_text(json.dumps({"env": environment}))
    argv = [sys.executable, "-m", "mews.harness.cli", "envtest", "--images", "images.yaml", "--stack", "none"]
    process_environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [*argv, "--", sys.executable, "runs.py"], cwd=scenarios, env=process_environment, timeout=300, check=False
    )
    assert done.returncode == 0
    status = json.loads(Path("status.json").read_text())
    assert (status.get("succeeded"), status.get("completedIndexes")) == (2, "0,1"), status
    assert exit_code(["merge", "logs.jsonl", "--json", "merged.json"]) == 0
    merged = json.loads(Path("merged.json").read_text())
    assert [(each["seed"], each["verdict"]) for each in merged] == [(1, "passed"), (2, "passed"), (3, "passed")]
    assert (
        exit_code(["run", str(folder / "small.yaml"), "--seeds", "1-3", "--results", "one.jsonl", "--json", "one.json"])
        == 0
    )
    assert Path("merged.json").read_bytes() == Path("one.json").read_bytes()
