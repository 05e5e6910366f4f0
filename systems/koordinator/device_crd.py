"""The definition of the Device kind, as it is published."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from mews.kube.api.objects import Object


@cache
def device_definition() -> Object:
    """The CustomResourceDefinition, as ``kubectl apply -f`` would take it. Read-only."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = files("mews.systems.koordinator").joinpath("device_crd.yaml").read_text("utf-8")
    made: dict[str, Any] = yaml.load(text, loader)
    return made
