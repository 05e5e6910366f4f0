"""The user's software as manifests: a program in a component's place, an extender of the default scheduler.

Each runs with the account of what it replaces. Texts are filled in (``mews.harness.scenario.replacement``): a
device-manager's differ from node to node, so that each node has a DaemonSet of its own.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from mews.harness.errors import Lacks
from mews.harness.manifests.parts import (
    COMPONENT,
    CONFIG,
    CONFIG_FILE,
    CONFIG_VOLUME,
    CONTROL_PLANE,
    HOST_ROOT,
    KUBELET,
    ON_NODE,
    PASSWORD,
    ROOTLESS,
    RUN,
    RUN_MOUNT,
    Object,
    kept_program,
    metadata,
    token_env,
    volume_file,
)
from mews.harness.scenario.replacement import fill, filled
from mews.kube.emulated.kubelet.images import IMAGE_PACKAGES, IMAGE_PYTHON

if TYPE_CHECKING:
    from mews.harness.manifests.stack import StackSpec

ACCESS = "mews-kubeconfig"
_ACCESS_FOLDER = "/etc/mews/access"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_FOLDER = "/scenario"
_FIRST_PORT = 17900
_NO_KEY = re.compile(r"[^-._a-zA-Z0-9]")


@dataclass(frozen=True, slots=True)
class ReplacementProgram:
    """A program of the user's.

    Without ``image``, ``argv`` runs in our component image under the keeper, in the folder of its ``files`` (path ->
    content); else it is that image's arguments. ``pull`` is that image's policy where it is not Kubernetes' own, and
    ``identity`` what Docker calls its content. ``port``: that of an extender.
    """

    argv: Sequence[str]
    _: KW_ONLY
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    image: str | None = None
    pull: str | None = None
    identity: str = ""
    port: int | None = None

    @property
    def kept(self) -> bool:
        """Whether a harness can kill and start it."""
        return self.image is None


def extender_name(number: int) -> str:
    """Of the extender at that place in the scenario."""
    return f"extender-{number + 1}"


def extender_port(number: int) -> int:
    """Where it listens, on loopback of the control plane's node."""
    return _FIRST_PORT + number


def places(spec: StackSpec, node: str | None = None) -> dict[str, str]:
    """What is filled in, in a pod; with those of a node."""
    found = {
        "python": IMAGE_PYTHON,
        "pythonpath": IMAGE_PACKAGES,
        "kubeconfig": f"{_ACCESS_FOLDER}/kubeconfig",
        "config": CONFIG_FILE,
        "root": HOST_ROOT,
        **{f"chassis:{entry['name']}": str(entry["endpoint"]) for entry in spec.config["chassis"]},
    }
    if node is None:
        return found
    cabled = next(entry for entry in spec.config["nodes"] if entry["name"] == node)
    ports = {f"port:{chassis}": str(port) for chassis, port in cabled["ports"].items()}
    folders = {"device_plugins": f"{KUBELET}/device-plugins", "pod_resources": f"{KUBELET}/pod-resources"}
    return {**found, "node": node, **folders, **ports}


def access(spec: StackSpec) -> Object:
    """A kubeconfig for pods: the API server by its service, whoever the pod's account is."""
    cluster = {"server": "https://kubernetes.default.svc", "certificate-authority": f"{_ACCOUNT}/ca.crt"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "mews", "cluster": cluster}],
        "users": [{"name": "account", "user": {"tokenFile": f"{_ACCOUNT}/token"}}],
        "contexts": [{"name": "mews", "context": {"cluster": "mews", "user": "account"}}],
        "current-context": "mews",
    }
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(ACCESS, "kubecomp", spec.namespace)}
    return {**made, "data": {"kubeconfig": json.dumps(content, indent=2) + "\n"}}


def files_of(spec: StackSpec, component: str, program: ReplacementProgram) -> list[Object]:
    """The ConfigMap with its files, where it has any."""
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


