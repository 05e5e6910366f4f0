"""``hostPort`` of pods that are processes: found at their node's address, and given once a node."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from mews.kube.emulated.kubelet.mount_namespace import filters_lacking
from tests.emulator.nvml.gobuild import built
from tests.harness.test_static_program import SOURCE, Client, await_true
from tests.upstream.up import cluster

pytestmark = [
    pytest.mark.wall,
    pytest.mark.usefixtures("programs"),
    pytest.mark.skipif(bool(filters_lacking()), reason=f"no network of pods: {filters_lacking()}"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH"),
]
TAKEN = "1 node(s) didn't have free ports for the requested pod ports"


def pod(name: str, node: str = "", **port: Any) -> dict[str, Any]:
    container = {
        "name": "main", "image": "case/static", "ports": [{"containerPort": 8080, **port}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1},
    }  # fmt: skip
    chosen = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    spec = {"containers": [container], "schedulerName": "default-scheduler", **chosen}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("where", ["embedded", "control-plane"])
def test_a_host_port_leads_to_the_pod_of_its_node(where: str, tmp_path: Path) -> None:
    images = tmp_path / "images.yaml"
    images.write_text(yaml.safe_dump({"images": {"case/static": {"process": [str(built(SOURCE, cgo=False))]}}}))
    with cluster(["--cluster", where, "--stack", "none", "--images", str(images)]) as ready:
        client = Client(ready["kubeconfig"])
        first, other = pod("first", "host-1", hostPort=9000), pod("other", "host-2", hostPort=9000)
        client.apply(first, other, pod("asks"))
        client.run("wait", "--for=condition=Ready", "pod/first", "pod/other", "pod/asks", "--timeout", "60s")
        client.apply(pod("second", "host-1", hostPort=9000))
        for name in ("first", "other"):
            node = client.run("get", "pod", name, "-o", "jsonpath={.status.hostIP}")
            answer = client.seen("asks", ask=f"http://{node}:9000/")["answer"]
            assert json.loads(answer)["hostname"] == name, answer
        said = "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}"
        await_true(lambda: TAKEN in client.run("get", "pod", "second", "-o", said), "the port is not taken")
        client.run("delete", "pod", "first", "--grace-period", "1")
        client.run("wait", "--for=condition=Ready", "pod/second", "--timeout", "60s")
        node = client.run("get", "pod", "second", "-o", "jsonpath={.status.hostIP}")
        assert json.loads(client.seen("asks", ask=f"http://{node}:9000/")["answer"])["hostname"] == "second"
