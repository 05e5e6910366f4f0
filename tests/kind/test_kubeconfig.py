"""Somebody's cluster, made plainly: used to the end, and afterwards as it was."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mews.harness.clusters.kind.image.build import IMAGE, component_image
from mews.harness.clusters.kind.tools import NODE_IMAGE, call
from mews.harness.clusters.kubeconfig.target import HOST_LABEL
from mews.harness.manifests.parts import HOST_ROOT
from tests.kind.commands import interrupt, passed, started, until

pytestmark = pytest.mark.kind

SCENARIO = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: somebody}
hardware:
  metadata: {name: box}
  profile: instant
  hosts: [{name: box, cpus: 64, memory_mib: 65536}]
  chassis:
    - name: A
      index: 0
      slots: 4
      ports: {"1": box}
      devices:
        - {id: "000100", uuid: GPU-b104b284-a5ee-a4fa-2aef-29568979829c, kind: GPU, model: V100, serial: "1", port: "1"}
        - {id: "000200", uuid: GPU-223e3fbb-bc1a-9b56-7c89-28c10685d03b, kind: GPU, model: V100, serial: "2", port: "1"}
        - {id: "000300", uuid: GPU-3e5c1a19-b0d2-ff2a-d3e5-9a2aa6320b53, kind: GPU, model: V100, serial: "3",
           port: null}
steps:
  - wait: {settled: {}}
    timeout: 2m
  - apply:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: notes}, data: {a: b}}
      - apiVersion: scheduling.k8s.io/v1
        kind: PriorityClass
        metadata: {name: of-a-scenario}
        value: 1000
      - kind: Pod
        metadata: {name: trainer}
        spec:
          schedulerName: kubecomp-scheduler
          priorityClassName: of-a-scenario
          terminationGracePeriodSeconds: 1
          containers: [{name: main, image: mews/gpu-hold, resources: {limits: {falcon.com/gpu: "3"}}}]
  - wait: {gpus: {pod: trainer, count: 3, host: box}}
    timeout: 3m
  - assert: {moves: 1, operations: {attached: 1, detach-begun: 0}}
  - exec: {pod: trainer, command: [sh, -c, "nvidia-smi -L | grep -c UUID"], stdout: {$regex: "^3"}}
"""
IDLE = "  - hold: {for: 1h, check: {moves: 1}}\n"
NAMES = "{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{'\\n'}{end}"
PASSING = ("events", "leases.", "endpointslices.", "controllerrevisions.", "csistoragecapacities.", "pods.metrics")
"""Resources that come and go with the cluster's own life."""


@dataclass(frozen=True)
class Plain:
    """A kind cluster that Mews did not make."""

    name: str
    kubeconfig: Path
    image: str

    def kubectl(self, *words: str) -> str:
        return call(["kubectl", "--kubeconfig", str(self.kubeconfig), *words])

    def inventory(self) -> dict[str, object]:
        """The names of all that is there, and what nodes carry."""
        kinds = [kind for kind in self.kubectl("api-resources", "--verbs=list", "-o", "name").split()
                 if not kind.startswith(PASSING)]  # fmt: skip
        lines = self.kubectl("get", ",".join(kinds), "-A", "-o", f"jsonpath={NAMES}")
        nodes = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        carried = {node["metadata"]["name"]: [node["metadata"]["labels"], node["metadata"]["annotations"], node["spec"]]
                   for node in nodes}  # fmt: skip
        return {"objects": sorted(lines.splitlines()), "nodes": carried, "files": self.files()}

    def files(self) -> str:
        """Those of ours on the node."""
        folders = f"{HOST_ROOT} /var/lib/kubelet/device-plugins"
        look = f"find {folders} -mindepth 1 ! -name kubelet_internal_checkpoint 2>/dev/null | sort"
        return call(["docker", "exec", f"{self.name}-control-plane", "sh", "-c", look])


@pytest.fixture(scope="module")
def plain(state: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plain]:
    name, folder = f"plain-{os.getpid()}", tmp_path_factory.mktemp("plain")
    made = Plain(name, folder / "kubeconfig", component_image())
    image = os.environ.get(NODE_IMAGE)
    create = ["kind", "create", "cluster", "--name", name, "--kubeconfig", str(made.kubeconfig), "--wait", "180s"]
    try:
        call([*create, *(["--image", image] if image else [])], timeout_s=300.0)
        call(["kind", "load", "docker-image", "--name", name, made.image], timeout_s=300.0)
        made.kubectl("label", "node", f"{name}-control-plane", f"{HOST_LABEL}=any")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(IMAGE, made.image)
            yield made
    finally:
        call(["kind", "delete", "cluster", "--name", name, "--kubeconfig", str(made.kubeconfig)])


def on(plain: Plain, path: Path, text: str) -> list[str]:
    path.write_text(text)
    return ["run", str(path), "--cluster", "kubeconfig", "--kubeconfig", str(plain.kubeconfig), "--speed", "10"]


def test_a_run_passes_and_leaves_the_cluster_as_it_was(plain, tmp_path):
    before = plain.inventory()
    assert "1 passed" in passed(started(tmp_path, *on(plain, tmp_path / "somebody.yaml", SCENARIO)))
    assert plain.inventory() == before


def test_a_run_killed_in_the_midst_leaves_nothing_that_down_does_not_remove(plain, tmp_path):
    before = plain.inventory()
    process = started(tmp_path, *on(plain, tmp_path / "idle.yaml", SCENARIO + IDLE))
    running = ("get", "pods", "--all-namespaces", "--field-selector=status.phase=Running")
    until(process, lambda: "trainer" in plain.kubectl(*running), "the scenario's pod")
    interrupt(process, signal.SIGKILL)
    passed(started(tmp_path, "down", "--all"))
    assert plain.inventory() == before
