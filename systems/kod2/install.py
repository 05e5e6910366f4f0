"""The TFJob CustomResourceDefinition, and how it is installed."""

from __future__ import annotations

import contextlib
from importlib.resources import files
from typing import Any

import yaml

from mews.kube.api.errors import AlreadyExists
from mews.kube.api.objects import condition_of
from mews.kube.api.resources import CRDS, Resource
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest

TFJOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")

_POLL_S = 0.1


def crd() -> dict[str, Any]:
    """The definition, as ``kubectl apply -f`` would take it."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    made: dict[str, Any] = yaml.load(files("mews.systems.kod2").joinpath("crd.yaml").read_text("utf-8"), loader)
    return made


async def install(kube: KubeApi) -> None:
    """Create the definition unless it is there, and wait until the server serves the kind."""
    with contextlib.suppress(AlreadyExists):
        await kube.create(CRDS, crd())
    await established(kube)


async def established(kube: KubeApi) -> None:
    """Wait until the server serves the kind."""
    while True:
        found = await kube.get(CRDS, f"{TFJOBS.plural}.{TFJOBS.group}")
        established = condition_of(found, "Established")
        if established is not None and established.get("status") == "True":
            return
        await rest(_POLL_S)
