"""Manifests, and the files in the folder where kubectl runs."""

from __future__ import annotations

from typing import Any

from tests.differential.areas.bodies import template

CONFIGMAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\n  labels: {prune: me}\ndata:\n  a: one\n"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: c
        image: nginx:1
        ports: [{containerPort: 80}]
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web-service}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 80}]}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: applied, labels: {app: y}}
spec:
  restartPolicy: Never
  containers: [{name: c, image: "busybox:1"}]
"""
_KUSTOMIZATION = """\
resources: [base.yaml]
namePrefix: k-
labels: [{pairs: {kustomized: "yes"}}]
configMapGenerator:
- name: generated
  literals: [a=1]
"""


def _revision(number: int, image: str) -> dict[str, Any]:
    """A replica set of the deployment ``hist``, as the controller would leave it (its owner is nobody's uid, which
    kubectl does not look at for a history by selector)."""
    pods = template(containers=[{"name": "c", "image": image}])
    return {
        "metadata": {
            "name": f"hist-{number}",
            "labels": {"app": "x"},
            "annotations": {"deployment.kubernetes.io/revision": str(number), "kubernetes.io/change-cause": image},
        },
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": pods},
    }


REVISIONS = (_revision(1, "busybox:0"), _revision(2, "busybox:1"))

FILES = {
    "files/a.txt": "hello\n",
    "files/cm.yaml": CONFIGMAP.replace("name: applied", "name: pruned"),
    "files/changed.yaml": CONFIGMAP.replace("name: applied", "name: cm"),
    "files/base.yaml": CONFIGMAP.replace("name: applied", "name: base"),
    "files/kustomization.yaml": _KUSTOMIZATION,
    "editor.sh": "#!/bin/sh\nsed -i 's/a: .*/a: edited/' \"$1\"\n",
    "breaker.sh": "#!/bin/sh\nsed -i 's/restartPolicy: .*/restartPolicy: Never/' \"$1\"\n",
}
"""Path -> text."""
