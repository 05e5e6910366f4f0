"""The TFJob CustomResourceDefinition, and how it is installed."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import yaml

from mews.kube.api.resources import Resource
from mews.kube.client.port import KubeApi
from mews.kube.system.kinds import install_kind, kind_established

_TEMPLATE = "POD_TEMPLATE"
TFJOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")


def crd() -> dict[str, Any]:
    """Return the definition, as ``kubectl apply -f`` would take it."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    made: dict[str, Any] = yaml.load(package_text("crd.yaml"), loader)
    (version,) = made["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    replicas = spec["properties"]["tfReplicaSpecs"]["additionalProperties"]["properties"]
    assert replicas["template"] == _TEMPLATE
    replicas["template"] = json.loads(package_text("pod_template.json"))
    return made


def crd_text() -> str:
    """Return the same as YAML."""
    return package_text("crd.yaml").replace(f": {_TEMPLATE}\n", f": {package_text('pod_template.json')}")


def package_text(name: str) -> str:
    """Return a file that comes with the package."""
    return files("mews.systems.kod2").joinpath(name).read_text("utf-8")


async def install(kube: KubeApi) -> None:
    """Create the definition unless it is there, and wait until the server serves the kind."""
    await install_kind(kube, crd())


async def established(kube: KubeApi) -> None:
    """Wait until the server serves the kind."""
    await kind_established(kube, f"{TFJOBS.plural}.{TFJOBS.group}")
