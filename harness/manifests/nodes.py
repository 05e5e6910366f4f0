"""What a node has beside the components: an agent that reports what its kubelet does, and the host's files."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mews.harness.manifests.parts import (
    AGENT_PORT,
    CONTROL_PORT,
    HARDWARE,
    HOST_PORT,
    HOST_ROOT,
    KUBELET,
    RUN,
    RUN_MOUNT,
    Object,
    token_env,
    volume_file,
)
from mews.harness.manifests.spec import StackSpec
from mews.kube.runtimehook.places import HOOK_FOLDER, PROXY_RECORDS
from mews.kube.system.deployment import ON_NODE

NODE_AGENT = "node-agent"
"""Component of what reports on a node and shows its devices, where no pod of a component of ours does."""
NVML = f"{HOST_ROOT}/this"
STATE_FILE = f"{NVML}/nvml.state"
"""What the library reads."""
HOST_FILES = f"{HOST_ROOT}/fs/this"
"""The host's sys, proc and dev, for components on its node."""
RECORDS_FILE = "/run/mews/records.jsonl"
"""Where the component beside the agent writes its structured log records."""

_PATHS = {name: f"{KUBELET}/{name}" for name in ("device-plugins", "pod-resources")}
FOLDERS = [{"name": name, "hostPath": {"path": path, "type": "Directory"}} for name, path in _PATHS.items()]
FOLDER_MOUNTS: list[Object] = [{"name": name, "mountPath": path} for name, path in _PATHS.items()]


HOST_VOLUME = {"name": "host", "hostPath": {"path": HOST_ROOT, "type": "DirectoryOrCreate"}}
HOST_MOUNT: Object = {"name": "host", "mountPath": HOST_ROOT}


def node_folder_volumes(folders: Sequence[str], name: str = "node") -> list[Object]:
    """Volumes of folders of the node."""
    return [
        {"name": f"{name}-{number}", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
        for number, path in enumerate(folders)
    ]


def node_folder_mounts(folders: Sequence[str], name: str = "node") -> list[Object]:
    """Return where a container has them: at the same places."""
    return [{"name": f"{name}-{number}", "mountPath": path} for number, path in enumerate(folders)]


def node_name_env() -> Object:
    """Return the name of the pod's node, as a component that runs on each is told it."""
    return {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}


def agent_pod(spec: StackSpec) -> Object:
    """Return the pod that has nothing else."""
    return {
        "automountServiceAccountToken": False,
        "containers": [agent(spec), host(spec)],
        "volumes": node_volumes(spec),
    }


def node_volumes(spec: StackSpec) -> list[Object]:
    """Return those of agent and host."""
    return [
        RUN,
        *FOLDERS,
        *node_folder_volumes([HOOK_FOLDER] if spec.runtime_hooks else [], "hooks"),
        {"name": "hardware", "configMap": {"name": HARDWARE}},
        HOST_VOLUME,
    ]


def agent(spec: StackSpec) -> Object:
    """Reports to a harness what the node's kubelet does; may read the kubelet's folders only."""
    argv = ["-m", "mews.harness.clusters.real.agent", "--device-plugins", f"{KUBELET}/device-plugins"]
    argv += ["--pod-resources", f"{KUBELET}/pod-resources", "--records", RECORDS_FILE, "--port", str(AGENT_PORT)]
    hooked = [HOOK_FOLDER] if spec.runtime_hooks else []
    argv += ["--records", PROXY_RECORDS] if hooked else []
    argv += [word for name in spec.allow_hosts for word in ("--allow-host", name)]
    return {
        "name": "agent",
        "image": spec.image,
        "imagePullPolicy": spec.pull,
        "command": ["python3", *argv],
        "env": [token_env()],
        "ports": [{"name": "agent", "containerPort": AGENT_PORT}],
        "readinessProbe": {"tcpSocket": {"port": AGENT_PORT}, "periodSeconds": 1},
        "securityContext": dict(ON_NODE),
        "volumeMounts": [
            {**mount, "readOnly": True} for mount in (*FOLDER_MOUNTS, RUN_MOUNT, *node_folder_mounts(hooked, "hooks"))
        ],
    }


def host(spec: StackSpec) -> Object:
    """Shows the node's devices to whoever looks: files and NVML below a folder of the node's own."""
    control = f"http://chassis.{spec.namespace}.svc:{CONTROL_PORT}"
    argv = ["-m", "mews.harness.clusters.real.host", "--hardware", "/etc/mews/hardware.yaml", "--root", HOST_ROOT]
    argv += ["--hosts", json.dumps(dict(spec.hosts)), "--chassis", control]
    argv += ["--speed", f"{spec.speed:g}", "--seed", str(spec.seed), *(["--tidy"] if spec.tidy else [])]
    argv += ["--port", str(HOST_PORT), *(word for name in spec.allow_hosts for word in ("--allow-host", name))]
    return {
        "name": "host",
        "image": spec.image,
        "imagePullPolicy": spec.pull,
        "command": ["python3", *argv],
        "env": [token_env(), node_name_env()],
        "ports": [{"name": "host", "containerPort": HOST_PORT}],
        **(_for_foreign_driver() if spec.foreign_claims else {"securityContext": dict(ON_NODE)}),
        "volumeMounts": [
            volume_file("hardware", "/etc/mews"),
            HOST_MOUNT,
            RUN_MOUNT,
        ],
    }


def _for_foreign_driver() -> Object:
    """Return a driver of the user's looks for the files once, when it starts: they are there by then. It takes nothing
    but real device nodes, so that the host must make some."""
    return {
        "readinessProbe": {"tcpSocket": {"port": HOST_PORT}, "periodSeconds": 1},
        "securityContext": {**ON_NODE, "capabilities": {"drop": ["ALL"], "add": ["MKNOD"]}},
    }
