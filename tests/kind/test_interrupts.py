"""Interrupted while a cluster is created or in the midst of a run: `mews down` leaves nothing."""

import contextlib
import signal

import pytest

from mews.harness.clusters.kind.tools import call
from mews.harness.errors import RequirementError
from tests.kind.commands import docker_has, interrupt, passed, started, until

pytestmark = pytest.mark.kind

IDLE = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: idle}
hardware: demo
steps:
  - wait: {settled: {}}
    timeout: 2m
  - apply:
      kind: Pod
      metadata: {name: trainer}
      spec:
        schedulerName: kubecomp-scheduler
        containers: [{name: main, image: mews/gpu-hold, resources: {limits: {falcon.com/gpu: "2"}}}]
  - hold: {for: 10h, check: {moves: 0}}
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_while_a_cluster_is_created_leaves_nothing(number, state, tmp_path):
    before = docker_has()
    process = started(tmp_path, "run", "demo", "--cluster", "kind")
    name = f"mews-{process.pid}"
    until(process, lambda: docker_has(name)["containers"], "a node's container")
    interrupt(process, number)
    if number is signal.SIGINT:
        assert docker_has() == before, "it was deleted at once"
    passed(started(tmp_path, "down", "--all"))
    assert docker_has() == before
    assert not list(state.rglob("kind.json"))


def test_a_run_killed_in_the_midst_leaves_nothing(state, tmp_path):
    before = docker_has()
    (tmp_path / "idle.yaml").write_text(IDLE)
    process = started(tmp_path, "run", "idle.yaml", "--cluster", "kind", "--speed", "10")
    kubeconfig = state / "mews" / "kind" / f"mews-{process.pid}" / "kubeconfig"
    kubectl = ["kubectl", "--kubeconfig", str(kubeconfig), "get", "pods", "--output", "name", "--request-timeout=5s"]
    until(process, lambda: kubeconfig.exists() and "trainer" in said(kubectl), "the scenario's pod")
    interrupt(process, signal.SIGKILL)
    assert docker_has(f"mews-{process.pid}")["containers"], "nobody is there to delete them"
    images = call(["docker", "images", "--quiet", "--no-trunc"])
    passed(started(tmp_path, "down", "--all"))
    assert docker_has() == before
    assert not kubeconfig.parent.exists()
    assert call(["docker", "images", "--quiet", "--no-trunc"]) == images


def said(argv):
    """Standard output; nothing where the API does not answer yet."""
    with contextlib.suppress(RequirementError):
        return call(argv)
    return ""
