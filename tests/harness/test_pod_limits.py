"""Limits of pods that are processes hold where this machine lets its user make control groups."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mews.kube.emulated.kubelet import cgroups
from mews.kube.emulated.kubelet.mount_namespace import namespaces_lacking
from tests.harness.test_static_program import Client, await_true
from tests.upstream.up import cluster

pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(bool(namespaces_lacking()), reason=f"no namespaces: {namespaces_lacking()}"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH"),
]
needs_groups = pytest.mark.skipif(bool(cgroups.lacking()), reason=cgroups.lacking())
TAKES = "import time; taken = bytearray(200 << 20); time.sleep(60)"
WAITS = "import time; time.sleep(600)"
BURNS = """
import os, time
end = time.monotonic() + 3
while time.monotonic() < end:
    pass
used = os.times()
print(used.user + used.system, flush=True)
"""


def pod(name: str, code: str, **resources: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "case/python", "args": ["-c", code], "resources": resources}
    spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def options(folder: Path) -> list[str]:
    file = folder / "images.yaml"
    file.write_text(yaml.safe_dump({"images": {"case/python": {"process": [sys.executable, "-S"]}}}))
    return ["--stack", "none", "--images", str(file)]


def groups_of(ready: dict[str, Any]) -> list[Path]:
    name = Path(ready["logs"]).name
    found = (folder / name for folder in set(cgroups._found()[0].folders.values()))
    return [folder for folder in found if folder.exists()]


def ended(client: Client, name: str) -> dict[str, Any]:
    await_true(
        lambda: client.run("get", "pod", name, "-o", "jsonpath={.status.phase}") in ("Failed", "Succeeded"), name
    )
    status = json.loads(client.run("get", "pod", name, "-o", "json"))["status"]
    found: dict[str, Any] = status["containerStatuses"][0]["state"]["terminated"]
    return found


@needs_groups
def test_memory_and_cpu_are_limited(tmp_path: Path) -> None:
    with cluster(options(tmp_path)) as ready:
        client = Client(ready["kubeconfig"])
        client.apply(
            pod("takes", TAKES, limits={"memory": "64Mi"}),
            pod("burns", BURNS, limits={"cpu": "200m"}),
            pod("waits", WAITS, limits={"memory": "64Mi", "cpu": "1"}),
        )
        killed = ended(client, "takes")
        assert (killed["exitCode"], killed["reason"]) == (137, "OOMKilled")
        ended(client, "burns")
        assert 0.2 < float(client.run("logs", "burns")) < 1.5, "of 3 s, of which a fifth is 0.6"
        client.run("wait", "--for=condition=Ready", "pod/waits", "--timeout", "60s")
        said = client.refused("exec", "waits", "--", sys.executable, "-S", "-c", TAKES)
        assert "137" in said, "a command is in its container's group"
        more = {side: {"memory": "400Mi", "cpu": "1"} for side in ("limits", "requests")}
        change = {"spec": {"containers": [{"name": "main", "resources": more}]}}
        client.run("patch", "pod", "waits", "--subresource", "resize", "-p", json.dumps(change))
        taken = TAKES.replace("time.sleep(60)", "print(len(taken))")
        does = lambda: "209715200" in run_in(ready, "waits", taken)  # noqa: E731
        await_true(does, "it has not been given more memory")
        less = {side: {"memory": "1Mi", "cpu": "1"} for side in ("limits", "requests")}
        change = {"spec": {"containers": [{"name": "main", "resources": less}]}}
        client.run("patch", "pod", "waits", "--subresource", "resize", "-p", json.dumps(change))
        says = "jsonpath={.status.conditions[?(@.type=='PodResizeInProgress')].message}"
        refused = 'attempting to set container "main" memory limit (1048576) below current usage ('
        await_true(lambda: refused in client.run("get", "pod", "waits", "-o", says), "it is given too little memory")
        assert groups_of(ready)
    assert not groups_of(ready), "they are removed at the end"


def run_in(ready: dict[str, Any], name: str, code: str) -> str:
    words = ["kubectl", "--kubeconfig", ready["kubeconfig"], "exec", name, "--", sys.executable, "-S", "-c", code]
    return subprocess.run(words, capture_output=True, text=True, timeout=60).stdout


@needs_groups
def test_groups_of_a_killed_cluster_are_removed_with_what_it_left(tmp_path: Path) -> None:
    with cluster(options(tmp_path)) as ready:
        client = Client(ready["kubeconfig"])
        client.apply(pod("waits", WAITS, limits={"memory": "64Mi"}))
        client.run("wait", "--for=condition=Ready", "pod/waits", "--timeout", "60s")
        assert groups_of(ready)
        os.kill(ready["pid"], signal.SIGKILL)
        folder = str(Path(ready["kubeconfig"]).parents[1])
        env = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
        clear = [sys.executable, "-m", "mews.harness.cli", "down"]

        def cleared() -> bool:
            subprocess.run(clear, env=env, capture_output=True, timeout=60)
            return not groups_of(ready)

        await_true(cleared, "a group is left")
