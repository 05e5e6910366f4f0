"""The container beside a component that plays the faults between it and the API."""

from __future__ import annotations

from mews.harness.manifests.parts import Object, container_name
from mews.harness.manifests.spec import StackSpec

SIDECAR = "api-faults"
"""Its name."""
SIDECAR_FOLDER = "/run/mews-api"
SIDECAR_KUBECONFIG = f"{SIDECAR_FOLDER}/kubeconfig"
_MODULE = "mews.harness.clusters.real.api_sidecar"
_MOUNT: Object = {"name": SIDECAR, "mountPath": SIDECAR_FOLDER}


def with_sidecar(spec: StackSpec, component: str, pod: Object) -> Object:
    """Return the pod of a component whose API may have faults: the proxy runs before the component does, which finds a
    kubeconfig for it. Other components' pods stay as they are."""
    if component not in spec.struck:
        return pod
    name = container_name(component)
    own = next(each for each in pod["containers"] if each["name"] == name)
    sidecar: Object = {
        "name": SIDECAR,
        "image": spec.image,
        "imagePullPolicy": spec.pull,
        "command": ["python3", "-m", _MODULE, str(spec.seed), f"{spec.speed:g}"],
        "restartPolicy": "Always",
        "startupProbe": {
            "exec": {"command": ["test", "-e", SIDECAR_KUBECONFIG]},
            "periodSeconds": 1,
            "failureThreshold": 120,
        },
        "securityContext": dict(own.get("securityContext", {})),
        "volumeMounts": [_MOUNT],
    }
    struck = {
        **own,
        "env": [*own.get("env", ()), {"name": "KUBECONFIG", "value": SIDECAR_KUBECONFIG}],
        "volumeMounts": [*own.get("volumeMounts", ()), {**_MOUNT, "readOnly": True}],
    }
    return {
        **pod,
        "initContainers": [*pod.get("initContainers", ()), sidecar],
        "containers": [struck if each is own else each for each in pod["containers"]],
        "volumes": [*pod.get("volumes", ()), {"name": SIDECAR, "emptyDir": {}}],
    }
