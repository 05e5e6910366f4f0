"""Bodies that many cases send."""

from __future__ import annotations

from typing import Any

from tests.differential.model import Sent


def place(area: str) -> str:
    """The path of an area's own namespace in the core group."""
    return f"/api/v1/namespaces/{area}"


def opened(area: str) -> Sent:
    """The first case of an area makes its namespace."""
    return Sent(f"open {area}", "POST", "/api/v1/namespaces", {"metadata": {"name": area}})


def pod(name: str, /, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "busybox:1"}], **spec},
    }


def holding(**resources: Any) -> dict[str, Any]:
    """A pod whose one container has these resources; it is always refused."""
    return pod("x", containers=[{"name": "c", "image": "i", "resources": resources}])


def configmap(name: str, /, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def labelled(obj: dict[str, Any], **labels: str) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def named(name: str, /, **spec: Any) -> dict[str, Any]:
    """An object of any kind with a spec."""
    return {"metadata": {"name": name}, "spec": spec}


def template(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "busybox:1"}], **spec},
    }


def workload(name: str, /, **spec: Any) -> dict[str, Any]:
    """A deployment, replica set or daemon set; the URL tells which."""
    return named(name, **{"selector": {"matchLabels": {"app": "x"}}, "template": template(), **spec})


RICH = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "rich", "labels": {"app": "x"}},
    "spec": {
        "schedulerName": "kubecomp-scheduler",
        "containers": [
            {
                "name": "main",
                "image": "registry.test/a/b",
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                ],
                "ports": [{"containerPort": 80}],
                "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
                "resources": {
                    "limits": {"cpu": "0.5", "memory": "1024Mi", "falcon.com/gpu": 2},
                    "requests": {"cpu": "1e-1"},
                },
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            },
            {"name": "side", "image": "registry.test/c@sha256:" + "0" * 64},
        ],
        "initContainers": [{"name": "init", "image": "i:latest"}],
        "volumes": [{"name": "v"}, {"name": "c", "configMap": {"name": "x"}}],
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        "nodeSelector": {"a": "b"},
    },
}


def event(name: str, /, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "namespace": "tables", "name": "p"},
        "reason": "Tested",
        "message": "hello",
        "type": "Normal",
        "source": {"component": "me", "host": "h"},
        "count": 3,
        **more,
    }
