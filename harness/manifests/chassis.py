"""The chassis as manifests: their inventory, the token of their back door, their pod and its service."""

from __future__ import annotations

import base64

import yaml

from mews.harness.manifests.parts import (
    CHASSIS_PORT,
    COMPONENT,
    CONTROL_PORT,
    HARDWARE,
    PASSWORD,
    RUN,
    RUN_MOUNT,
    TOKEN_SECRET,
    Object,
    config_map,
    kept,
    metadata,
    token_env,
    volume_file,
)
from mews.harness.manifests.spec import StackSpec
from mews.kube.system.deployment import ROOTLESS


def endpoint(namespace: str, number: int) -> str:
    """Where the chassis of that place in the inventory answers the components of the namespace."""
    return f"http://chassis.{namespace}.svc:{CHASSIS_PORT + number}"


def token(spec: StackSpec) -> Object:
    """The Secret with the token of the back doors."""
    data = {"token": base64.b64encode(spec.token.encode()).decode()}
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(TOKEN_SECRET, "chassis", spec.namespace)}
    return {**made, "type": "Opaque", "data": data}


def hardware(spec: StackSpec) -> Object:
    """The inventory, as chassis and hosts read it."""
    text = yaml.safe_dump(dict(spec.hardware), sort_keys=False, width=120)
    return config_map(HARDWARE, "chassis", spec.namespace, {"hardware.yaml": text})


def service(spec: StackSpec) -> Object:
    """One port for each chassis, and that of control."""
    ports = [
        {"name": f"chassis-{number}", "port": CHASSIS_PORT + number, "targetPort": CHASSIS_PORT + number}
        for number in range(len(spec.facility.chassis))
    ]
    ports.append({"name": "control", "port": CONTROL_PORT, "targetPort": CONTROL_PORT})
    made = {"apiVersion": "v1", "kind": "Service", "metadata": metadata("chassis", "chassis", spec.namespace)}
    return {**made, "spec": {"selector": {COMPONENT: "chassis"}, "ports": ports}}


def pod(spec: StackSpec) -> Object:
    """One server for all chassis."""
    argv = ["-m", "mews.emulator.serve", "--hardware", "/etc/mews/hardware.yaml", "--state", "/var/lib/mews/table"]
    argv += ["--listen", f"0.0.0.0:{CHASSIS_PORT}", "--consecutive", "--control", f"0.0.0.0:{CONTROL_PORT}"]
    for name in (f"chassis.{spec.namespace}.svc", *spec.allow_hosts):  # the first: by which the components call it
        argv += ["--allow-host", name]
    argv += ["--insecure"]  # control asks for the token; no pod knows an authority of its own
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
