"""Pieces that several manifests share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Object = dict[str, Any]

PART = "app.kubernetes.io/part-of"
COMPONENT = "app.kubernetes.io/component"
MANAGED = "app.kubernetes.io/managed-by"
"""Labels of all that Mews puts into a cluster."""

SERVICE = "mews.dev/service"
"""Label of the pods that answer for a service."""

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
"""Label and taint of its nodes."""

TOKEN_SECRET = "mews-control"
HARDWARE = "mews-hardware"
TLS_SECRET = "mews-chassis-tls"
TRUST, CA_FILE, TRUST_FOLDER = "mews-chassis-ca", "ca.crt", "/etc/mews-ca"
"""The certificates to trust when the chassis speak TLS: ConfigMap, its key, and where containers find it."""
KUBELET = "/var/lib/kubelet"
HOST_ROOT = "/var/lib/mews/host"
"""On the nodes: what their hosts show, and the NVML that containers with a device get."""
PASSWORD = "MEWS_REDFISH_PASSWORD"
CHASSIS_PORT = 8000
"""Of the first chassis; each further one listens one port above."""
CONTROL_PORT = 7999
AGENT_PORT = 7998
HOST_PORT = 7997
"""The back door of what shows a node's host."""


def labels(component: str) -> Object:
    """Labels of one component's objects."""
    return {PART: "mews", MANAGED: "mews", COMPONENT: component}


def metadata(name: str, component: str, namespace: str | None = None, **annotations: str) -> Object:
    """Return an object's metadata; ``namespace`` None for what has none."""
    made: Object = {"name": name, "labels": labels(component)}
    if namespace is not None:
        made["namespace"] = namespace
    if annotations:
        made["annotations"] = annotations
    return made


def config_map(name: str, component: str, namespace: str, data: Mapping[str, str]) -> Object:
    """Return a ConfigMap of files."""
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name, component, namespace)}
    return {**made, "data": dict(data)}


def config_volume(config: str, name: str = "config") -> Object:
    """Return a volume of that ConfigMap."""
    return {"name": name, "configMap": {"name": config}}


def container_name(component: str) -> str:
    """Return that of a component's container: a DNS label, which the name of a component in a stack need not be."""
    return component.replace(".", "-")


def kept(argv: Sequence[str]) -> list[str]:
    """Return a component's command, under the keeper through which a harness kills it."""
    return ["python3", "-m", "mews.harness.clusters.real.supervisor", "python3", *argv]


_KEEPER = "/opt/mews/lib/mews/harness/clusters/real/supervisor.py"


def kept_program(argv: Sequence[str]) -> list[str]:
    """Return the same for a program of the user's: neither its folder nor its environment changes what the keeper
    is."""
    return ["python3", "-P", _KEEPER, *argv]


def volume_file(name: str, path: str) -> Object:
    """Return a read-only mount."""
    return {"name": name, "mountPath": path, "readOnly": True}


RUN = {"name": "run", "emptyDir": {}}
RUN_MOUNT = {"name": "run", "mountPath": "/run/mews"}


def token_env(name: str = "MEWS_CONTROL_TOKEN") -> Object:
    """Return the token of the back doors, as the Secret has it; also the password of the first Redfish account."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": TOKEN_SECRET, "key": "token"}}}
