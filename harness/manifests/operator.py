"""The elastic operator as manifests: the TFJob definition, its configuration, and its pod. Its rights: rights.py."""

from __future__ import annotations

import dataclasses
from typing import Any

import yaml

from mews.harness.manifests.parts import ROOTLESS, RUN, RUN_MOUNT, Object, kept, metadata, volume_file
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kod2.install import crd

CONFIG = "kod2-config"
METRICS_PORT = 9090


def definition() -> Object:
    """The TFJob kind."""
    made: dict[str, Any] = crd()
    return {**made, "metadata": metadata(made["metadata"]["name"], "operator")}


def configuration(config: OperatorConfig, namespace: str) -> Object:
    """The file that the operator reads."""
    text = yaml.safe_dump(dataclasses.asdict(config), sort_keys=False, width=120)
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(CONFIG, "operator", namespace)}
    return {**made, "data": {"kod2.yaml": text}}


def pod(image: str, pull: str) -> Object:
    """What runs: it finds the API by its pod's account, and installs nothing."""
    argv = ["-m", "mews.systems.kod2", "operator", "--config", "/etc/kod2/kod2.yaml", "--no-crd"]
    argv += ["--metrics-port", str(METRICS_PORT), "--metrics-host", "0.0.0.0"]
    container = {
        "name": "operator",
        "image": image,
        "imagePullPolicy": pull,
        "command": kept(argv),
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT}],
        "securityContext": dict(ROOTLESS),
        "volumeMounts": [volume_file("config", "/etc/kod2"), RUN_MOUNT],
    }
    volumes = [{"name": "config", "configMap": {"name": CONFIG}}, RUN]
    return {"serviceAccountName": "operator", "containers": [container], "volumes": volumes}
