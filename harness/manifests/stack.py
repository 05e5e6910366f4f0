"""The stack as manifests, for a cluster run by Mews and for users who deploy by kubectl or GitOps alike."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from mews.harness.manifests import operator, replacements
from mews.harness.manifests.replacements import ReplacementProgram
from mews.harness.manifests.parts import (
    AGENT_PORT,
    CHASSIS_PORT,
    COMPONENT,
    CONFIG,
    CONFIG_FILE,
    CONFIG_VOLUME,
    CONTROL_PLANE,
    CONTROL_PORT,
    HARDWARE,
    HOST_ROOT,
    KUBELET,
    ON_NODE,
    PASSWORD,
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
from mews.harness.manifests.rights import rights, scheduler_rights
from mews.systems.kod2.config import OperatorConfig

NODE_AGENT = "node-agent"
"""Component of what tells of a node and shows its devices, where the device manager is the user's."""
SET = "mews.dev/set"
"""Label: which of a component's several DaemonSets."""
NVML = f"{HOST_ROOT}/this"
_EVERYWHERE = [{"operator": "Exists"}]
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
    programs: Mapping[str, ReplacementProgram] = field(default_factory=dict)
    """Component -> the user's program in its place."""
    documents: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    """Component -> the objects that the user brings instead, as written (``replacements.manifest_objects``)."""
    extenders: Sequence[ReplacementProgram | None] = ()
    """Those of the default scheduler; None for one that runs already."""
    named: str = "kubecomp"
    """What the scenario calls the namespace."""


def endpoint(namespace: str, number: int) -> str:
    """Where the chassis of that place in the inventory answers the components of the namespace."""
    return f"http://chassis.{namespace}.svc:{CHASSIS_PORT + number}"


def manifests(spec: StackSpec) -> list[Object]:
    """All objects, in the order in which they can be applied; but for those that the user brings as such."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(spec.namespace, "namespace")}
    made: list[Object] = [namespace, _token(spec), _hardware(spec), _config(spec)]
    if spec.programs or spec.documents or spec.extenders:
        made.append(replacements.access(spec))
    made += [_chassis_service(spec), _deployment(spec, "chassis", _chassis_pod(spec))]
    for component in ("scheduler", "reconfig-manager"):
        if component in spec.parts:
            made += rights(component, spec.namespace, spec.prefix)
            made += _software(spec, component)
    if "device-manager" in spec.parts:
        made += rights("device-manager", spec.namespace, spec.prefix)
        made += _on_nodes(spec)
    made += _beside_the_scheduler(spec)
    if spec.operator is not None:
        made += [operator.definition(), operator.configuration(spec.operator, spec.namespace)]
        made += rights("operator", spec.namespace, spec.prefix)
        made.append(_deployment(spec, "operator", operator.pod(spec.image, spec.pull)))
    return made


def _software(spec: StackSpec, component: str) -> list[Object]:
    """Its Deployment: ours, or the user's; none where a manifest of the user's has it."""
    if component in spec.documents:
        return []
    program = spec.programs.get(component)
    if program is None:
        return [_deployment(spec, component, _kubecomp_pod(spec, component))]
    deployment = _deployment(spec, component, replacements.pod(spec, component, program), program)
    return [*replacements.files_of(spec, component, program), deployment]


def _on_nodes(spec: StackSpec) -> list[Object]:
    """Our device managers, or what tells of the nodes beside the user's, one DaemonSet of which each node has."""
    program, component = spec.programs.get("device-manager"), "device-manager"
    if program is None and component not in spec.documents:
        return [_device_managers(spec)]
    made = [_node_agents(spec)]
    if program is not None:
        made += replacements.files_of(spec, component, program)
        for node in spec.nodes:
            pod = replacements.pod(spec, component, program, node)
            made.append(_daemon_set(spec, f"{component}-{node}", component, pod, nodes=[node], program=program))
    return made


def _beside_the_scheduler(spec: StackSpec) -> list[Object]:
    """What takes kube-scheduler's place, and what it asks."""
    made: list[Object] = []
    if "default-scheduler" in {*spec.programs, *spec.documents}:
        made += scheduler_rights("default-scheduler", spec.namespace, spec.prefix)
        made += _software(spec, "default-scheduler") if "default-scheduler" in spec.programs else []
    if any(program is not None for program in spec.extenders):
        made += rights("extender", spec.namespace, spec.prefix)
    for number, extender in enumerate(spec.extenders):
        if extender is not None:
            name = replacements.extender_name(number)
            made += replacements.files_of(spec, name, extender)
            made.append(_deployment(spec, name, replacements.pod(spec, name, extender), extender))
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
        "env": [token_env(), token_env(PASSWORD)],
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
    return ["-m", "mews.systems.kubecomp", component, "--config", CONFIG_FILE, "--records", records]


def _kubecomp_container(spec: StackSpec, component: str) -> Object:
    return {
        "name": component,
        "image": spec.image,
        "imagePullPolicy": spec.pull,
        "command": kept(_kubecomp_argv(component)),
        **({"env": [token_env(PASSWORD)]} if _wants_password(spec) else {}),
        "securityContext": dict(ROOTLESS),
        "volumeMounts": [volume_file("config", "/etc/kubecomp"), RUN_MOUNT],
    }


