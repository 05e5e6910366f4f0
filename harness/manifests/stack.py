"""The stack as manifests, for a cluster run by Mews and for users who deploy by kubectl or GitOps alike."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from mews.harness.manifests import operator
from mews.harness.manifests.parts import (
    AGENT_PORT,
    CHASSIS_PORT,
    COMPONENT,
    CONFIG,
    CONTROL_PORT,
    HARDWARE,
    ON_NODE,
    ROOTLESS,
    RUN,
    RUN_MOUNT,
    TOKEN_SECRET,
    Object,
    kept,
    labels,
    metadata,
    token_env,
    volume_file,
)
from mews.harness.manifests.rights import rights
from mews.kube.kod2.config import OperatorConfig

_KUBELET = "/var/lib/kubelet"
_CONFIG_FILE = "/etc/kubecomp/config.yaml"
HOST_ROOT = "/var/lib/mews/host"
"""On the nodes: what their hosts show, and the NVML that containers with a device get."""
NVML = f"{HOST_ROOT}/this"
_EVERYWHERE = [{"operator": "Exists"}]
_PASSWORD = "MEWS_REDFISH_PASSWORD"
_RECORDS = "/run/mews/records.jsonl"


@dataclass(frozen=True, slots=True)
class StackSpec:
    """What is deployed.

    ``hardware`` is the inventory as a document, ``chassis`` the names of its chassis in their order; ``config`` is
    KubeComp's as a document; ``nodes`` are the nodes that get a DevMgr; ``parts`` says which components run.
    ``pull`` is the image's pull policy; ``prefix`` that of cluster-wide names. ``tidy``: the nodes' files go with the
    stack.
    """

    namespace: str
    image: str
    hardware: Mapping[str, Any]
    chassis: Sequence[str]
    config: Mapping[str, Any]
    nodes: Sequence[str]
    token: str
    parts: frozenset[str]
    pull: str = "IfNotPresent"
    prefix: str = "kubecomp-"
    speed: float = 1.0
    seed: int | str = 0
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Node -> host of the hardware."""
    tidy: bool = False
    operator: OperatorConfig | None = None
    """The elastic operator's configuration, where it runs."""


def endpoint(namespace: str, number: int) -> str:
    """Where the chassis of that place in the inventory answers the components of the namespace."""
    return f"http://chassis.{namespace}.svc:{CHASSIS_PORT + number}"