def pod(spec: StackSpec, component: str, program: ReplacementProgram, node: str | None = None) -> Object:
    """The pod of a program; ``node``: of one that each node has."""
    account = "extender" if program.port is not None else component
    made: Object = {
        "serviceAccountName": account,
        "containers": [_container(spec, account, program, places(spec, node), on_node=node is not None)],
        "volumes": _volumes(component, program, on_node=node is not None),
    }
    if program.port is None:
        return made
    # The scheduler's URLs may name loopback: it shares the control plane's network.
    there = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet", "nodeSelector": {CONTROL_PLANE: ""}}
    return {**made, **there}


def _container(spec: StackSpec, name: str, program: ReplacementProgram, filling: Mapping[str, str], *, on_node: bool) -> Object:
    argv = [_literal(fill(word, filling)) for word in program.argv]
    made: Object = {
        "name": name,
        "image": spec.image if program.kept else program.image,
        "securityContext": _rights(program, on_node=on_node),
        "volumeMounts": _mounts(program, on_node=on_node),
    }
    pull = spec.pull if program.kept else program.pull
    if pull is not None:
        made["imagePullPolicy"] = pull
    if program.kept:
        made["command"] = kept_program(argv)
    elif argv:
        made["args"] = argv
    env = _environment(spec, program, filling, on_node=on_node)
    if env:
        made["env"] = env
    if program.files:
        made["workingDir"] = _FOLDER
    if program.port is not None:
        made["readinessProbe"] = {"tcpSocket": {"host": "127.0.0.1", "port": program.port}, "periodSeconds": 1}
    return made


def _literal(text: str) -> str:
    """A text in which Kubernetes expands nothing."""
    return text.replace("$", "$$")


