"""Programs of the user's as manifests: in a component's place, or as an extender of the default scheduler.

Each runs with the account of what it replaces. Texts are filled in (``mews.harness.scenario.replacement``): those of a
component that each node has differ from node to node, so that each node has a DaemonSet of its own.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from mews.harness.manifests.api_sidecar import SIDECAR_KUBECONFIG
from mews.harness.manifests.foreign import PROGRAMS_FOLDER, faces
from mews.harness.manifests.nodes import FOLDER_MOUNTS, FOLDERS, node_name_env
from mews.harness.manifests.parts import (
    COMPONENT,
    CONTROL_PLANE,
    HOST_ROOT,
    KUBELET,
    PASSWORD,
    RUN,
    RUN_MOUNT,
    TRUST,
    TRUST_FOLDER,
    Object,
    config_map,
    config_volume,
    container_name,
    kept_program,
    metadata,
    token_env,
    volume_file,
)
from mews.harness.manifests.rights import EXTENDER
from mews.harness.manifests.spec import ReplacementProgram, StackSpec, deployment_of
from mews.harness.manifests.workloads import daemon_set, deployment
from mews.harness.scenario.replacement import fill
from mews.kube.emulated.kubelet.images import IMAGE_PACKAGES, IMAGE_PYTHON
from mews.kube.system.deployment import ComponentDeployment, SystemDeployment

ACCESS = "mews-kubeconfig"
"""The ConfigMap with a kubeconfig for pods."""
ACCESS_FOLDER = "/etc/mews/access"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_FOLDER = "/scenario"
_FIRST_PORT = 17900
_NO_KEY = re.compile(r"[^-._a-zA-Z0-9]")


def extender_name(number: int) -> str:
    """Return that of the extender at that place in the scenario."""
    return f"extender-{number + 1}"


def extender_port(number: int) -> int:
    """Return where it listens, on loopback of the control plane's node."""
    return _FIRST_PORT + number


def places(spec: StackSpec, component: str, node: str | None = None) -> dict[str, str]:
    """Return what is filled in, in a pod that is in that component's place; with what there is of a node."""
    found = {
        "python": IMAGE_PYTHON,
        "pythonpath": IMAGE_PACKAGES,
        "kubeconfig": SIDECAR_KUBECONFIG if component in spec.struck else f"{ACCESS_FOLDER}/kubeconfig",
        "config": spec.system_of(component).deployment.config_path,
        **{f"config:{each.system.name}": each.deployment.config_path for each in spec.systems},
        "root": HOST_ROOT,
        **{f"chassis:{each.name}": each.endpoint for each in spec.facility.chassis},
        **(faces(spec) if spec.runs_foreign(component) else {}),
    }
    if node is None:
        return found
    cabled = next(each for each in spec.facility.nodes if each.name == node)
    ports = {f"port:{chassis}": port for chassis, port in cabled.ports.items()}
    folders = {"device_plugins": f"{KUBELET}/device-plugins", "pod_resources": f"{KUBELET}/pod-resources"}
    return {**found, "node": node, **folders, **ports}


def access(spec: StackSpec) -> Object:
    """Return a kubeconfig for pods: the API server by its service, whoever the pod's account is."""
    cluster = {"server": "https://kubernetes.default.svc", "certificate-authority": f"{_ACCOUNT}/ca.crt"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "mews", "cluster": cluster}],
        "users": [{"name": "account", "user": {"tokenFile": f"{_ACCOUNT}/token"}}],
        "contexts": [{"name": "mews", "context": {"cluster": "mews", "user": "account"}}],
        "current-context": "mews",
    }
    text = json.dumps(content, indent=2) + "\n"
    return config_map(ACCESS, spec.systems[0].deployment.owner, spec.namespace, {"kubeconfig": text})


def files_of(spec: StackSpec, component: str, program: ReplacementProgram) -> list[Object]:
    """Return the ConfigMap with its files, where it has any."""
    if not program.files:
        return []
    meta = metadata(_files_name(component), component, spec.namespace)
    made: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    for key, (_, content) in zip(_keys(program), program.files.items(), strict=True):
        try:
            made.setdefault("data", {})[key] = content.decode("utf-8")
        except UnicodeDecodeError:
            made.setdefault("binaryData", {})[key] = base64.b64encode(content).decode("ascii")
    return [made]


def _files_name(component: str) -> str:
    return f"mews-files-{component}"


def _keys(program: ReplacementProgram) -> list[str]:
    return [f"{number:03d}-{_NO_KEY.sub('_', path)[-200:]}" for number, path in enumerate(program.files)]


def deployed(spec: StackSpec, component: str, program: ReplacementProgram) -> list[Object]:
    """Return a program in a component's place: its files, and its Deployment, or a DaemonSet for each node that has
    one, since the texts of each are others."""
    made = files_of(spec, component, program)
    if component not in spec.per_node():
        return [*made, deployment(spec, component, pod(spec, component, program), program)]
    for node in spec.nodes_of(component):
        one = pod(spec, component, program, node)
        made.append(daemon_set(spec, f"{component}-{node}", component, one, nodes=[node], program=program))
    return made


def pod(spec: StackSpec, component: str, program: ReplacementProgram, node: str | None = None) -> Object:
    """Return the pod of a program; ``node``: of one that each node has."""
    replaced = _replaced(spec, component)
    account = EXTENDER if program.port is not None else component
    made: Object = {
        "serviceAccountName": account,
        "containers": [_container(spec, component, program, account=account, node=node)],
        "volumes": _volumes(spec, component, program, on_node=node is not None, folders=replaced.kubelet_folders),
    }
    if program.foreign:
        return {**made, "nodeSelector": {CONTROL_PLANE: ""}}
    if program.port is None:
        return made
    # The scheduler's URLs may name loopback: it shares the control plane's network.
    there = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet", "nodeSelector": {CONTROL_PLANE: ""}}
    return {**made, **there}