def _wants_password(spec: StackSpec) -> bool:
    return any(entry.get("dialect") == "redfish" for entry in spec.config["chassis"])


def _kubecomp_pod(spec: StackSpec, component: str) -> Object:
    return {
        "serviceAccountName": component,
        "containers": [_kubecomp_container(spec, component)],
        "volumes": [dict(CONFIG_VOLUME), RUN],
    }


def _deployment(spec: StackSpec, component: str, pod: Object, program: ReplacementProgram | None = None) -> Object:
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(component, component, spec.namespace)}
    steered = {
        **pod,
        "terminationGracePeriodSeconds": 2,
        # Beside the API server where it lets them: the workers are the hosts' own.
        "tolerations": [{"key": CONTROL_PLANE, "operator": "Exists"}],
        "affinity": {"nodeAffinity": _prefer_control_plane()},
    }
    body = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {COMPONENT: component}},
        "template": {"metadata": _template_metadata(spec, component, program), "spec": steered},
    }
    return {**made, "spec": body}


def _prefer_control_plane() -> Object:
    there = {"key": CONTROL_PLANE, "operator": "Exists"}
    term = {"weight": 100, "preference": {"matchExpressions": [there]}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [term]}


def _template_metadata(spec: StackSpec, component: str, program: ReplacementProgram | None) -> Object:
    """A pod's labels, and a hash of what it reads: it is made anew when that changed."""
    read: list[Any] = [spec.token]
    if component in ("chassis", "device-manager", NODE_AGENT):
        read.append(spec.hardware)
    if component == "operator":
        read.append(spec.operator)
    elif component not in ("chassis", NODE_AGENT):
        read.append(spec.config)
    if program is not None:
        read.append(replacements.inputs_of(program))
    digest = hashlib.sha256(json.dumps(read, sort_keys=True, default=str).encode()).hexdigest()[:12]
    return {"labels": labels(component), "annotations": {"mews.dev/reads": digest}}


_PATHS = {name: f"{KUBELET}/{name}" for name in ("device-plugins", "pod-resources")}
_FOLDERS = [{"name": name, "hostPath": {"path": path, "type": "Directory"}} for name, path in _PATHS.items()]
_MOUNTS: list[Object] = [{"name": name, "mountPath": path} for name, path in _PATHS.items()]


def _device_managers(spec: StackSpec) -> Object:
    component = "device-manager"
    container = _kubecomp_container(spec, component)
    node = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    container["env"] = [*container.get("env", ()), node]
    container["securityContext"] = dict(ON_NODE)
    container["volumeMounts"] += _MOUNTS
    pod = {
        "serviceAccountName": component,
        "containers": [container, _agent(spec), _host(spec)],
        "volumes": [dict(CONFIG_VOLUME), *_node_volumes()],
    }
    return _daemon_set(spec, component, component, pod, nodes=spec.nodes)


def _node_agents(spec: StackSpec) -> Object:
    pod = {
        "automountServiceAccountToken": False,
        "containers": [_agent(spec), _host(spec)],
        "volumes": _node_volumes(),
    }
    return _daemon_set(spec, NODE_AGENT, NODE_AGENT, pod, nodes=spec.nodes)


def _node_volumes() -> list[Object]:
    return [
        RUN,
        *_FOLDERS,
        {"name": "hardware", "configMap": {"name": HARDWARE}},
        {"name": "host", "hostPath": {"path": HOST_ROOT, "type": "DirectoryOrCreate"}},
    ]


def _daemon_set(
    spec: StackSpec, name: str, component: str, pod: Object, *, nodes: Sequence[str], program: ReplacementProgram | None = None
) -> Object:
    """One pod on each of those nodes; the name tells it from others of the component."""
    told = {} if name == component else {SET: name}
    meta = _template_metadata(spec, component, program)
    there = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}
    needed = {"nodeSelectorTerms": [{"matchExpressions": [there]}]}
    steered = {
        **pod,
        "terminationGracePeriodSeconds": 10,
        "tolerations": list(_EVERYWHERE),
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": needed}},
    }
    made = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata(name, component, spec.namespace)}
    body = {
        "selector": {"matchLabels": {COMPONENT: component, **told}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
        "template": {"metadata": {**meta, "labels": {**meta["labels"], **told}}, "spec": steered},
    }
    return {**made, "spec": body}


def _agent(spec: StackSpec) -> Object:
    """Tells a harness what the node's kubelet does; may read the kubelet's folders only."""
    argv = ["-m", "mews.harness.clusters.real.agent", "--device-plugins", f"{KUBELET}/device-plugins"]
    argv += ["--pod-resources", f"{KUBELET}/pod-resources", "--records", _RECORDS, "--port", str(AGENT_PORT)]
    return {
        "name": "agent",
        "image": spec.image,
        "imagePullPolicy": spec.pull,
        "command": ["python3", *argv],
        "env": [token_env()],
        "ports": [{"name": "agent", "containerPort": AGENT_PORT}],
        "readinessProbe": {"tcpSocket": {"port": AGENT_PORT}, "periodSeconds": 1},
        "securityContext": dict(ON_NODE),
        "volumeMounts": [{**mount, "readOnly": True} for mount in _MOUNTS] + [{**RUN_MOUNT, "readOnly": True}],
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
