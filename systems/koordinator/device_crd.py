"""The definitions of the kinds that the scheduler reads, as they are published: Device and PodGroup."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from mews.kube.api.objects import Object


@cache
def device_definition() -> Object:
    """Return the CustomResourceDefinition, as ``kubectl apply -f`` would take it. Read-only."""
    return _read("device_crd.yaml")


@cache
def pod_group_definition() -> Object:
    """Return that of the PodGroup kind. Read-only."""
    return _read("podgroup_crd.yaml")


def _read(name: str) -> Object:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = files("mews.systems.koordinator").joinpath(name).read_text("utf-8")
    made: dict[str, Any] = yaml.load(text, loader)
    return made