def _replaced(spec: StackSpec, component: str) -> ComponentDeployment:
    """Return how what is replaced would run; a pod without special rights for what belongs to no system."""
    found = spec.component(component)
    return ComponentDeployment(()) if found is None else deployment_of(found)


def _container(
    spec: StackSpec, component: str, program: ReplacementProgram, *, account: str, node: str | None
) -> Object:
    filling = places(spec, component, node)
    argv = [_literal(fill(word, filling)) for word in program.argv]
    made: Object = {
        "name": container_name(account),
        "image": spec.image if program.kept else program.image,
        "securityContext": _rights(program, _replaced(spec, component).security),
        "volumeMounts": _mounts(spec, component, program, on_node=node is not None),
    }
    pull = spec.pull if program.kept else program.pull
    if pull is not None:
        made["imagePullPolicy"] = pull
    if program.kept:
        made["command"] = kept_program(argv)
    elif argv:
        made["args"] = argv
    env = _environment(spec, program, filling, on_node=node is not None)
    if env:
        made["env"] = env
    if program.files:
        made["workingDir"] = _FOLDER
    if program.port is not None:
        made["readinessProbe"] = {"tcpSocket": {"host": "127.0.0.1", "port": program.port}, "periodSeconds": 1}
    return made


def _literal(text: str) -> str:
    """Return a text in which Kubernetes expands nothing."""
    return text.replace("$", "$$")


def wants_password(spec: StackSpec) -> bool:
    """Return whether whoever speaks with the chassis must log in, and does so under TLS."""
    return any(each.ca_file for each in spec.facility.chassis) or any(map(spec.runs_foreign, spec.programs))


def trust_mounts(spec: StackSpec) -> list[Object]:
    """Return where a container finds what to trust when the chassis speak TLS."""
    return [volume_file(TRUST, TRUST_FOLDER)] if wants_password(spec) else []


def trust_volumes(spec: StackSpec) -> list[Object]:
    """Return the volume of it."""
    return [config_volume(TRUST, TRUST)] if wants_password(spec) else []


def _environment(
    spec: StackSpec, program: ReplacementProgram, filling: Mapping[str, str], *, on_node: bool
) -> list[Object]:
    made: dict[str, Object] = {}
    if wants_password(spec):
        made[PASSWORD] = token_env(PASSWORD)
    if on_node:
        made["NODE_NAME"] = node_name_env()
    for name, value in program.env.items():
        made[name] = {"name": name, "value": _literal(fill(value, filling))}
    return list(made.values())


def _rights(program: ReplacementProgram, security: Mapping[str, Any]) -> Object:
    """Return those of what it replaces; an image runs as its own user where that is not root's, and may write into
    itself."""
    if program.kept:
        return dict(security)
    kept = ("allowPrivilegeEscalation", "capabilities", "seccompProfile")
    found = {name: value for name, value in security.items() if name in kept}
    return {**found, "runAsUser": 0} if security.get("runAsUser") == 0 else found


def _configs(spec: StackSpec, component: str, program: ReplacementProgram) -> list[tuple[str, SystemDeployment]]:
    """Volume -> the system whose configuration is in it."""
    own, *others = spec.systems_read(component, program.texts)
    return [("config", own.deployment), *((f"config-{each.system.name}", each.deployment) for each in others)]


def _mounts(spec: StackSpec, component: str, program: ReplacementProgram, *, on_node: bool) -> list[Object]:
    root: Object = {"name": "root", "mountPath": HOST_ROOT, **({"readOnly": True} if on_node else {})}
    configs = [volume_file(name, system.config_folder) for name, system in _configs(spec, component, program)]
    made = [*configs, volume_file("access", ACCESS_FOLDER), root]
    if program.kept:
        made += [RUN_MOUNT, {"name": "tmp", "mountPath": "/tmp"}]
    if program.foreign:
        made.append(volume_file("programs", PROGRAMS_FOLDER))
    if program.files:
        made.append(volume_file("files", _FOLDER))
    made += trust_mounts(spec)
    return [*made, *(FOLDER_MOUNTS if _replaced(spec, component).kubelet_folders else ())]


def _volumes(
    spec: StackSpec, component: str, program: ReplacementProgram, *, on_node: bool, folders: bool
) -> list[Object]:
    configs = [config_volume(system.config_map, name) for name, system in _configs(spec, component, program)]
    made: list[Object] = [*configs, {"name": "access", "configMap": {"name": ACCESS}}]
    if program.kept:
        made += [RUN, {"name": "tmp", "emptyDir": {}}]
    if program.foreign:
        made.append({"name": "programs", "hostPath": {"path": PROGRAMS_FOLDER, "type": "Directory"}})
    if program.files:
        items = [{"key": key, "path": path} for key, path in zip(_keys(program), program.files, strict=True)]
        source = {"name": _files_name(component), "items": items, "defaultMode": 0o555}
        made.append({"name": "files", "configMap": source})
    shown = {"hostPath": {"path": HOST_ROOT, "type": "DirectoryOrCreate"}} if on_node else {"emptyDir": {}}
    return [*made, {"name": "root", **shown}, *trust_volumes(spec), *(FOLDERS if folders else ())]


def is_deployed_last(spec: StackSpec, obj: Object) -> bool:
    """Return whether that object runs a program that a harness cannot start anew: it is deployed when all else is
    ready."""
    program = spec.programs.get(obj["metadata"]["labels"][COMPONENT])
    return program is not None and not program.kept and obj["kind"] in ("Deployment", "DaemonSet")
