"""The TFJob CustomResourceDefinition, and how it is installed."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml

from mews.kube.api.resources import Resource
from mews.kube.client.port import KubeApi
from mews.kube.system.kinds import install_kind, kind_established

TFJOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")


def crd() -> dict[str, Any]:
    """The definition, as ``kubectl apply -f`` would take it."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    made: dict[str, Any] = yaml.load(files("mews.systems.kod2").joinpath("crd.yaml").read_text("utf-8"), loader)
    return made


async def install(kube: KubeApi) -> None:
    """Create the definition unless it is there, and wait until the server serves the kind."""
    await install_kind(kube, crd())


async def established(kube: KubeApi) -> None:
    """Wait until the server serves the kind."""
    await kind_established(kube, f"{TFJOBS.plural}.{TFJOBS.group}")
