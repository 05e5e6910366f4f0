"""Programs outside of pods find pods and Services at their addresses: kube-scheduler its extender, and yours."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from mews.kube.emulated.kubelet.mount_namespace import filters_lacking
from tests.harness.test_static_program import Client, await_true
from tests.upstream.up import cluster

pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(bool(filters_lacking()), reason=f"no network of pods: {filters_lacking()}"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH"),
    pytest.mark.skipif(shutil.which("kube-scheduler") is None, reason="kube-scheduler is not on PATH"),
]
ADDRESS = "10.96.7.7"
EXTENDER = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class LastByName(BaseHTTPRequestHandler):
    def do_POST(self):
        names = sorted(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["NodeNames"])
        answer = json.dumps({"NodeNames": names[-1:], "FailedNodes": dict.fromkeys(names[:-1], "not the last")})
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

ThreadingHTTPServer(("0.0.0.0", 8888), LastByName).serve_forever()
"""
ASKS = """
import sys, time, urllib.request
body = b'{"NodeNames": ["a", "b"]}'
while True:
    try:
        answer = urllib.request.urlopen("http://%s:80/filter" % sys.argv[1], body, timeout=2).read().decode()
    except OSError as error:
        answer = repr(error)
    open(sys.argv[2], "w").write(answer)
    time.sleep(0.2)
"""


def scenario(folder: Path) -> Path:
    """An extender at a Service's address, and a program in the place of Reconfig-Mgr that asks there."""
    (folder / "asks.py").write_text(ASKS, encoding="utf-8")
    config = {"urlPrefix": f"http://{ADDRESS}", "filterVerb": "filter", "nodeCacheCapable": True}
    yours = {"process": ["{python}", "asks.py", ADDRESS, str(folder / "answer")]}
    stack = {"extenders": [{"config": config}], "replace": {"kubecomp": {"reconfig-manager": yours}}}
    file = folder / "scenario.yaml"
    head = {"apiVersion": "mews/v1", "kind": "Scenario", "metadata": {"name": "callers"}, "requires": {"time": "wall"}}
    file.write_text(yaml.safe_dump({**head, "hardware": "demo", "stack": stack, "steps": [{"sleep": "1s"}]}))
    return file


def pod(name: str, image: str, **more: Any) -> dict[str, Any]:
    spec = {"schedulerName": "default-scheduler", "containers": [{"name": "main", "image": image}], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("where", ["embedded", "control-plane"])
def test_an_extender_at_a_services_address_is_asked(where: str, tmp_path: Path) -> None:
    (tmp_path / "extender.py").write_text(EXTENDER, encoding="utf-8")
    images = tmp_path / "images.yaml"
    rows = {"case/extender": {"process": ["python3", str(tmp_path / "extender.py")]}, "case/idle": "idle"}
    images.write_text(yaml.safe_dump({"images": rows}))
    spec = {"selector": {"app": "extender"}, "clusterIP": ADDRESS, "ports": [{"port": 80, "targetPort": 8888}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "extender"}, "spec": spec}
    options = ["--cluster", where, "--scenario", str(scenario(tmp_path)), "--images", str(images)]
    with cluster(options) as ready:
        client = Client(ready["kubeconfig"])
        client.apply(service, pod("asks", "case/idle"))
        said = lambda: client.run("get", "events", "-o", "jsonpath={.items[*].message}")  # noqa: E731
        refused = f'Post "http://{ADDRESS}/filter": dial tcp {ADDRESS}:80: connect: connection refused'
        await_true(lambda: refused in said(), "a Service without endpoints does not refuse")
        client.apply(pod("extender", "case/extender", nodeName="host-1"))
        client.run("wait", "--for=condition=Ready", "pod/extender", "--timeout", "60s")
        client.apply(pod("again", "case/idle"))
        client.run("wait", "--for=condition=Ready", "pod/again", "--timeout", "60s")
        assert client.run("get", "pod", "again", "-o", "jsonpath={.spec.nodeName}") == "host-3"
        answer = tmp_path / "answer"
        await_true(lambda: answer.exists() and '"NodeNames": ["b"]' in answer.read_text(), "your program is not led")