def manifests(spec: StackSpec) -> list[Object]:
    """All objects, in the order in which they can be applied."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(spec.namespace, "namespace")}
    made: list[Object] = [namespace, _token(spec), _hardware(spec), _config(spec)]
    made += [_chassis_service(spec), _deployment(spec, "chassis", _chassis_pod(spec))]
    for component in ("scheduler", "reconfig-manager"):
        if component in spec.parts:
            made += rights(component, spec.namespace, spec.prefix)
            made.append(_deployment(spec, component, _kubecomp_pod(spec, component)))
    if "device-manager" in spec.parts:
        made += rights("device-manager", spec.namespace, spec.prefix)
        made.append(_device_managers(spec))
    if spec.operator is not None:
        made += [operator.definition(), operator.configuration(spec.operator, spec.namespace)]
        made += rights("operator", spec.namespace, spec.prefix)
        made.append(_deployment(spec, "operator", operator.pod(spec.image, spec.pull)))
    return made


def as_yaml(objects: Sequence[Object]) -> str:
    """The objects as one stream of YAML documents."""
    return yaml.safe_dump_all(objects, sort_keys=False, default_flow_style=False, width=120)


def _token(spec: StackSpec) -> Object:
    data = {"token": base64.b64encode(spec.token.encode()).decode()}
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(TOKEN_SECRET, "chassis", spec.namespace)}
    return {**made, "type": "Opaque", "data": data}


def _config_map(spec: StackSpec, name: str, component: str, file: str, text: str) -> Object:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(name, component, spec.namespace)}
    return {**made, "data": {file: text}}


def _hardware(spec: StackSpec) -> Object:
    text = yaml.safe_dump(dict(spec.hardware), sort_keys=False, width=120)
    return _config_map(spec, HARDWARE, "chassis", "hardware.yaml", text)


def _config(spec: StackSpec) -> Object:
    text = yaml.safe_dump(dict(spec.config), sort_keys=False, width=120)
    return _config_map(spec, CONFIG, "kubecomp", "config.yaml", text)


def _chassis_service(spec: StackSpec) -> Object:
    ports = [
        {"name": f"chassis-{number}", "port": CHASSIS_PORT + number, "targetPort": CHASSIS_PORT + number}
        for number in range(len(spec.chassis))
    ]
    ports.append({"name": "control", "port": CONTROL_PORT, "targetPort": CONTROL_PORT})
    made = {"apiVersion": "v1", "kind": "Service", "metadata": metadata("chassis", "chassis", spec.namespace)}
    return {**made, "spec": {"selector": {COMPONENT: "chassis"}, "ports": ports}}


def _chassis_pod(spec: StackSpec) -> Object:
    argv = ["-m", "mews.emulator.serve", "--hardware", "/etc/mews/hardware.yaml", "--state", "/var/lib/mews/table"]
    argv += ["--listen", f"0.0.0.0:{CHASSIS_PORT}", "--consecutive", "--control", f"0.0.0.0:{CONTROL_PORT}"]
    argv += ["--speed", f"{spec.speed:g}", "--seed", str(spec.seed)]
    container = {
        "name": "chassis",
        "image": spec.image,
        "imagePullPolicy": spec.pull,
        "command": kept(argv),
        "env": [token_env(), token_env(_PASSWORD)],
        "ports": [{"containerPort": CHASSIS_PORT}, {"containerPort": CONTROL_PORT}],
        "readinessProbe": {"tcpSocket": {"port": CONTROL_PORT}, "periodSeconds": 1},
        "securityContext": dict(ROOTLESS),
        "volumeMounts": [
            volume_file("hardware", "/etc/mews"),
            {"name": "table", "mountPath": "/var/lib/mews"},
            RUN_MOUNT,
        ],
    }
    volumes = [{"name": "hardware", "configMap": {"name": HARDWARE}}, {"name": "table", "emptyDir": {}}, RUN]
    # Its server dies and comes back without a change of address: what waits for it finds it again.
    return {"containers": [container], "volumes": volumes, "automountServiceAccountToken": False}


def _kubecomp_argv(component: str) -> list[str]:
    records = _RECORDS if component == "device-manager" else "-"  # a file for the agent beside it, else the pod's log
    return ["-m", "mews.kube.kubecomp", component, "--config", _CONFIG_FILE, "--records", records]


def _kubecomp_container(spec: StackSpec, component: str) -> Object:
    return {
        "name": component,
        "image": spec.image,
        "imagePullPolicy": spec.pull,
        "command": kept(_kubecomp_argv(component)),
        **({"env": [token_env(_PASSWORD)]} if _wants_password(spec) else {}),
        "securityContext": dict(ROOTLESS),
        "volumeMounts": [volume_file("config", "/etc/kubecomp"), RUN_MOUNT],
    }


def _wants_password(spec: StackSpec) -> bool:
    return any(entry.get("dialect") == "redfish" for entry in spec.config["chassis"])


_CONFIG_VOLUME = {"name": "config", "configMap": {"name": CONFIG}}


def _kubecomp_pod(spec: StackSpec, component: str) -> Object:
    return {
        "serviceAccountName": component,
        "containers": [_kubecomp_container(spec, component)],
        "volumes": [_CONFIG_VOLUME, RUN],
    }


def _deployment(spec: StackSpec, component: str, pod: Object) -> Object:
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(component, component, spec.namespace)}
    steered = {
        **pod,
        "terminationGracePeriodSeconds": 2,
        # Beside the API server where it lets them: the workers are the hosts' own.
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
        "affinity": {"nodeAffinity": _prefer_control_plane()},
    }
    body = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {COMPONENT: component}},
        "template": {"metadata": _template_metadata(spec, component), "spec": steered},
    }
    return {**made, "spec": body}


def _prefer_control_plane() -> Object:
    there = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}
    term = {"weight": 100, "preference": {"matchExpressions": [there]}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [term]}


def _template_metadata(spec: StackSpec, component: str) -> Object:
    """A pod's labels, and a hash of what it reads: it is made anew when that changed."""
    read: list[Any] = [spec.token]
    if component in ("chassis", "device-manager"):
        read.append(spec.hardware)
    if component == "operator":
        read.append(spec.operator)
    elif component != "chassis":
        read.append(spec.config)
    digest = hashlib.sha256(json.dumps(read, sort_keys=True, default=str).encode()).hexdigest()[:12]
    return {"labels": labels(component), "annotations": {"mews.dev/reads": digest}}


