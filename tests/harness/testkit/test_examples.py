"""The examples of docs/examples, run by their own tests as their readers run them; those in Go are built first."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mews.testing

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
POD = {
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": {"example.com/widget": "2"}}},
        ],
    },
}


@pytest.mark.wall
@pytest.mark.parametrize("name", ["test_clients.py", "test_in_a_cluster.py"])
def test_the_examples_pass_their_own_tests(name, tmp_path):
    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(EXAMPLES)]
    options += ["--basetemp", str(tmp_path / "t"), "--mews-artefacts", str(tmp_path / "artefacts")]
    command = [sys.executable, "-m", "pytest", *options, str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@contextlib.contextmanager
def running(folder, kubeconfig, out, *arguments):
    """A program in Go, built here."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go on PATH")
    program = out / folder.name
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    done = subprocess.run(
        [go, "build", "-o", str(program), "."], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode != 0 and ("dial tcp" in done.stderr or "no such host" in done.stderr):
        pytest.skip("the Go modules cannot be reached")
    assert done.returncode == 0, done.stderr[-3000:]
    process = subprocess.Popen([program, *arguments], env={**os.environ, "KUBECONFIG": str(kubeconfig)})
    try:
        yield
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait()


@pytest.mark.wall
@pytest.mark.nightly
def test_the_device_plugin_in_go_gives_a_container_its_widgets(tmp_path):
    with mews.testing.cluster(stack="none") as cluster:
        folder = cluster.nodes["host-2"]["device_plugins"]
        with running(EXAMPLES / "device-plugin-go", cluster.kubeconfig, tmp_path, folder, "3"):
            cluster.wait(node={"host": "host-2", "allocatable": {"example.com/widget": 3}})
            cluster.apply(POD)
            cluster.wait(pod={"name": "a", "phase": "Running", "node": "host-2"})


@pytest.mark.wall
@pytest.mark.nightly
def test_the_operator_by_controller_runtime_makes_a_pod_a_member(tmp_path):
    with (
        mews.testing.cluster(stack="none") as cluster,
        running(EXAMPLES / "operator-go", cluster.kubeconfig, tmp_path),
    ):
        cluster.apply({"kind": "ConfigMap", "metadata": {"name": "team", "labels": {"gang": "2"}}})
        cluster.wait(pod={"name": "team-0", "phase": "Running"})
        cluster.wait(pod={"name": "team-1", "phase": "Running"})
