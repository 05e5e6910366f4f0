"""The kinds of CoHDI's operator, and the one of a GPU operator that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from mews.kube.api.resources import Resource

REQUESTS = Resource(
    "cro.hpsys.ibm.ie.com", "v1alpha1", "composabilityrequests", "ComposabilityRequest", namespaced=False
)
RESOURCES = Resource("cro.hpsys.ibm.ie.com", "v1alpha1", "composableresources", "ComposableResource", namespaced=False)


@cache
def kinds() -> Sequence[dict[str, Any]]:
    """Return their definitions."""
    text = files("mews.systems.cohdi").joinpath("kinds.yaml").read_text("utf-8")
    return tuple(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
