"""Prometheus finds what every system of a session measures of itself."""

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mews.harness.clusters.exposition import merged

SHARING = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: measured}
hardware: demo
stack:
  kubecomp: {}
  kod2: {}
  gpushare: {replicas: 2, unit: GiB, nodes: [host-2]}
  koordinator: {nodes: [host-3]}
"""
MEWS = [sys.executable, "-m", "mews.harness.cli"]
A_POD = """
apply:
  kind: Pod
  metadata: {name: one}
  spec:
    schedulerName: kubecomp-scheduler
    terminationGracePeriodSeconds: 1
    containers: [{name: main, image: mews/gpu-hold, resources: {limits: {falcon.com/gpu: "1"}}}]
"""


def scraped(url, token):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    return {sample.name: sample for family in text_string_to_metric_families(text) for sample in family.samples}


@pytest.mark.wall
def test_every_system_of_a_session_is_scraped(tmp_path):
    (tmp_path / "all.yaml").write_text(SHARING)
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as runtime:
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": runtime}
        command = [*MEWS, "up", "--name", "m", "--json", "--wait", "devices", "--speed", "20"]
        command += ["--scenario", str(tmp_path / "all.yaml"), "--dir", str(tmp_path / "m")]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            ready = json.loads(line)

            def run(*words):
                given = [*MEWS, *words, "--name", "m"]
                done = subprocess.run(given, env=environment, capture_output=True, text=True, timeout=120, check=False)
                assert done.returncode == 0, done.stderr
                return done.stdout

            assert sorted(ready["metrics"]) == ["gpushare", "kod2", "koordinator", "kubecomp"]
            assert f"metrics of kod2: {ready['metrics']['kod2']}\n" in run("status")
            run("step", A_POD)
            run("step", "wait: {pod: {name: one, phase: Running}}")
            token = ready["session"]["token"]
            found = {name: scraped(url, token) for name, url in ready["metrics"].items()}
            assert found["kubecomp"]["kubecomp_moved_gpus_total"].value == 0
            assert found["kubecomp"]["kubecomp_phase_seconds_count"].value > 0
            assert found["kod2"]["kod2_pass_seconds_count"].value > 0
            assert found["gpushare"]["gpushare_filter_seconds_count"].labels == {"replica": "1"}
            assert found["koordinator"]["koordinator_device_capacity"].value > 0
            with pytest.raises(urllib.error.HTTPError) as refused:
                scraped(ready["metrics"]["kod2"], "wrong")
            assert refused.value.code == 401
            with pytest.raises(urllib.error.HTTPError) as refused:
                scraped(ready["metrics"]["kod2"] + "x", token)
            assert json.load(refused.value)["error"].startswith("metrics of 'kod2x': must be one of ")
        finally:
            process.terminate()
            process.communicate(timeout=60)


def test_the_samples_of_replicas_stand_together_under_their_numbers():
    one = '# TYPE a counter\na{x="1"} 2\n# TYPE b gauge\nb 3\n'
    assert merged([one]) == one
    assert merged([one, one.replace("3", "4")]) == (
        '# TYPE a counter\na{x="1",replica="0"} 2\na{x="1",replica="1"} 2\n'
        '# TYPE b gauge\nb{replica="0"} 3\nb{replica="1"} 4\n'
    )
    families = list(text_string_to_metric_families(merged([one, one])))
    assert [len(family.samples) for family in families] == [2, 2]
