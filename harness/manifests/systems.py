"""The systems under test as manifests: what each declares in its ``system.py``, written down for Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mews.harness.manifests import replacements
from mews.harness.manifests.nodes import (
    FOLDER_MOUNTS,
    FOLDERS,
    HOST_MOUNT,
    HOST_VOLUME,
    NODE_AGENT,
    RECORDS_FILE,
    agent,
    agent_pod,
    host,
    node_folder_mounts,
    node_folder_volumes,
    node_name_env,
    node_volumes,
)
from mews.harness.manifests.parts import (
    CA_FILE,
    PASSWORD,
    RUN,
    RUN_MOUNT,
    Object,
    config_map,
    config_volume,
    container_name,
    kept,
    metadata,
    token_env,
    volume_file,
)
from mews.harness.manifests.rights import rights
from mews.harness.manifests.services import SERVICES_TLS, TLS_FOLDER, service_host
from mews.harness.manifests.spec import InstalledSystem, StackSpec, deployment_of
from mews.harness.manifests.workloads import daemon_set, deployment
from mews.kube.metrics_options import METRICS_ALLOW_HOST, METRICS_HOST
from mews.kube.system.deployment import AUTHORITY, CERTIFICATE, CONFIG, KEY, RECORDS, SERVICE_HOST, ComponentDeployment
from mews.yaml_text import written_yaml


def configuration(spec: StackSpec, installed: InstalledSystem) -> Object:
    """Return the file that a system's components read."""
    declared = installed.deployment
    text = written_yaml(dict(installed.document))
    return config_map(declared.config_map, declared.owner, spec.namespace, {declared.config_file: text})


def kinds(installed: InstalledSystem) -> list[Object]:
    """Return the definitions of a system's kinds."""
    return [
        {**kind, "metadata": metadata(kind["metadata"]["name"], installed.deployment.owner)}
        for kind in installed.system.kinds()
    ]


def software(spec: StackSpec, installed: InstalledSystem, name: str) -> list[Object]:
    """Return a component's account, and what runs: ours, or the user's; nothing where a manifest of the user's has
    it."""
    component = installed.components[name]
    declared = deployment_of(component)
    if installed.pooled is not None and installed.pooled.unannounced:
        declared = replace(declared, everywhere=(*declared.everywhere, *declared.where_lent))
    if any(node.remedied for node in spec.facility.nodes):
        declared = replace(declared, everywhere=(*declared.everywhere, *declared.where_remedied))
    made = rights(name, declared, spec.namespace, spec.prefix)
    if component.per_node:
        return [*made, *_on_nodes(spec, installed, name)]
    if name in spec.documents:
        return made
    program = spec.programs.get(name)
    if program is not None:
        return [*made, *replacements.deployed(spec, name, program)]
    return [*made, deployment(spec, name, _pod(spec, installed, name))]


def _on_nodes(spec: StackSpec, installed: InstalledSystem, name: str) -> list[Object]:
    """Ours on each node, or the user's, of which each node has a DaemonSet of its own. Where the user's is in the place
    of the component that has the nodes' agent beside it, the agent has a pod of its own, and so it has on nodes on
    which that component is not."""
    has_agent, nodes = name == spec.node_component(), spec.nodes_of(name)
    replaced = spec.is_replaced(name)
    alone = [*(nodes if replaced else ()), *spec.nodes_apart()] if has_agent else []
    made = [daemon_set(spec, NODE_AGENT, NODE_AGENT, agent_pod(spec), nodes=alone)] if alone else []
    if not replaced:
        pod = _pod_with_agent(spec, installed, name) if has_agent else _pod(spec, installed, name)
        return [daemon_set(spec, name, name, pod, nodes=nodes), *made]
    program = spec.programs.get(name)
    return [*made, *(replacements.deployed(spec, name, program) if program is not None else ())]


def _pod(spec: StackSpec, installed: InstalledSystem, name: str) -> Object:
    declared = deployment_of(installed.components[name])
    volumes = [*(FOLDERS if declared.kubelet_folders else ()), *([HOST_VOLUME] if declared.host_files else ())]
    if _serves_tls(spec, declared):
        volumes.append({"name": "service-tls", "secret": {"secretName": SERVICES_TLS, "defaultMode": 0o444}})
    return {
        "serviceAccountName": name,
        "containers": [_container(spec, installed, name)],
        "volumes": [
            config_volume(installed.deployment.config_map),
            RUN,
            *volumes,
            *node_folder_volumes(declared.node_folders),
            *replacements.trust_volumes(spec),
        ],
    }


def _pod_with_agent(spec: StackSpec, installed: InstalledSystem, name: str) -> Object:
    declared = deployment_of(installed.components[name])
    return {
        "serviceAccountName": name,
        "containers": [_container(spec, installed, name, records=RECORDS_FILE), agent(spec), host(spec)],
        "volumes": [
            config_volume(installed.deployment.config_map),
            *node_volumes(spec),
            *node_folder_volumes(declared.node_folders),
            *replacements.trust_volumes(spec),
        ],
    }


def _container(spec: StackSpec, installed: InstalledSystem, name: str, *, records: str = "-") -> Object:
    """``records``: where its structured log records go, "-" for the pod's log."""
    component = installed.components[name]
    declared = deployment_of(component)
    filling = {CONFIG: installed.deployment.config_path, RECORDS: records, **_service_words(spec, component.service)}
    argv = [_filled(word, filling) for word in declared.argv]
    if METRICS_HOST in argv:  # serves them by ``mews.kube.metrics_options``
        argv += [word for host_name in spec.allow_hosts for word in (METRICS_ALLOW_HOST, host_name)]
    made: Object = {
        "name": container_name(name),
        "image": spec.image,
        "imagePullPolicy": spec.pull,
        "command": kept(argv),
        **({"env": [token_env(PASSWORD)]} if declared.chassis and replacements.wants_password(spec) else {}),
        **({"ports": [_metrics(declared.metrics_port)]} if declared.metrics_port is not None else {}),
        **(_serving(declared.service_port) if declared.service_port is not None else {}),
        "securityContext": dict(declared.security),
        "volumeMounts": [
            volume_file("config", installed.deployment.config_folder),
            RUN_MOUNT,
            *replacements.trust_mounts(spec),
        ],
    }
    if component.per_node:
        made["env"] = [*made.get("env", ()), node_name_env()]
    if declared.kubelet_folders:
        made["volumeMounts"] += FOLDER_MOUNTS
    if declared.host_files:
        made["volumeMounts"].append(HOST_MOUNT)
    made["volumeMounts"] += node_folder_mounts(declared.node_folders)
    if _serves_tls(spec, declared):
        made["volumeMounts"].append(volume_file("service-tls", TLS_FOLDER))
    return made


def _serves_tls(spec: StackSpec, declared: ComponentDeployment) -> bool:
    return declared.service_port is not None and spec.service_certificate is not None


def _service_words(spec: StackSpec, service: str) -> Mapping[str, str]:
    files = {CERTIFICATE: f"{TLS_FOLDER}/tls.crt", KEY: f"{TLS_FOLDER}/tls.key", AUTHORITY: f"{TLS_FOLDER}/{CA_FILE}"}
    return {SERVICE_HOST: service_host(spec.namespace, service), **files} if service else {}


def _serving(port: int) -> Object:
    probe = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    return {"ports": [{"name": "service", "containerPort": port}], "readinessProbe": probe}


def _metrics(port: int) -> Mapping[str, Any]:
    return {"name": "metrics", "containerPort": port}


def _filled(word: str, filling: Mapping[str, str]) -> str:
    for name, text in filling.items():
        word = word.replace(name, text)
    return word
