"""References of kinds of networking.k8s.io to other objects."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.common import Part
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError


def reference_errors(reference: Part, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a reference to an object."""
    if reference.get("apiGroup") is not None:
        yield from names.subdomain_errors(f"{path}.apiGroup", reference["apiGroup"])
    for name in ("kind", "name"):
        if not reference.get(name):
            yield refusals.required(f"{path}.{name}")
        else:
            yield from common.path_segment(f"{path}.{name}", reference[name])
