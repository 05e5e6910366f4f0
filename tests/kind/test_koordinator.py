"""Koordinator with Kubernetes' own API server and kubelets: koordlet reports emulated devices, a proxy before
containerd asks it about containers, webhooks over TLS. The scenarios are the shipped ones, on hosts of their own."""

from pathlib import Path

import pytest

from mews.harness.clusters.kind.tools import call
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario

pytestmark = pytest.mark.kind

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios" / "koordinator"
SPEED = 5.0
NAMES = ("01-shared", "02-joint", "05-unhealthy", "06-gang", "20-koordlet", "22-restarts", "25-webhook", "30-resize")
AT_NIGHT = ("03-exclusive", "04-partial", "07-fpga", "08-links", "09-preemption", "29-new-cluster", "23-hot-plug")
LAST = ("21-adopted", "28-upgrade")
"""With a device plugin: a kubelet goes on naming ``nvidia.com/gpu`` with 0 afterwards, and pods that ask for it by that
name fit nowhere."""


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.nightly) for name in (*AT_NIGHT, *LAST))]
)
def test_containers_have_the_devices_of_their_pods_annotation(name, shared, tmp_path):
    options = RunOptions("kind", "wall", SPEED)
    run = Engine(options, artefacts=tmp_path, session=shared).run(load_scenario(SCENARIOS / f"{name}.yaml"))
    assert run.result.verdict == "passed", f"{run.result.reason}\n{run.result.report}"
    assert run.result.violations == ()


def test_without_it_kubelets_reach_their_runtime_as_kind_made_them(shared, tmp_path):
    options = RunOptions("kind", "wall", SPEED)
    text = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: plain}\nhardware: seed-004\n"
    (tmp_path / "plain.yaml").write_text(text + "stack: {kubecomp: null}\nsteps: [{sleep: 1}]\n")
    run = Engine(options, artefacts=tmp_path, session=shared).run(load_scenario(tmp_path / "plain.yaml"))
    assert run.result.verdict == "passed", f"{run.result.reason}\n{run.result.report}"
    workers = [name for name in call(["docker", "ps", "--format", "{{.Names}}"]).split() if "-worker" in name]
    for worker in workers:
        endpoint = call(["docker", "exec", worker, "grep", "containerRuntimeEndpoint", "/var/lib/kubelet/config.yaml"])
        assert "unix:///run/containerd/containerd.sock" in endpoint
    admin = ["kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", "nodes", "--output", "yaml"]
    (master,) = [name for name in call(["docker", "ps", "--format", "{{.Names}}"]).split() if "control-plane" in name]
    assert "koordinator.sh" not in call(["docker", "exec", master, *admin])
