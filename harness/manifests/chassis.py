"""The chassis as manifests: their inventory, the token of their back door, their pod and its service."""

from __future__ import annotations

import base64

from mews.harness.manifests.parts import (
    CA_FILE,
    CHASSIS_PORT,
    COMPONENT,
    CONTROL_PORT,
    HARDWARE,
    PASSWORD,
    RUN,
    RUN_MOUNT,
    TLS_SECRET,
    TOKEN_SECRET,
    TRUST,
    Object,
    config_map,
    kept,
    metadata,
    token_env,
    volume_file,
)
from mews.harness.manifests.spec import StackSpec
from mews.kube.system.deployment import ROOTLESS
from mews.yaml_text import written_yaml

_TLS_FOLDER = "/etc/mews-tls"


def endpoint(namespace: str, number: int, *, secure_after: int | None = None) -> str:
    """Return where the chassis of that place in the inventory answers the components of the namespace;
    ``secure_after``: under TLS, whose ports follow those of so many chassis."""
    scheme, port = ("http", 0) if secure_after is None else ("https", secure_after)
    return f"{scheme}://{host_name(namespace)}:{CHASSIS_PORT + port + number}"


def host_name(namespace: str) -> str:
    """Return it by which the components call the chassis."""
    return f"chassis.{namespace}.svc"


def token(spec: StackSpec) -> Object:
    """Return the Secret with the token of the back doors."""
    data = {"token": base64.b64encode(spec.token.encode()).decode()}
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(TOKEN_SECRET, "chassis", spec.namespace)}
    return {**made, "type": "Opaque", "data": data}


def certificate(spec: StackSpec) -> list[Object]:
    """Return the Secret with the certificate under which the chassis speak TLS, and a ConfigMap of what to trust."""
    if spec.certificate is None:
        return []
    files = {"tls.crt": spec.certificate.certificate, "tls.key": spec.certificate.key}
    data = {name: base64.b64encode(text.encode()).decode() for name, text in files.items()}
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(TLS_SECRET, "chassis", spec.namespace)}
    trusted = config_map(TRUST, "chassis", spec.namespace, {CA_FILE: spec.certificate.trusted})
    return [{**made, "type": "kubernetes.io/tls", "data": data}, trusted]


def hardware(spec: StackSpec) -> Object:
    """Return the inventory, as chassis and hosts read it."""
    text = written_yaml(dict(spec.hardware))
    return config_map(HARDWARE, "chassis", spec.namespace, {"hardware.yaml": text})


def service(spec: StackSpec) -> Object:
    """Return two ports for each chassis, and that of control."""
    ports = [
        {"name": f"chassis-{number}", "port": CHASSIS_PORT + number, "targetPort": CHASSIS_PORT + number}
        for number in range(2 * len(spec.facility.chassis))  # those in plain HTTP, then those under TLS
    ]
    ports.append({"name": "control", "port": CONTROL_PORT, "targetPort": CONTROL_PORT})
    made = {"apiVersion": "v1", "kind": "Service", "metadata": metadata("chassis", "chassis", spec.namespace)}
    return {**made, "spec": {"selector": {COMPONENT: "chassis"}, "ports": ports}}


def pod(spec: StackSpec) -> Object:
    """Return one server for all chassis."""
    argv = ["-m", "mews.emulator.serve", "--hardware", "/etc/mews/hardware.yaml", "--state", "/var/lib/mews/table"]
    argv += ["--listen", f"0.0.0.0:{CHASSIS_PORT}", "--consecutive", "--control", f"0.0.0.0:{CONTROL_PORT}"]
    for name in (host_name(spec.namespace), *spec.allow_hosts):  # the first: by which the components call it
        argv += ["--allow-host", name]
    argv += ["--plain-control"]  # it asks for the token
    if spec.certificate is not None:
        argv += ["--certificate", f"{_TLS_FOLDER}/tls.crt", "--key", f"{_TLS_FOLDER}/tls.key"]
    argv += ["--speed", f"{spec.speed:g}", "--seed", str(spec.seed)]
    container: Object = {
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
    if spec.certificate is not None:
        container["volumeMounts"] += [volume_file("tls", _TLS_FOLDER)]
        volumes.append({"name": "tls", "secret": {"secretName": TLS_SECRET, "defaultMode": 0o444}})
    # Its server dies and comes back without a change of address: what waits for it finds it again.
    return {"containers": [container], "volumes": volumes, "automountServiceAccountToken": False}
