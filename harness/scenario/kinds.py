"""Which resource a kind in a scenario means."""

from __future__ import annotations

from typing import Any

from mews.harness.scenario.errors import ScenarioError
from mews.kube.api.objects import Object
from mews.kube.api.resources import (
    CONFIGMAPS,
    CRDS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    Resource,
)
from mews.kube.client.port import KubeApi

_KNOWN = {r.kind: r for r in (PODS, NODES, NAMESPACES, CONFIGMAPS, EVENTS, LEASES, PRIORITY_CLASSES, CRDS)}


async def resource_of(kube: KubeApi, kind: str, api_version: str = "") -> Resource:
    """The resource of a kind; those that are not built in are looked up in discovery.

    Raises ScenarioError when the cluster serves no such kind, or several.
    """
    known = _KNOWN.get(kind)
    if known is not None and api_version in ("", known.api_version):
        return known
    served = [r for r in await kube.discovery() if r.kind == kind and api_version in ("", r.api_version)]
    if len(served) == 1:
        return served[0]
    versions = ", ".join(sorted(r.api_version for r in served))
    what = f"apiVersion must be one of {versions}" if served else "the cluster serves no such kind"
    raise ScenarioError(f"kind {kind!r} (apiVersion {api_version or 'not given'}): {what}")


def complete(obj: dict[str, Any], resource: Resource) -> Object:
    """The object with the apiVersion and namespace that scenarios may leave out."""
    metadata = {**obj["metadata"]}
    if resource.namespaced:
        metadata.setdefault("namespace", "default")
    return {"apiVersion": resource.api_version, **obj, "metadata": metadata}
