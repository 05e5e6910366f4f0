"""Run by ``mews envtest``: makes pods with claims, and prints what has become of them as JSON."""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

READY = json.loads(Path(os.environ["MEWS_READY"]).read_text())
TOKEN = json.loads(Path(os.environ["KUBECONFIG"]).read_text())["users"][0]["user"]["token"]
CONTEXT = ssl.create_default_context(cafile=READY["ca"])
PODS, CLAIMS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/persistentvolumeclaims"
STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def call(method: str, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(READY["api"] + path, data, headers, method=method)
    with urllib.request.urlopen(request, context=CONTEXT) as answer:
        return json.load(answer)


def pod(*claims: str) -> dict[str, Any]:
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    mounts = [{"name": claim, "mountPath": f"/{claim}"} for claim in claims]
    return {"containers": [{"name": "c", "image": "somebody/database", "volumeMounts": mounts}], "volumes": volumes}


def until(holds: Any) -> None:
    end_s = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < end_s, call("GET", PODS)
        time.sleep(0.2)


def found(name: str) -> Any:
    return call("GET", f"{PODS}/{name}")


def phase(name: str) -> str:
    try:
        return str(found(name)["status"]["phase"])
    except urllib.error.HTTPError:
        return ""


def refusal(name: str) -> str:
    conditions = found(name)["status"].get("conditions") or []
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")


template = pod()
template["containers"][0]["volumeMounts"] = [{"name": "d", "mountPath": "/d"}]
spec = {
    "serviceName": "db",
    "replicas": 2,
    "selector": {"matchLabels": {"app": "db"}},
    "template": {"metadata": {"labels": {"app": "db"}}, "spec": template},
    "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": STORAGE}],
}
until(lambda: call("GET", "/api/v1/namespaces/default/serviceaccounts")["items"])
call("POST", "/apis/apps/v1/namespaces/default/statefulsets", {"metadata": {"name": "db"}, "spec": spec})
call("POST", PODS, {"metadata": {"name": "lost"}, "spec": pod("nowhere")})
call("POST", CLAIMS, {"metadata": {"name": "none"}, "spec": {**STORAGE, "storageClassName": "nowhere"}})
call("POST", PODS, {"metadata": {"name": "unbound"}, "spec": pod("none")})
until(lambda: phase("db-1") == "Running" and refusal("lost") and refusal("unbound"))
volumes = Path(os.environ["MEWS_READY"]).parent / "volumes"
made = sorted(path.name.partition("_")[2] for path in volumes.glob("*/*"))
sys.stdout.write(json.dumps({"folders": made, "refused": {name: refusal(name) for name in ("lost", "unbound")}}))