def _device_managers(spec: StackSpec) -> Object:
    component = "device-manager"
    paths = {name: f"{_KUBELET}/{name}" for name in ("device-plugins", "pod-resources")}
    folders = [{"name": name, "hostPath": {"path": path, "type": "Directory"}} for name, path in paths.items()]
    mounts: list[Object] = [{"name": name, "mountPath": path} for name, path in paths.items()]
    container = _kubecomp_container(spec, component)
    node = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    container["env"] = [*container.get("env", ()), node]
    container["securityContext"] = dict(ON_NODE)
    container["volumeMounts"] += mounts
    on_these = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(spec.nodes)}
    pod = {
        "serviceAccountName": component,
        "terminationGracePeriodSeconds": 10,
        "tolerations": list(_EVERYWHERE),
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [on_these]}]
                }
            }
        },
        "containers": [container, _agent(spec, mounts), _host(spec)],
        "volumes": [
            _CONFIG_VOLUME,
            RUN,
            *folders,
            {"name": "hardware", "configMap": {"name": HARDWARE}},
            {"name": "host", "hostPath": {"path": HOST_ROOT, "type": "DirectoryOrCreate"}},
        ],
    }
    made = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata(component, component, spec.namespace)}
    body = {
        "selector": {"matchLabels": {COMPONENT: component}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
        "template": {"metadata": _template_metadata(spec, component), "spec": pod},
    }
    return {**made, "spec": body}


def _agent(spec: StackSpec, mounts: Sequence[Object]) -> Object:
    """Tells a harness what the node's kubelet does; may read the kubelet's folders only."""
    argv = ["-m", "mews.harness.clusters.real.agent", "--device-plugins", f"{_KUBELET}/device-plugins"]
    argv += ["--pod-resources", f"{_KUBELET}/pod-resources", "--records", _RECORDS, "--port", str(AGENT_PORT)]
    return {
        "name": "agent",
        "image": spec.image,
        "imagePullPolicy": spec.pull,
        "command": ["python3", *argv],
        "env": [token_env()],
        "ports": [{"name": "agent", "containerPort": AGENT_PORT}],
        "readinessProbe": {"tcpSocket": {"port": AGENT_PORT}, "periodSeconds": 1},
        "securityContext": dict(ON_NODE),
        "volumeMounts": [{**mount, "readOnly": True} for mount in mounts] + [{**RUN_MOUNT, "readOnly": True}],
    }


def _host(spec: StackSpec) -> Object:
    """Shows the node's devices to whoever looks: files and NVML below a folder of the node's own."""
    control = f"http://chassis.{spec.namespace}.svc:{CONTROL_PORT}"
    argv = ["-m", "mews.harness.clusters.real.host", "--hardware", "/etc/mews/hardware.yaml", "--root", HOST_ROOT]
    argv += ["--hosts", json.dumps(dict(spec.hosts)), "--chassis", control]
    argv += ["--speed", f"{spec.speed:g}", "--seed", str(spec.seed), *(["--tidy"] if spec.tidy else [])]
    return {
        "name": "host",
        "image": spec.image,
        "imagePullPolicy": spec.pull,
        "command": ["python3", *argv],
        "env": [token_env(), {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "securityContext": dict(ON_NODE),
        "volumeMounts": [
            volume_file("hardware", "/etc/mews"),
            {"name": "host", "mountPath": HOST_ROOT},
            RUN_MOUNT,
        ],
    }
