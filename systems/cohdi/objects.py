"""The objects that the programs look for: as CoHDI's chart and a GPU operator make them, written anew. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.dra.gpus import DRIVER
from mews.systems.cohdi.config import (
    CDIM,
    DRA_NAMESPACE,
    FM,
    GPU_NAMESPACE,
    LABEL_PREFIX,
    OPERATOR_NAMESPACE,
    CohdiConfig,
)
from mews.systems.cohdi.driver_container import ELSEWHERE
from mews.yaml_text import written_yaml

DRIVER_IMAGE = "mews/nvidia-driver"
"""Stands for the container in which a GPU operator runs NVIDIA's driver."""
_SCHEME = "fsas-cdi"
"""CDD takes what stands behind the last slash of a providerID, CRO what stands behind this scheme, or all of it."""


def provider_id(machine: str, operator: str = FM) -> str:
    """Return how a node names the machine that it is; ``operator``: the dialect in which it is looked for."""
    return machine if operator == CDIM else f"{_SCHEME}://{machine}"


def objects(config: CohdiConfig) -> Sequence[Object]:
    """Return all of them, in the order in which they are applied."""
    return [
        *(_object("v1", "Namespace", name) for name in (DRA_NAMESPACE, OPERATOR_NAMESPACE, GPU_NAMESPACE)),
        _config_map(config),
        _secret("composable-dra-secret", DRA_NAMESPACE, {"realm": "CDI_DRA", "certificate": "{ca-text}"}),
        _secret("credentials", OPERATOR_NAMESPACE, {"realm": "CDI"}),
        _object("nvidia.com/v1", "ClusterPolicy", "cluster-policy", spec={"driver": {"enabled": True}}),
        _driver_pods(config),
        _device_class(),
    ]


def device_name(model: str) -> str:
    """Return what a model is called in pools, labels and device names: a DNS label of at most 50 characters."""
    word = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
    return f"gpu-{word}"[:50].rstrip("-")


def _config_map(config: CohdiConfig) -> Object:
    """CDD reads it once, as it starts (contract: pkg/config of CDD)."""
    models = [
        {
            "index": index,
            "cdi-model-name": model,
            "dra-attributes": {"productName": model, "type": "gpu", "uuid": ""},
            "driver-name": DRIVER,
            "k8s-device-name": device_name(model),
            "cannot-coexist-with": [],
        }
        for index, model in enumerate(config.models, 1)
    ]
    data = {
        "label-prefix": LABEL_PREFIX,
        "fabric-id-range": "[0, 100]",
        "device-info": written_yaml(models),
    }
    return _object("v1", "ConfigMap", "composable-dra-dds", DRA_NAMESPACE, data=data)


def _secret(name: str, namespace: str, more: dict[str, str]) -> Object:
    account = {"username": "{user:fm}", "password": "{password:fm}", "client_id": "cohdi", "client_secret": "cohdi"}
    return _object("v1", "Secret", name, namespace, type="Opaque", stringData={**account, **more})


def _device_class() -> Object:
    selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    return _object("resource.k8s.io/v1", "DeviceClass", DRIVER, spec={"selectors": selectors})


def _driver_pods(config: CohdiConfig) -> Object:
    """CRO finds the pods by this label, on any node, and runs nvidia-smi and a shell in their first container. On real
    nodes they see the folder with the host's files, where it lies: there are links in it."""
    labels = {"app": "nvidia-driver-daemonset", "app.kubernetes.io/component": "nvidia-driver"}
    container = {
        "name": "nvidia-driver-ctr",
        "image": DRIVER_IMAGE,
        "securityContext": {"privileged": True},
        **({"env": [{"name": ELSEWHERE, "value": config.driver_root}]} if config.driver_root else {}),
        "readinessProbe": {
            "exec": {"command": ["test", "-e", "/run/nvidia/driver/usr/bin/nvidia-smi"]},
            "periodSeconds": 1,
        },
        "volumeMounts": [
            {"name": "driver", "mountPath": config.node_files or "/run/mews/driver"},
            {"name": "kept", "mountPath": "/run/mews/kept"},
            {"name": "chroot", "mountPath": "/run/nvidia/driver"},
        ],
    }
    spec: dict[str, Any] = {
        "selector": {"matchLabels": {"app": labels["app"]}},
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "tolerations": [{"operator": "Exists"}],
                "terminationGracePeriodSeconds": 1,
                "volumes": [
                    {"name": "driver", "hostPath": _driver_files(config)},
                    {"name": "kept", "emptyDir": {}},
                    {"name": "chroot", "emptyDir": {}},
                ],
                "containers": [container],
                **_chosen_nodes(config),
            },
        },
    }
    return _object("apps/v1", "DaemonSet", "nvidia-driver-daemonset", GPU_NAMESPACE, spec=spec)


def _driver_files(config: CohdiConfig) -> Object:
    return {"path": config.node_files or "/run/nvidia/driver", "type": "Directory"}


def _chosen_nodes(config: CohdiConfig) -> Object:
    """Return the nodes of hosts, by their names: a real cluster has others, too."""
    if not config.node_files:
        return {}
    there = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(config.machines)}
    needed = {"nodeSelectorTerms": [{"matchExpressions": [there]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": needed}}}


def _object(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