def _environment(spec: StackSpec, program: ReplacementProgram, filling: Mapping[str, str], *, on_node: bool) -> list[Object]:
    made: dict[str, Object] = {}
    if any(entry.get("dialect") == "redfish" for entry in spec.config["chassis"]):
        made[PASSWORD] = token_env(PASSWORD)
    if on_node:
        made["NODE_NAME"] = {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    for name, value in program.env.items():
        made[name] = {"name": name, "value": _literal(fill(value, filling))}
    return list(made.values())


def _rights(program: ReplacementProgram, *, on_node: bool) -> Object:
    """Those of what it replaces; an image runs as its own user, and may write into itself."""
    found = dict(ON_NODE if on_node else ROOTLESS)
    if not program.kept:
        kept = ("allowPrivilegeEscalation", "capabilities", "seccompProfile", *(["runAsUser"] if on_node else []))
        found = {name: value for name, value in found.items() if name in kept}
    return found


def _mounts(program: ReplacementProgram, *, on_node: bool) -> list[Object]:
    root: Object = {"name": "root", "mountPath": HOST_ROOT, **({"readOnly": True} if on_node else {})}
    made = [volume_file("config", "/etc/kubecomp"), volume_file("access", _ACCESS_FOLDER), root]
    if program.kept:
        made += [RUN_MOUNT, {"name": "tmp", "mountPath": "/tmp"}]
    if program.files:
        made.append(volume_file("files", _FOLDER))
    if on_node:
        made += [{"name": name, "mountPath": f"{KUBELET}/{name}"} for name in ("device-plugins", "pod-resources")]
    return made


def _volumes(component: str, program: ReplacementProgram, *, on_node: bool) -> list[Object]:
    made: list[Object] = [dict(CONFIG_VOLUME), {"name": "access", "configMap": {"name": ACCESS}}]
    if program.kept:
        made += [RUN, {"name": "tmp", "emptyDir": {}}]
    if program.files:
        items = [{"key": key, "path": path} for key, path in zip(_keys(program), program.files, strict=True)]
        source = {"name": _files_name(component), "items": items, "defaultMode": 0o555}
        made.append({"name": "files", "configMap": source})
    if not on_node:
        return [*made, {"name": "root", "emptyDir": {}}]
    made.append({"name": "root", "hostPath": {"path": HOST_ROOT, "type": "DirectoryOrCreate"}})
    for name in ("device-plugins", "pod-resources"):
        made.append({"name": name, "hostPath": {"path": f"{KUBELET}/{name}", "type": "Directory"}})
    return made


def is_deployed_last(spec: StackSpec, obj: Object) -> bool:
    """Whether that object runs a program that a harness cannot start anew: it is deployed when all else is ready."""
    program = spec.programs.get(obj["metadata"]["labels"][COMPONENT])
    return program is not None and not program.kept and obj["kind"] in ("Deployment", "DaemonSet")


def inputs_of(program: ReplacementProgram) -> list[Any]:
    """What makes its pod another one."""
    return [list(program.argv), dict(program.env), dict(program.files), program.image, program.identity]


# What a manifest of the user's becomes


def manifest_objects(spec: StackSpec) -> dict[str, list[Object]]:
    """Component -> the objects of its manifest: KubeComp's namespace by its real name, texts filled in; pods there have
    what their texts name, and the component's account where they say no other.

    Raises Lacks for pods elsewhere that name files.
    """
    return {
        component: [
            _brought(spec, component, document)
            for document in documents
            if (document["kind"], document["metadata"]["name"]) != ("Namespace", spec.named)
        ]
        for component, documents in spec.documents.items()
    }


def _brought(spec: StackSpec, component: str, document: Mapping[str, Any]) -> Object:
    made: Object = _moved(document, spec.named, spec.namespace)
    namespace = made["metadata"].get("namespace", "default")
    for pod_spec in _pod_specs(made):
        wanted = [name for name in _MOUNTED if _names(pod_spec, name)]
        if namespace == spec.namespace:
            if "serviceAccount" not in pod_spec:
                pod_spec.setdefault("serviceAccountName", component)
            _furnish(pod_spec, wanted)
        elif wanted:
            raise Lacks(
                f"stack.replace.{component}.manifest: {made['kind']} {made['metadata']['name']}: {{{wanted[0]}}} is a "
                f"file that pods of the namespace {spec.named} alone can be given here, not those of {namespace}"
            )
    done: Object = filled(made, places(spec))
    return done


def _moved(value: Any, named: str, real: str) -> Any:
    if isinstance(value, list):
        return [_moved(item, named, real) for item in value]
    if not isinstance(value, dict):
        return value
    moved = {key: _moved(item, named, real) for key, item in value.items()}
    if moved.get("namespace") == named:
        moved["namespace"] = real
    return moved


def _pod_specs(obj: Any) -> list[Object]:
    spec = obj.get("spec") if isinstance(obj, dict) else None
    if not isinstance(spec, dict):
        return []
    if isinstance(spec.get("containers"), list):
        return [spec]
    return [found for key in ("template", "jobTemplate") for found in _pod_specs(spec.get(key))]


def _names(value: Any, name: str) -> bool:
    return "{" + name + "}" in json.dumps(value)


def _furnish(pod_spec: Object, wanted: Sequence[str]) -> None:
    for name in wanted:
        path, source = _MOUNTED[name]
        volume = f"mews-{name}"
        pod_spec["volumes"] = [*(pod_spec.get("volumes") or ()), {"name": volume, **source}]
        for container in [*pod_spec["containers"], *(pod_spec.get("initContainers") or ())]:
            if isinstance(container, dict) and _names(container, name):
                mounts = container.get("volumeMounts") or ()
                container["volumeMounts"] = [*mounts, {"name": volume, "mountPath": path}]


_MOUNTED: Mapping[str, tuple[str, Object]] = {
    "config": ("/etc/kubecomp", {"configMap": {"name": CONFIG}}),
    "kubeconfig": (_ACCESS_FOLDER, {"configMap": {"name": ACCESS}}),
    "root": (HOST_ROOT, {"emptyDir": {}}),
}
"""What a text names -> where it is, and of what."""
